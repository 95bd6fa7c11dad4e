"""Floods over TCP and HTTP, most of them without a token: HTTP/2, malformed handshakes, storms, requests, bodies."""

from __future__ import annotations

import struct
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING

import trio

from footlights_bench.attack.raw.http import request
from footlights_bench.attack.raw.sockets import BROKEN
from footlights_bench.attack.raw.websocket import handshake

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from footlights_bench.attack.floods.load import Flood, Load
    from footlights_bench.attack.raw.sockets import Connection
    from footlights_bench.attack.target import Address

CONNECTIONS = 8
SEGMENT = 65_536
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SETTINGS, _PING, _WINDOW_UPDATE, _PRIORITY, _UNKNOWN = 0x4, 0x6, 0x8, 0x2, 0xFA
NOT_ASCII: Mapping[str, str] = {
    "Connection": "Upgrade, \xff",
    "Host": "\xff",
    "Sec-WebSocket-Extensions": "\xff",
    "Sec-WebSocket-Protocol": "footlights.v1, \xff",
}
WRONG_TOKEN = "this-is-not-a-token-of-anybody"


def h2_frame(kind: int, payload: bytes = b"", *, flags: int = 0, stream: int = 0) -> bytes:
    return struct.pack("!I", len(payload))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + payload


H2_OPENING = PREFACE + h2_frame(_SETTINGS)
_H2_CONTROL = (
    h2_frame(_SETTINGS)
    + h2_frame(_PING, bytes(8))
    + h2_frame(_WINDOW_UPDATE, struct.pack("!I", 1))
    + h2_frame(_PRIORITY, struct.pack("!IB", 0, 16), stream=1)
    + h2_frame(_UNKNOWN)
)
_H2_SEGMENT = _H2_CONTROL * (SEGMENT // len(_H2_CONTROL))


async def pour(load: Load, connection: Connection, first: bytes, segment: bytes, units: int) -> None:
    """Send `first`, then `segment` again and again, and discard the answers, until the server closes the connection."""

    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.discard_then_cancel, nursery.cancel_scope)
        try:
            await load.send(connection, first, 1)
            while True:
                await load.send(connection, segment, units)
                await trio.lowlevel.checkpoint()
        except BROKEN:
            nursery.cancel_scope.cancel()


def h2c_upgrade(address: Address) -> bytes:
    upgrade = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"]
    return request(address, "GET", "/healthz", headers=upgrade) + H2_OPENING


async def _http2(load: Load, *, first: Callable[[Address], bytes]) -> None:
    async def use(connection: Connection) -> None:
        await pour(load, connection, first(load.target.http), _H2_SEGMENT, _H2_SEGMENT.count(_H2_CONTROL) * 5)

    await load.connections_to(CONNECTIONS, load.target.http, use)


def _malformed(address: Address) -> list[bytes]:
    return [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
        b"GET\r\n\r\n",
        b"\x00" * 512,
        b"GET /v1 HTTP/1.1\r\nHost: x\r\nBad Header: y\r\n\r\n",
        b"GET /v1 HTTP/9.9\r\n\r\n",
        b"GET " + b"/" * 20_000 + b" HTTP/1.1\r\n\r\n",
        handshake(address, None, changed={"Sec-WebSocket-Key": "short"}),
        handshake(address, None, changed={"Sec-WebSocket-Version": "8"}),
        handshake(address, None, changed={"Host": None}),
        handshake(address, WRONG_TOKEN),
        *(handshake(address, None, changed={name: value}) for name, value in NOT_ASCII.items()),
        handshake(address, None, changed={"Content-Length": "5"}) + b"hello",
        handshake(address, None, changed={"Transfer-Encoding": "chunked"}) + b"5\r\nhello\r\n0\r\n\r\n",
        b"POST /v1 HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    ]


async def _once_each(load: Load, address: Address, things: Sequence[bytes], connections: int = CONNECTIONS) -> None:
    """Connections that each send one of these, wait for the answer and are opened again."""
    following = cycle(things)

    async def use(connection: Connection) -> None:
        await load.send(connection, next(following), 1)
        connection.finish_sending()
        with trio.move_on_after(1):
            await connection.discard()

    await load.connections_to(connections, address, use)


async def _malformed_handshakes(load: Load) -> None:
    async with trio.open_nursery() as nursery:
        for address in (load.target.websocket, load.target.http):
            nursery.start_soon(_once_each, load, address, _malformed(address))


async def _wrong_tokens(load: Load) -> None:
    address = load.target.http
    one = request(address, "GET", "/v1/world", token=WRONG_TOKEN, headers=["Connection: close"])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_once_each, load, load.target.websocket, [handshake(load.target.websocket, WRONG_TOKEN)])
        nursery.start_soon(_once_each, load, address, [one])


async def _connections(load: Load) -> None:
    async def use(connection: Connection) -> None:
        await load.send(connection, b"G", 1)

    async with trio.open_nursery() as nursery:
        for address in (load.target.websocket, load.target.http):
            nursery.start_soon(load.connections_to, CONNECTIONS, address, use)


async def _handshakes(load: Load) -> None:
    async def use(_talk: object) -> None:
        load.tally.units += 1

    await load.websockets(CONNECTIONS, use, reads=False)


async def _requests(load: Load, make: Callable[[Load], bytes], connections: int = CONNECTIONS) -> None:
    """Pipelined requests on open connections, whether they are answered or not."""
    one = make(load)
    many = max(1, SEGMENT // len(one))
    segment = one * many

    async def use(connection: Connection) -> None:
        await pour(load, connection, one, segment, many)

    await load.connections_to(connections, load.target.http, use)


def _health(load: Load) -> bytes:
    return request(load.target.http, "GET", "/healthz")


def _world(load: Load) -> bytes:
    return request(load.target.http, "GET", "/v1/world", token=load.target.token)


def _refused_body(load: Load) -> bytes:
    body = b"[" + b",".join([b"[]"] * 80_000) + b"]"
    return request(load.target.http, "POST", "/v1/sessions", token=load.target.token, body=body)


def _strangers_body(load: Load) -> bytes:
    return request(load.target.http, "POST", "/v1/sessions", body=b"[" * 250_000)


async def _unread(load: Load) -> None:
    """Requests for large answers that are never read."""
    segment = request(load.target.http, "GET", "/v1/openapi.json", token=load.target.token) * 100

    async def use(connection: Connection) -> None:
        while True:
            await load.send(connection, segment, 100)

    await load.connections_to(CONNECTIONS, load.target.http, use)


HTTP_FLOODS: Mapping[str, Flood] = {
    "flood/h2-preface": partial(_http2, first=lambda _: H2_OPENING),
    "flood/h2c-upgrade": partial(_http2, first=h2c_upgrade),
    "flood/malformed-handshakes": _malformed_handshakes,
    "flood/wrong-tokens": _wrong_tokens,
    "flood/connections": _connections,
    "flood/handshakes": _handshakes,
    "flood/http-health": partial(_requests, make=_health),
    "flood/http-world": partial(_requests, make=_world),
    "flood/http-refused-bodies": partial(_requests, make=_refused_body),
    "flood/http-strangers-bodies": partial(_requests, make=_strangers_body),
    "flood/http-unread": _unread,
}
