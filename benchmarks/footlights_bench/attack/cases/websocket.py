"""Raw cases of WebSocket: handshakes and frames that RFC 6455 allows or forbids."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import trio

from footlights_bench.attack.cases.case import Case, Outcome
from footlights_bench.attack.floods.http import NOT_ASCII
from footlights_bench.attack.raw.sockets import PATIENCE, open_connection
from footlights_bench.attack.raw.websocket import (
    ACCEPT,
    BINARY,
    CLOSE,
    CONTINUATION,
    KEY,
    PING,
    PONG,
    SUBPROTOCOL,
    TEXT,
    WebSocket,
    command,
    frame,
    handshake,
    open_websocket,
    read_handshake,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from footlights_bench.attack.raw.http import Response
    from footlights_bench.attack.target import Target

_HI = frame(TEXT, command("ping", "hi"))
_REFUSED = frozenset(range(400, 500))
PROTOCOL_ERROR, NOT_UTF8, TOO_BIG = 1002, 1007, 1009


def _closes(rule: str, *frames: bytes, codes: Collection[int] = (PROTOCOL_ERROR,)) -> Case:
    """The server closes the connection with one of these codes, then TCP."""

    async def check(target: Target) -> Outcome:
        async with open_websocket(target.websocket, target.token) as socket:
            await socket.connection.try_send(b"".join(frames))
            code = await socket.close_code()
            closed = await socket.connection.receive_until_closed()
        return Outcome(f"close {code}" + ("" if closed else ", TCP left open"), closed and code in codes)

    return Case(rule, check)


def _lives(rule: str, *frames: bytes, expected: int = 1) -> Case:
    """The frames are lawful: the server answers `expected` commands."""

    async def check(target: Target) -> Outcome:
        async with open_websocket(target.websocket, target.token) as socket:
            await socket.send(*frames)
            answered = [await socket.receive_message() for _ in range(expected)]
        good = [each for each in answered if each is not None and each.get("reply") == "hi" and each["ok"]]
        return Outcome(f"{len(good)} of {expected} commands answered", len(good) == expected)

    return Case(rule, check)


def _shakes(
    rule: str,
    changed: Mapping[str, str | None],
    statuses: Collection[int],
    *,
    method: str = "GET",
    version: str = "HTTP/1.1",
    path: str = "/v1",
    also: Callable[[Response], bool] = lambda _: True,
    needs_token: bool = False,
) -> Case:
    """The server answers a handshake with these headers with one of these statuses."""

    async def check(target: Target) -> Outcome:
        async with open_connection(target.websocket) as connection:
            shake = handshake(
                target.websocket, target.token, changed=changed, method=method, version=version, path=path
            )
            await connection.try_send(shake)
            response = await read_handshake(connection)
        if response is None:
            return Outcome("no answer", held=False)
        return Outcome(f"status {response.status}", response.status in statuses and also(response))

    return Case(rule, check, needs_token=needs_token)


def _split(data: bytes, size: int = 1) -> list[bytes]:
    return [data[begin : begin + size] for begin in range(0, len(data), size)]


def _replied(reply: object) -> Outcome:
    return Outcome("no reply" if reply is None else "the command was answered", reply is not None)


async def _frame_in_the_segment_of_the_handshake(target: Target) -> Outcome:
    async with open_websocket(target.websocket, target.token, after=_HI) as socket:
        reply = await socket.receive_message(seconds=2)
    return _replied(reply)


async def _part_of_a_frame_in_the_segment(target: Target) -> Outcome:
    async with open_websocket(target.websocket, target.token, after=_HI[:5]) as socket:
        await socket.send(_HI[5:])
        reply = await socket.receive_message(seconds=2)
    return _replied(reply)


async def _byte_by_byte(target: Target) -> Outcome:
    async with open_connection(target.websocket) as connection:
        for piece in _split(handshake(target.websocket, target.token)):
            await connection.send(piece)
        response = await read_handshake(connection)
        if response is None or response.status != 101:
            return Outcome("the handshake was refused", held=False)
        for piece in _split(_HI):
            await connection.send(piece)
        reply = await WebSocket(connection).receive_message()
    return _replied(reply)


async def _token_as_a_subprotocol(target: Target) -> Outcome:
    offered = {"Authorization": None, "Sec-WebSocket-Protocol": f"{SUBPROTOCOL}, bearer.{target.token or 'none'}"}
    async with open_connection(target.websocket) as connection:
        await connection.send(handshake(target.websocket, None, changed=offered))
        response = await read_handshake(connection)
    if response is None:
        return Outcome("no answer", held=False)
    chosen = response.headers.get("sec-websocket-protocol", "")
    leaked = "bearer." in str(response.headers)
    return Outcome(
        f"status {response.status}" + (", and the token came back" if leaked else ""),
        response.status == 101 and chosen == SUBPROTOCOL and not leaked,
    )


async def _extension(target: Target) -> Outcome:
    offered = {"Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits, x-unknown"}
    async with open_connection(target.websocket) as connection:
        await connection.send(handshake(target.websocket, target.token, changed=offered))
        response = await read_handshake(connection)
    agreed = "" if response is None else response.headers.get("sec-websocket-extensions", "")
    status = None if response is None else response.status
    return Outcome(f"status {status}, agreed to {agreed or 'none'}", status == 101 and "x-unknown" not in agreed)


def _pongs(rule: str, payload: bytes, *around: bytes) -> Case:
    """The server answers a ping between these frames with a pong of the same payload."""

    async def check(target: Target) -> Outcome:
        async with open_websocket(target.websocket, target.token) as socket:
            await socket.send(*around[:1], frame(PING, payload), *around[1:])
            with trio.move_on_after(PATIENCE):
                while (taken := await socket.receive()) is not None:
                    if taken.opcode == PONG:
                        return Outcome(f"a pong of {len(taken.payload)} bytes", taken.payload == payload)
        return Outcome("no pong", held=False)

    return Case(rule, check)


def _close(code: int | None, reason: bytes = b"") -> bytes:
    return frame(CLOSE, b"" if code is None else struct.pack("!H", code) + reason)


async def _nothing_after_close(target: Target) -> Outcome:
    async with open_websocket(target.websocket, target.token) as socket:
        await socket.send(_close(1000), _HI)
        first = await socket.receive()
        await socket.connection.receive_until_closed()
        more = len(socket.connection.buffer)
    closed = first is not None and first.opcode == CLOSE
    return Outcome(f"{'a close frame' if closed else 'another frame'}, then {more} bytes", closed and not more)


async def _binary(target: Target) -> Outcome:
    async with open_websocket(target.websocket, target.token) as socket:
        await socket.send(frame(BINARY, command("ping", "hi")))
        taken = await socket.receive()
    if taken is None:
        return Outcome("no answer", held=False)
    if taken.opcode == CLOSE:
        return Outcome(f"close {taken.close_code}", taken.close_code == 1003)
    return Outcome("an error reply", b'"ok":false' in taken.payload.replace(b" ", b""))


_START, _END = frame(TEXT, b'{"op":"ping",', fin=False), frame(CONTINUATION, b'"id":"hi"}')
_EURO = '{"op":"ping","id":"hi","€":1}'.encode()
_BREAK = _EURO.index(b"\xe2") + 1

HANDSHAKES: Mapping[str, Case] = {
    "frame-with-handshake": Case(
        "a frame in the handshake's segment is answered (6455 §4.1)", _frame_in_the_segment_of_the_handshake
    ),
    "half-frame-with-handshake": Case("its rest may come later (6455 §4.1)", _part_of_a_frame_in_the_segment),
    "byte-by-byte": Case("segments do not matter (6455 §5.4)", _byte_by_byte),
    "accept-key": _shakes(
        "101 with the right Sec-WebSocket-Accept (6455 §4.2.2)",
        {},
        {101},
        also=lambda response: response.headers.get("sec-websocket-accept") == ACCEPT,
    ),
    "names-in-any-case": _shakes(
        "101 (6455 §4.2.1)", {"Upgrade": "WebSocket", "Connection": "keep-alive, upgrade"}, {101}
    ),
    "token-as-subprotocol": Case("101, and the token is not sent back", _token_as_a_subprotocol),
    "extensions": Case("101 without unknown extensions (6455 §9.1)", _extension),
    "no-key": _shakes("4xx (6455 §4.2.1)", {"Sec-WebSocket-Key": None}, _REFUSED),
    "short-key": _shakes("4xx (6455 §4.2.1)", {"Sec-WebSocket-Key": "c2hvcnQ="}, _REFUSED),
    "key-of-no-base64": _shakes("4xx (6455 §4.2.1)", {"Sec-WebSocket-Key": "!" * 24}, _REFUSED),
    "old-version": _shakes(
        "4xx that names version 13 (6455 §4.2.2)",
        {"Sec-WebSocket-Version": "8"},
        _REFUSED,
        also=lambda response: "13" in response.headers.get("sec-websocket-version", ""),
    ),
    "no-version": _shakes("4xx (6455 §4.2.1)", {"Sec-WebSocket-Version": None}, _REFUSED),
    "no-upgrade": _shakes("4xx (6455 §4.2.1)", {"Upgrade": None}, _REFUSED),
    "no-connection": _shakes("4xx (6455 §4.2.1)", {"Connection": None}, _REFUSED),
    "no-host": _shakes("4xx (6455 §4.2.1)", {"Host": None}, _REFUSED),
    "post": _shakes("4xx (6455 §4.2.1)", {"Content-Length": "0"}, _REFUSED, method="POST"),
    "http-1.0": _shakes("4xx or 505 (6455 §4.2.1)", {}, _REFUSED | {505}, version="HTTP/1.0"),
    "http-2.0": _shakes("4xx or 505 (9110 §2.5)", {}, _REFUSED | {505}, version="HTTP/2.0"),
    "two-keys": _shakes("4xx (6455 §11.3.1)", {"X": f"y\r\nSec-WebSocket-Key: {KEY}"}, _REFUSED),
    **{
        f"not-ascii-in-{name.lower()}": _shakes("4xx (9110 §5.5)", {name: value}, _REFUSED)
        for name, value in NOT_ASCII.items()
    },
    "with-a-body": _shakes("400 (docs)", {"Content-Length": "5"}, {400}),
    "other-path": _shakes("404 (docs)", {}, {404}, path="/v2"),
    "no-subprotocol": _shakes("400 (docs)", {"Sec-WebSocket-Protocol": None}, {400}),
    "wrong-token": _shakes("401 (docs)", {"Authorization": "Bearer not-a-token-of-anybody"}, {401}, needs_token=True),
    "no-token": _shakes("401 (docs)", {"Authorization": None}, {401}, needs_token=True),
    "other-origin": _shakes("403 (docs)", {"Origin": "https://attacker.example"}, {403}),
}

FRAMES: Mapping[str, Case] = {
    "unmasked": _closes("close 1002 (6455 §5.1)", frame(TEXT, command("ping", "hi"), mask=None)),
    "fragmented-command": _lives("the command is answered (6455 §5.4)", _START, _END),
    "ping-among-fragments": _pongs("a pong with its payload (6455 §5.4)", b"now", _START, _END),
    "masked": _lives("the command is answered (6455 §5.3)", frame(TEXT, command("ping", "hi"), mask=b"\x9a\x01~ ")),
    "many-in-a-segment": _lives("each is answered (6455 §5.4)", _HI * 20, expected=20),
    **{
        f"reserved-bit-{bit}": _closes(
            "close 1002 (6455 §5.2)", frame(TEXT, command("ping", "hi"), reserved=1 << (3 - bit))
        )
        for bit in (1, 2, 3)
    },
    **{
        f"reserved-opcode-{opcode:x}": _closes("close 1002 (6455 §5.2)", frame(opcode))
        for opcode in (3, 4, 5, 6, 7, 0xB, 0xC, 0xD, 0xE, 0xF)
    },
    "fragmented-ping": _closes("close 1002 (6455 §5.5)", frame(PING, fin=False), frame(CONTINUATION)),
    "fragmented-close": _closes("close 1002 (6455 §5.5)", frame(CLOSE, fin=False), frame(CONTINUATION)),
    "long-ping": _closes("close 1002 (6455 §5.5)", frame(PING, bytes(126))),
    "continuation-of-nothing": _closes("close 1002 (6455 §5.4)", frame(CONTINUATION, b"x")),
    "text-among-fragments": _closes("close 1002 (6455 §5.4)", _START, _HI),
    "length-in-more-bytes": _closes("close 1002 (6455 §5.2)", frame(TEXT, b"{}", length_bytes=2)),
    "length-in-eight-bytes": _closes("close 1002 (6455 §5.2)", frame(TEXT, b"{}", length_bytes=8)),
    "length-with-high-bit": _closes(
        "close 1002 or 1009 (6455 §5.2)", frame(TEXT, declared=1 << 63), codes=(PROTOCOL_ERROR, TOO_BIG)
    ),
    "length-of-2^62": _closes(
        "close 1009 before it is sent (6455 §10.4)", frame(TEXT, declared=1 << 62), codes=(TOO_BIG,)
    ),
    "too-large": _closes("close 1009 (docs)", frame(TEXT, b"a" * 270_000), codes=(TOO_BIG,)),
    "too-large-in-fragments": _closes(
        "close 1009 (docs)",
        frame(TEXT, fin=False),
        *[frame(CONTINUATION, b"a" * 10_000, fin=False)] * 30,
        codes=(TOO_BIG,),
    ),
    "too-many-fragments": _closes(
        "close 1009 (docs)", frame(TEXT, b"{", fin=False), *[frame(CONTINUATION, fin=False)] * 1_100, codes=(TOO_BIG,)
    ),
    "binary": Case("an error reply or close 1003 (6455 §7.4.1)", _binary),
    "ping-of-125-bytes": _pongs("a pong with its payload (6455 §5.5.3)", bytes(range(125))),
    "empty-ping": _pongs("an empty pong (6455 §5.5.3)", b""),
    "pong-unasked": _lives("no answer, and life goes on (6455 §5.5.3)", frame(PONG, b"?"), _HI),
    "invalid-utf-8": _closes("close 1007 (6455 §8.1)", frame(TEXT, b'"\xff"'), codes=(NOT_UTF8,)),
    "overlong-utf-8": _closes("close 1007 (6455 §8.1)", frame(TEXT, b'"\xc0\xaf"'), codes=(NOT_UTF8,)),
    "surrogate-in-utf-8": _closes("close 1007 (6455 §8.1)", frame(TEXT, b'"\xed\xa0\x80"'), codes=(NOT_UTF8,)),
    "cut-utf-8": _closes("close 1007 (6455 §8.1)", frame(TEXT, b'"\xe2\x82'), codes=(NOT_UTF8,)),
    "invalid-utf-8-in-a-fragment": _closes(
        "close 1007 (6455 §8.1)", frame(TEXT, b'"\xe2', fin=False), frame(CONTINUATION, b'a"'), codes=(NOT_UTF8,)
    ),
    "utf-8-across-fragments": _closes(
        "no close: the command is answered (6455 §5.6)",
        frame(TEXT, _EURO[:_BREAK], fin=False),
        frame(CONTINUATION, _EURO[_BREAK:]),
        _close(1000),
        codes=(1000,),
    ),
    "close": _closes("close 1000 in return (6455 §5.5.1)", _close(1000), codes=(1000,)),
    "close-4999": _closes("close 4999 in return (6455 §7.4.2)", _close(4999, b"bye"), codes=(4999,)),
    "frames-after-close": Case("they are ignored (6455 §5.5.1)", _nothing_after_close),
    "close-of-one-byte": _closes("close 1002 (6455 §5.5.1)", frame(CLOSE, b"\x03")),
    "close-reason-invalid-utf-8": _closes(
        "close 1007 or 1002 (6455 §5.5.1)", _close(1000, b"\xff"), codes=(NOT_UTF8, PROTOCOL_ERROR)
    ),
    **{
        f"close-code-{code}": _closes("close 1002 (6455 §7.4)", _close(code))
        for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 2999)
    },
}


async def _empty_close(target: Target) -> Outcome:
    async with open_websocket(target.websocket, target.token) as socket:
        await socket.send(_close(None))
        first = await socket.receive()
        closed = await socket.connection.receive_until_closed()
    answered = first is not None and first.opcode == CLOSE
    return Outcome("a close frame" if answered else "no close frame", answered and closed)


WEBSOCKET_CASES: Mapping[str, Case] = {
    **{f"websocket/{name}": case for name, case in {**HANDSHAKES, **FRAMES}.items()},
    "websocket/close-without-code": Case("a close frame in return (6455 §5.5.1)", _empty_close),
}
"""All cases by name."""
