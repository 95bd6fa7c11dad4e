"""Raw cases of WebSocket: handshakes and frames as RFC 6455 allows and forbids them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import trio

from footlights_bench.attack.cases import Case, Seen
from footlights_bench.attack.floods_http import NOT_ASCII
from footlights_bench.attack.frames import (
    ACCEPT,
    BINARY,
    CLOSE,
    CONTINUATION,
    KEY,
    PING,
    PONG,
    SUBPROTOCOL,
    TEXT,
    Talk,
    command,
    frame,
    handshake,
    read_handshake,
    talking,
)
from footlights_bench.attack.sockets import PATIENCE, connected

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from footlights_bench.attack.cases import Check
    from footlights_bench.attack.exchange import Response
    from footlights_bench.attack.target import Target

_HI = frame(TEXT, command("ping", "hi"))
_REFUSED = frozenset(range(400, 500))
PROTOCOL_ERROR, NOT_UTF8, TOO_BIG = 1002, 1007, 1009


def _closes(*frames: bytes, codes: Collection[int] = (PROTOCOL_ERROR,)) -> Check:
    """The frames must fail the connection with one of these close codes, and the server closes TCP."""

    async def check(target: Target) -> Seen:
        async with talking(target.websocket, target.token) as talk:
            await talk.wire.try_send(b"".join(frames))
            code = await talk.close_code()
            closed = await talk.wire.receive_until_closed()
        return Seen(f"close {code}" + ("" if closed else ", TCP left open"), closed and code in codes)

    return check


def _lives(*frames: bytes, expected: int = 1) -> Check:
    """The frames are lawful: so many commands in them are answered."""

    async def check(target: Target) -> Seen:
        async with talking(target.websocket, target.token) as talk:
            await talk.send(*frames)
            answered = [await talk.receive_message() for _ in range(expected)]
        good = [each for each in answered if each is not None and each.get("reply") == "hi" and each["ok"]]
        return Seen(f"{len(good)} of {expected} commands answered", len(good) == expected)

    return check


def _shakes(
    changed: Mapping[str, str | None],
    statuses: Collection[int],
    *,
    method: str = "GET",
    version: str = "HTTP/1.1",
    path: str = "/v1",
    also: Callable[[Response], bool] = lambda _: True,
) -> Check:
    """A handshake with these headers must be answered with one of these statuses."""

    async def check(target: Target) -> Seen:
        async with connected(target.websocket) as wire:
            shake = handshake(
                target.websocket, target.token, changed=changed, method=method, version=version, path=path
            )
            await wire.try_send(shake)
            response = await read_handshake(wire)
        if response is None:
            return Seen("no answer", held=False)
        return Seen(f"status {response.status}", response.status in statuses and also(response))

    return check


def _split(data: bytes, size: int = 1) -> list[bytes]:
    return [data[begin : begin + size] for begin in range(0, len(data), size)]


async def _frame_in_the_segment_of_the_handshake(target: Target) -> Seen:
    async with talking(target.websocket, target.token, after=_HI) as talk:
        reply = await talk.receive_message(seconds=2)
    return Seen("no reply" if reply is None else "the command was answered", reply is not None)


async def _part_of_a_frame_in_the_segment(target: Target) -> Seen:
    async with talking(target.websocket, target.token, after=_HI[:5]) as talk:
        await talk.send(_HI[5:])
        reply = await talk.receive_message(seconds=2)
    return Seen("no reply" if reply is None else "the command was answered", reply is not None)


async def _byte_by_byte(target: Target) -> Seen:
    async with connected(target.websocket) as wire:
        for piece in _split(handshake(target.websocket, target.token)):
            await wire.send(piece)
        response = await read_handshake(wire)
        if response is None or response.status != 101:
            return Seen("the handshake was refused", held=False)
        for piece in _split(_HI):
            await wire.send(piece)
        reply = await Talk(wire).receive_message()
    return Seen("no reply" if reply is None else "the command was answered", reply is not None)


async def _token_as_a_subprotocol(target: Target) -> Seen:
    offered = {"Authorization": None, "Sec-WebSocket-Protocol": f"{SUBPROTOCOL}, bearer.{target.token or 'none'}"}
    async with connected(target.websocket) as wire:
        await wire.send(handshake(target.websocket, None, changed=offered))
        response = await read_handshake(wire)
    if response is None:
        return Seen("no answer", held=False)
    chosen = response.headers.get("sec-websocket-protocol", "")
    leaked = "bearer." in str(response.headers)
    return Seen(
        f"status {response.status}" + (", and the token came back" if leaked else ""),
        response.status == 101 and chosen == SUBPROTOCOL and not leaked,
    )


async def _extension(target: Target) -> Seen:
    offered = {"Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits, x-unknown"}
    async with connected(target.websocket) as wire:
        await wire.send(handshake(target.websocket, target.token, changed=offered))
        response = await read_handshake(wire)
    agreed = "" if response is None else response.headers.get("sec-websocket-extensions", "")
    status = None if response is None else response.status
    return Seen(f"status {status}, agreed to {agreed or 'none'}", status == 101 and "x-unknown" not in agreed)


def _pongs(payload: bytes, *around: bytes) -> Check:
    """A ping between these frames is answered by a pong with its payload."""

    async def check(target: Target) -> Seen:
        async with talking(target.websocket, target.token) as talk:
            await talk.send(*around[:1], frame(PING, payload), *around[1:])
            with trio.move_on_after(PATIENCE):
                while (taken := await talk.receive()) is not None:
                    if taken.opcode == PONG:
                        return Seen(f"a pong of {len(taken.payload)} bytes", taken.payload == payload)
        return Seen("no pong", held=False)

    return check


def _close(code: int | None, reason: bytes = b"") -> bytes:
    return frame(CLOSE, b"" if code is None else struct.pack("!H", code) + reason)


async def _nothing_after_close(target: Target) -> Seen:
    async with talking(target.websocket, target.token) as talk:
        await talk.send(_close(1000), _HI)
        first = await talk.receive()
        await talk.wire.receive_until_closed()
        more = len(talk.wire.buffer)
    closed = first is not None and first.opcode == CLOSE
    return Seen(f"{'a close frame' if closed else 'another frame'}, then {more} bytes", closed and not more)


async def _binary(target: Target) -> Seen:
    async with talking(target.websocket, target.token) as talk:
        await talk.send(frame(BINARY, command("ping", "hi")))
        taken = await talk.receive()
    if taken is None:
        return Seen("no answer", held=False)
    if taken.opcode == CLOSE:
        return Seen(f"close {taken.close_code}", taken.close_code == 1003)
    return Seen("an error reply", b'"ok":false' in taken.payload.replace(b" ", b""))


_START, _END = frame(TEXT, b'{"op":"ping",', fin=False), frame(CONTINUATION, b'"id":"hi"}')
_EURO = '{"op":"ping","id":"hi","€":1}'.encode()
_BREAK = _EURO.index(b"\xe2") + 1

HANDSHAKES: Mapping[str, Case] = {
    "frame-with-handshake": Case(
        "a frame in the handshake's segment is answered (6455 §4.1)", _frame_in_the_segment_of_the_handshake
    ),
    "half-frame-with-handshake": Case("its rest may come later (6455 §4.1)", _part_of_a_frame_in_the_segment),
    "byte-by-byte": Case("segments do not matter (6455 §5.4)", _byte_by_byte),
    "accept-key": Case(
        "101 with the right Sec-WebSocket-Accept (6455 §4.2.2)",
        _shakes({}, {101}, also=lambda response: response.headers.get("sec-websocket-accept") == ACCEPT),
    ),
    "names-in-any-case": Case(
        "101 (6455 §4.2.1)", _shakes({"Upgrade": "WebSocket", "Connection": "keep-alive, upgrade"}, {101})
    ),
    "token-as-subprotocol": Case("101, and the token is not sent back", _token_as_a_subprotocol),
    "extensions": Case("101 without unknown extensions (6455 §9.1)", _extension),
    "no-key": Case("4xx (6455 §4.2.1)", _shakes({"Sec-WebSocket-Key": None}, _REFUSED)),
    "short-key": Case("4xx (6455 §4.2.1)", _shakes({"Sec-WebSocket-Key": "c2hvcnQ="}, _REFUSED)),
    "key-of-no-base64": Case("4xx (6455 §4.2.1)", _shakes({"Sec-WebSocket-Key": "!" * 24}, _REFUSED)),
    "old-version": Case(
        "4xx that names version 13 (6455 §4.2.2)",
        _shakes(
            {"Sec-WebSocket-Version": "8"},
            _REFUSED,
            also=lambda response: "13" in response.headers.get("sec-websocket-version", ""),
        ),
    ),
    "no-version": Case("4xx (6455 §4.2.1)", _shakes({"Sec-WebSocket-Version": None}, _REFUSED)),
    "no-upgrade": Case("4xx (6455 §4.2.1)", _shakes({"Upgrade": None}, _REFUSED)),
    "no-connection": Case("4xx (6455 §4.2.1)", _shakes({"Connection": None}, _REFUSED)),
    "no-host": Case("4xx (6455 §4.2.1)", _shakes({"Host": None}, _REFUSED)),
    "post": Case("4xx (6455 §4.2.1)", _shakes({"Content-Length": "0"}, _REFUSED, method="POST")),
    "http-1.0": Case("4xx or 505 (6455 §4.2.1)", _shakes({}, _REFUSED | {505}, version="HTTP/1.0")),
    "http-2.0": Case("4xx or 505 (9110 §2.5)", _shakes({}, _REFUSED | {505}, version="HTTP/2.0")),
    "two-keys": Case("4xx (6455 §11.3.1)", _shakes({"X": f"y\r\nSec-WebSocket-Key: {KEY}"}, _REFUSED)),
    **{
        f"not-ascii-in-{name.lower()}": Case("4xx (9110 §5.5)", _shakes({name: value}, _REFUSED))
        for name, value in NOT_ASCII.items()
    },
    "with-a-body": Case("400 (docs)", _shakes({"Content-Length": "5"}, {400})),
    "other-path": Case("404 (docs)", _shakes({}, {404}, path="/v2")),
    "no-subprotocol": Case("400 (docs)", _shakes({"Sec-WebSocket-Protocol": None}, {400})),
    "wrong-token": Case(
        "401 (docs)", _shakes({"Authorization": "Bearer not-a-token-of-anybody"}, {401}), needs_token=True
    ),
    "no-token": Case("401 (docs)", _shakes({"Authorization": None}, {401}), needs_token=True),
    "other-origin": Case("403 (docs)", _shakes({"Origin": "https://attacker.example"}, {403})),
}

FRAMES: Mapping[str, Case] = {
    "unmasked": Case("close 1002 (6455 §5.1)", _closes(frame(TEXT, command("ping", "hi"), mask=None))),
    "fragmented-command": Case("the command is answered (6455 §5.4)", _lives(_START, _END)),
    "ping-among-fragments": Case("a pong with its payload (6455 §5.4)", _pongs(b"now", _START, _END)),
    "masked": Case(
        "the command is answered (6455 §5.3)", _lives(frame(TEXT, command("ping", "hi"), mask=b"\x9a\x01~ "))
    ),
    "many-in-a-segment": Case("each is answered (6455 §5.4)", _lives(_HI * 20, expected=20)),
    **{
        f"reserved-bit-{bit}": Case(
            "close 1002 (6455 §5.2)", _closes(frame(TEXT, command("ping", "hi"), reserved=1 << (3 - bit)))
        )
        for bit in (1, 2, 3)
    },
    **{
        f"reserved-opcode-{opcode:x}": Case("close 1002 (6455 §5.2)", _closes(frame(opcode)))
        for opcode in (3, 4, 5, 6, 7, 0xB, 0xC, 0xD, 0xE, 0xF)
    },
    "fragmented-ping": Case("close 1002 (6455 §5.5)", _closes(frame(PING, fin=False), frame(CONTINUATION))),
    "fragmented-close": Case("close 1002 (6455 §5.5)", _closes(frame(CLOSE, fin=False), frame(CONTINUATION))),
    "long-ping": Case("close 1002 (6455 §5.5)", _closes(frame(PING, bytes(126)))),
    "continuation-of-nothing": Case("close 1002 (6455 §5.4)", _closes(frame(CONTINUATION, b"x"))),
    "text-among-fragments": Case("close 1002 (6455 §5.4)", _closes(_START, _HI)),
    "length-in-more-bytes": Case("close 1002 (6455 §5.2)", _closes(frame(TEXT, b"{}", length_bytes=2))),
    "length-in-eight-bytes": Case("close 1002 (6455 §5.2)", _closes(frame(TEXT, b"{}", length_bytes=8))),
    "length-with-high-bit": Case(
        "close 1002 or 1009 (6455 §5.2)",
        _closes(frame(TEXT, declared=1 << 63), codes=(PROTOCOL_ERROR, TOO_BIG)),
    ),
    "length-of-2^62": Case(
        "close 1009 before it is sent (6455 §10.4)", _closes(frame(TEXT, declared=1 << 62), codes=(TOO_BIG,))
    ),
    "too-large": Case("close 1009 (docs)", _closes(frame(TEXT, b"a" * 270_000), codes=(TOO_BIG,))),
    "too-large-in-fragments": Case(
        "close 1009 (docs)",
        _closes(frame(TEXT, fin=False), *[frame(CONTINUATION, b"a" * 10_000, fin=False)] * 30, codes=(TOO_BIG,)),
    ),
    "too-many-fragments": Case(
        "close 1009 (docs)",
        _closes(frame(TEXT, b"{", fin=False), *[frame(CONTINUATION, fin=False)] * 1_100, codes=(TOO_BIG,)),
    ),
    "binary": Case("an error reply or close 1003 (6455 §7.4.1)", _binary),
    "ping-of-125-bytes": Case("a pong with its payload (6455 §5.5.3)", _pongs(bytes(range(125)))),
    "empty-ping": Case("an empty pong (6455 §5.5.3)", _pongs(b"")),
    "pong-unasked": Case("no answer, and life goes on (6455 §5.5.3)", _lives(frame(PONG, b"?"), _HI)),
    "invalid-utf-8": Case("close 1007 (6455 §8.1)", _closes(frame(TEXT, b'"\xff"'), codes=(NOT_UTF8,))),
    "overlong-utf-8": Case("close 1007 (6455 §8.1)", _closes(frame(TEXT, b'"\xc0\xaf"'), codes=(NOT_UTF8,))),
    "surrogate-in-utf-8": Case("close 1007 (6455 §8.1)", _closes(frame(TEXT, b'"\xed\xa0\x80"'), codes=(NOT_UTF8,))),
    "cut-utf-8": Case("close 1007 (6455 §8.1)", _closes(frame(TEXT, b'"\xe2\x82'), codes=(NOT_UTF8,))),
    "invalid-utf-8-in-a-fragment": Case(
        "close 1007 (6455 §8.1)",
        _closes(frame(TEXT, b'"\xe2', fin=False), frame(CONTINUATION, b'a"'), codes=(NOT_UTF8,)),
    ),
    "utf-8-across-fragments": Case(
        "no close: the command is answered (6455 §5.6)",
        _closes(
            frame(TEXT, _EURO[:_BREAK], fin=False), frame(CONTINUATION, _EURO[_BREAK:]), _close(1000), codes=(1000,)
        ),
    ),
    "close": Case("close 1000 in return (6455 §5.5.1)", _closes(_close(1000), codes=(1000,))),
    "close-4999": Case("close 4999 in return (6455 §7.4.2)", _closes(_close(4999, b"bye"), codes=(4999,))),
    "frames-after-close": Case("they are ignored (6455 §5.5.1)", _nothing_after_close),
    "close-of-one-byte": Case("close 1002 (6455 §5.5.1)", _closes(frame(CLOSE, b"\x03"))),
    "close-reason-invalid-utf-8": Case(
        "close 1007 or 1002 (6455 §5.5.1)", _closes(_close(1000, b"\xff"), codes=(NOT_UTF8, PROTOCOL_ERROR))
    ),
    **{
        f"close-code-{code}": Case("close 1002 (6455 §7.4)", _closes(_close(code)))
        for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 2999)
    },
}


async def _empty_close(target: Target) -> Seen:
    async with talking(target.websocket, target.token) as talk:
        await talk.send(_close(None))
        first = await talk.receive()
        closed = await talk.wire.receive_until_closed()
    answered = first is not None and first.opcode == CLOSE
    return Seen("a close frame" if answered else "no close frame", answered and closed)


WEBSOCKET_CASES: Mapping[str, Case] = {
    **{f"websocket/{name}": case for name, case in {**HANDSHAKES, **FRAMES}.items()},
    "websocket/close-without-code": Case("a close frame in return (6455 §5.5.1)", _empty_close),
}
"""By their names."""
