"""`footlights serve` as a real process, and a game for it to serve."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import orjson
import trio
from attrs import frozen
from trio_websocket import wrap_client_stream

from tests.kit.peers.ws_peer import V1, Peer

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

FOOTLIGHTS = (sys.executable, "-m", "footlights_transports")

GAME = """
import logging
from footlights_actors import Fail, Say, ScriptedModel, Stall, standard_cast
from footlights_actors.demo.tavern.world import opening_hour

log = logging.getLogger("a_library")

def script(prompt):
    log.debug("It was told: %s", prompt.user, exc_info=RuntimeError(prompt.user))
    if "stay" in prompt.user:
        return [Say("Well,"), Stall()]
    if "fail" in prompt.user:
        return [Fail(RuntimeError(prompt.user))]
    return [Say("Good evening. " + prompt.user)]

def make():
    return standard_cast(ScriptedModel(script, model_id="odo"), world=opening_hour())
"""


def write_game(folder: Path, settings: str = "") -> Path:
    """The settings of a game that answers at once, and goes on for ever when it is asked to stay."""
    (folder / "served_game.py").write_text(GAME)
    file = folder / "game.toml"
    file.write_text(f'[cast]\nmake = "served_game:make"\n[server]\nws_port = 0\nhttp_port = 0\n{settings}')
    return file


@frozen
class Served:
    """A server that is ready."""

    process: trio.Process
    shown: str
    """What it printed."""
    complaints: Path
    """Where its standard error goes."""

    @property
    def ws_port(self) -> int:
        return self._port("ws")

    @property
    def http_port(self) -> int:
        return self._port("http")

    async def ended(self) -> int:
        with trio.fail_after(60):
            return await self.process.wait()

    def _port(self, scheme: str) -> int:
        found = re.search(rf" {scheme}s?://\S+:(\d+)/v1$", self.shown, re.MULTILINE)
        assert found is not None, self.shown
        return int(found[1])


@asynccontextmanager
async def open_server(
    folder: Path, *arguments: str, environ: Mapping[str, str] | None = None
) -> AsyncGenerator[Served]:
    """A server in this folder, from when it is ready until it is gone, if need be by force."""
    complaints = folder / "stderr.txt"
    with complaints.open("ab") as errors:
        process = await trio.lowlevel.open_process(
            [*FOOTLIGHTS, "serve", *arguments],
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            env={**os.environ, **(environ or {})},
        )
    assert process.stdout is not None
    try:
        shown = b""
        with trio.fail_after(60):
            while b"Try " not in shown or not shown.endswith(b"\n"):
                more = await process.stdout.receive_some()
                assert more, complaints.read_text()
                shown += more
        yield Served(process, shown.decode(), complaints)
    finally:
        with trio.CancelScope(shield=True):
            process.kill()
            await process.wait()
            await process.stdout.aclose()


@asynccontextmanager
async def open_peer(
    port: int,
    *,
    token: str | None = None,
    after: Mapping[str, int] | None = None,
    tls: ssl.SSLContext | None = None,
    world: str = "",
) -> AsyncGenerator[Peer]:
    """A WebSocket client whose events are held to the laws when it leaves."""
    headers = [] if token is None else [(b"Authorization", f"Bearer {token}".encode())]
    plain = await trio.open_tcp_stream("127.0.0.1", port)
    stream = plain if tls is None else trio.SSLStream(plain, tls, server_hostname="localhost", https_compatible=True)
    async with stream, trio.open_nursery() as nursery:
        path = f"/w/{world}/v1" if world else "/v1"
        socket = await wrap_client_stream(nursery, stream, "localhost", path, subprotocols=V1, extra_headers=headers)
        peer = Peer(socket)
        peer.after = after
        yield peer
        peer.check()
        await socket.aclose()
        nursery.cancel_scope.cancel()


async def request(
    port: int, method: str, path: str, body: object = None, *, token: str | None = None
) -> tuple[int, Any]:
    """One HTTP request; the status and what the answer says."""
    data = b"" if body is None else orjson.dumps(body)
    head = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: close", f"Content-Length: {len(data)}"]
    head += [] if body is None else ["Content-Type: application/json"]
    head += [] if token is None else [f"Authorization: Bearer {token}"]
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all("\r\n".join([*head, "", ""]).encode() + data)
        got = b""
        while more := await stream.receive_some():
            got += more
    answer, _, said = got.partition(b"\r\n\r\n")
    return int(answer.split()[1]), orjson.loads(said) if said.startswith((b"{", b"[")) else said
