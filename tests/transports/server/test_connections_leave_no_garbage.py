"""Connections come and go, and nothing of them is left for the garbage collector to find: counts, never times.

`footlights serve` runs a full collection only when it is idle, so a server that is never idle must not need one.
"""

from __future__ import annotations

import gc
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio

from footlights_transports import load_config
from footlights_transports.server.serve import Opened, serve

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path
    from typing import TypeAlias

    Visit: TypeAlias = Callable[[Opened], Awaitable[None]]

VISITS = 5

_HANDSHAKE = (
    b"GET /v1 HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: footlights.v1\r\n\r\n"
)


async def by_websocket(server: Opened) -> None:
    async with await trio.open_tcp_stream("127.0.0.1", server.ws_port) as stream:
        await stream.send_all(_HANDSHAKE)
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 101")
        await stream.send_eof()
        await _read_to_its_end(stream)


async def by_http(server: Opened) -> None:
    async with await trio.open_tcp_stream("127.0.0.1", server.http_port) as stream:
        await stream.send_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")
        await _read_to_its_end(stream)


def _says(port: str, sent: bytes, answer: bytes) -> Visit:
    """A visit that is refused."""

    async def visit(server: Opened) -> None:
        async with await trio.open_tcp_stream("127.0.0.1", getattr(server, port)) as stream:
            await stream.send_all(sent)
            got = b""
            while data := await stream.receive_some():
                got += data
            assert answer in got

    return visit


def _frame(first_byte: int, payload: bytes) -> bytes:
    return bytes((first_byte, 0x80 | len(payload))) + bytes(4) + payload


_BODY = b"x" * 100_000
_POST = b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
_LENGTH = b"Content-Length: %d\r\n\r\n" % len(_BODY)

VISITS_THAT_ARE_REFUSED: dict[str, Visit] = {
    "no handshake": _says("ws_port", b"Good evening\r\n\r\n", b" 400 "),
    "no HTTP": _says("http_port", b"Good evening\r\n\r\n", b" 400 "),
    "headers without end": _says("http_port", b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000, b" 431 "),
    "a handshake that is not ASCII": _says("ws_port", _HANDSHAKE.replace(b"footlights.v1", b"\xff"), b" 400 "),
    "a handshake with nothing": _says("ws_port", _HANDSHAKE.replace(b"/v1 ", b"/nothing "), b" 404 "),
    "a stranger's page": _says("ws_port", _HANDSHAKE.replace(b"Host", b"Origin: http://x\r\nHost"), b" 403 "),
    "no WebSocket": _says("ws_port", _HANDSHAKE + b"\x81\x05xyzzy", b"\x88"),
    "not UTF-8": _says("ws_port", _HANDSHAKE + _frame(0x81, b"\xff"), b"\x88"),
    "too much": _says("ws_port", _HANDSHAKE + b"\x81\xff" + (1 << 40).to_bytes(8, "big"), b"\x88"),
    "a body that is no JSON": _says(
        "http_port", _POST + b"Content-Type: application/json\r\n" + _LENGTH + _BODY, b" 400 "
    ),
    "a body of another kind": _says("http_port", _POST + _LENGTH + _BODY, b" 415 "),
    "no address": _says("http_port", _POST.replace(b"/v1/", b"/v9/") + _LENGTH + _BODY, b" 404 "),
}


async def _read_to_its_end(stream: trio.SocketStream) -> None:
    while await stream.receive_some():
        pass


@asynccontextmanager
async def _served(folder: Path) -> AsyncGenerator[Opened]:
    given = {"ws_port": 0, "http_port": 0, "ledger": str(folder / "a.ledger")}
    config = load_config(options={("server", name): value for name, value in given.items()})
    opened: list[Opened] = []
    ready, stop = trio.Event(), trio.Event()

    def announce(server: Opened) -> None:
        opened.append(server)
        ready.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve, config, announce, stop)
        await ready.wait()
        yield opened[0]
        stop.set()


async def _garbage_after(visit: Visit, folder: Path) -> int:
    async with _served(folder) as server:
        await visit(server)
        await visit(server)
        gc.freeze()
        gc.disable()
        try:
            for _ in range(VISITS):
                await visit(server)
            await visit(server)  # by now those before are gone, also on the server's side
            return gc.collect()
        finally:
            gc.enable()
            gc.unfreeze()


# The last one may still be going, and something else may happen now and then: but not in each.


@pytest.mark.parametrize("visit", [by_websocket, by_http])
async def test_a_connection_leaves_nothing_to_the_garbage_collector(visit: Visit, tmp_path: Path) -> None:
    assert await _garbage_after(visit, tmp_path) < VISITS


@pytest.mark.parametrize("case", VISITS_THAT_ARE_REFUSED)
async def test_a_connection_that_is_refused_leaves_nothing_either(case: str, tmp_path: Path) -> None:
    assert await _garbage_after(VISITS_THAT_ARE_REFUSED[case], tmp_path) < VISITS
