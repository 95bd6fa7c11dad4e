"""Recorded wire formats: one turn through every view, compared byte for byte with the files in `recorded`.

Times are replaced; everything else, to the order of the keys and the digests, is what a client reads.
After a change of the wire that is meant, delete the file and run the test: it writes a new one, and fails this once.
"""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import trio
from trio_websocket import wrap_client_stream

from tests.kit.served import open_server
from tests.kit.views.ag_ui_kit import asking

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from trio_websocket import WebSocketConnection

RECORDED = Path(__file__).parent / "recorded"
GAME = """
from footlights_actors import Call, Pause, Say, ScriptedModel, standard_cast
from footlights_actors.demo.tavern.approvals import HOUSE_RULES
from footlights_actors.demo.tavern.tools import tavern_tools
from footlights_actors.demo.tavern.world import opening_hour

def script(prompt):
    # The pause: otherwise it depends on the machine whether the chat gateway sends one chunk or two.
    return [Say("There."), Pause(0.2)] if prompt.exchanges else [Call("sell_lantern")]

def make():
    model = ScriptedModel(script, model_id="odo")
    return standard_cast(model, tools=tavern_tools(0), world=opening_hour(), rules=HOUSE_RULES)
"""
SETTINGS = '[cast]\nmake = "recorded_game:make"\n[server]\nws_port = 0\nhttp_port = 0\n'
TIMES = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z"
    r'|(?<=_ms":)\d+|(?<="wall_ts":)[\d.]+|(?<="timestamp":)[\d.]+'
)


def assert_as_recorded(told: dict[str, str]) -> None:
    missing = [name for name in told if not (RECORDED / name).exists()]
    for name in missing:
        (RECORDED / name).write_text(TIMES.sub("<time>", told[name]), encoding="utf-8")
    assert not missing, "These were not recorded, and are now. Read them before you commit them."
    for name, text in told.items():
        assert TIMES.sub("<time>", text) == (RECORDED / name).read_text(encoding="utf-8")


class Clients:
    """Plain sockets: they keep the text that the server sends."""

    def __init__(self, ws_port: int, http_port: int) -> None:
        self.ws_port, self.http_port = ws_port, http_port

    @asynccontextmanager
    async def websocket(self, path: str, *protocols: str) -> AsyncGenerator[WebSocketConnection]:
        async with await trio.open_tcp_stream("127.0.0.1", self.ws_port) as stream, trio.open_nursery() as nursery:
            yield await wrap_client_stream(nursery, stream, "localhost", path, subprotocols=protocols)
            nursery.cancel_scope.cancel()

    async def http(self, method: str, path: str, body: object = None, answered: trio.Event | None = None) -> str:
        """The body, with its chunks joined. A stream that does not end is read until the turn is committed."""
        data = b"" if body is None else orjson.dumps(body)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\n\r\n"
        )
        got = b""
        async with await trio.open_tcp_stream("127.0.0.1", self.http_port) as stream:
            await stream.send_all(head.encode() + data)
            while (more := await stream.receive_some()) and (answered is None or b'"commit_final"' not in more):
                got += more
                if answered is not None:
                    answered.set()
            got += more
        headers, _, content = got.partition(b"\r\n\r\n")
        if b"transfer-encoding: chunked" in headers.lower():
            content = b"".join(chunks_of(content))
        return content.decode()

    async def poll_until(self, path: str, last: str) -> str:
        """Read a feed that follows the turn, until it says this."""
        while last not in (content := await self.http("GET", path)):
            await trio.lowlevel.checkpoint()
        return content


def chunks_of(content: bytes) -> Generator[bytes]:
    """The data of a chunked body, as far as it came."""
    while content:
        size, _, rest = content.partition(b"\r\n")
        yield rest[: int(size, 16)]
        content = rest[int(size, 16) + 2 :]


@asynccontextmanager
async def served(folder: Path) -> AsyncGenerator[Clients]:
    (folder / "recorded_game.py").write_text(GAME)
    (folder / "game.toml").write_text(SETTINGS)
    async with open_server(folder, "--config", "game.toml") as server:
        with trio.fail_after(60):
            yield Clients(server.ws_port, server.http_port)


async def frames_until(socket: WebSocketConnection, last: str) -> str:
    frames: list[str] = []
    while not frames or last not in frames[-1]:
        message = await socket.get_message()
        frames.append(message if isinstance(message, str) else message.decode())
    return "".join(f"{frame}\n" for frame in frames)


async def test_every_view_of_one_turn_is_as_recorded(tmp_path: Path) -> None:
    async with served(tmp_path) as clients:
        told: dict[str, str] = {}
        async with clients.websocket("/v1", "footlights.v1") as native:

            async def send(**command: object) -> None:
                await native.send_message(orjson.dumps(command).decode())

            await send(op="start", id=1, params={"session_id": "shared"})
            await send(op="subscribe", id=2, session_id="shared")
            told["native.jsonl"] = await frames_until(native, '"reply":2')
            await clients.http("GET", "/v1/sessions/shared/chat")
            board = "/api/mission-board/shared/events?session_state=active&context_tier=1&voice_mode=normal"
            await clients.http("GET", board)
            async with (
                clients.websocket("/observe/default?session=shared") as observer,
                trio.open_nursery() as nursery,
            ):
                answered = trio.Event()

                async def follow() -> None:
                    events = "/v1/sessions/shared/events"
                    told["events.txt"] = await clients.http("GET", events, answered=answered)

                nursery.start_soon(follow)
                await answered.wait()
                body = {"message": "Sell me the lantern", "session_id": "shared", "execution_policy": "force"}
                told["narrated_run.txt"] = await clients.http("POST", "/api/agents/default/invoke", body)
                told["native.jsonl"] += await frames_until(native, '"commit_final"')
                told["chat_gateway_observer.jsonl"] = await frames_until(observer, '"done"')
            told["chat_feed.json"] = await clients.poll_until("/v1/sessions/shared/chat", "Approval needed")
            told["callouts.json"] = await clients.poll_until(board, "A turn is committed")
            told["world.json"] = await clients.http("GET", "/v1/world")
            told["ledger.json"] = await clients.http("GET", "/v1/sessions/shared/ledger")
        told["ag_ui_run.txt"] = await clients.http(
            "POST", "/ag-ui/default", asking("Sell me the lantern", thread_id="a")
        )
        told["openapi.json"] = await clients.http("GET", "/v1/openapi.json")
    assert_as_recorded(told)
