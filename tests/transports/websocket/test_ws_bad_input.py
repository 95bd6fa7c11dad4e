"""Invalid input: it is answered, the connection goes on if it can, and no other client is affected."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

import orjson
import pytest
import trio
import trio.testing
from trio_websocket import ConnectionClosed

from footlights_transports.access.policy import AccessPolicy, WireLimits
from tests.kit.peers.ws_peer import (
    HANDSHAKE,
    connect,
    error_code,
    open_house,
    open_stream,
    read_until_end,
    shake_hands,
    text_frame,
)

if TYPE_CHECKING:
    from footlights_transports.access.session_access import SessionAccess
    from tests.kit.peers.ws_peer import Peer


async def close_code(peer: Peer, frame: str) -> int:
    """Send a frame for which the connection is closed."""
    with suppress(ConnectionClosed):
        await peer.socket.send_message(frame)
    with pytest.raises(ConnectionClosed) as closed:
        await peer.receive()
    assert closed.value.reason is not None
    return closed.value.reason.code


DEEP = "[" * 50 + "]" * 50

# What the frame is, and the id that its answer carries.
BAD_FRAMES: dict[str, tuple[str, Any]] = {
    "not JSON": ("{op: start}", None),
    "nothing": ("", None),
    "a list": ("[]", None),
    "a number": ("7", None),
    "NaN": ('{"op": "heard", "id": 1, "session_id": "s", "turn_id": "t", "seq": NaN}', None),
    "deep": (f'{{"op": "start", "id": 1, "params": {DEEP}}}', None),
    "very deep": ("[" * 100_000 + "]" * 100_000, None),
    "half a surrogate": ('{"op": "start", "id": "\\ud800"}', None),
    "no op": ('{"id": 1}', 1),
    "unknown op": ('{"op": "reboot", "id": 1}', 1),
    "op is a number": ('{"op": 4, "id": 1}', 1),
    "no id": ('{"op": "start"}', None),
    "id is null": ('{"op": "start", "id": null}', None),
    "id is true": ('{"op": "start", "id": true}', None),
    "id is a fraction": ('{"op": "start", "id": 1.5}', None),
    "id is negative": ('{"op": "start", "id": -1}', None),
    "id is huge": ('{"op": "start", "id": 99999999999999999999999}', None),
    "id is long": (f'{{"op": "start", "id": "{"x" * 200}"}}', None),
    "no session": ('{"op": "cancel", "id": "a"}', "a"),
    "session is a number": ('{"op": "cancel", "id": "a", "session_id": 1}', "a"),
    "input is null": ('{"op": "begin_turn", "id": 1, "session_id": "s", "input": null}', 1),
    "seq is huge": ('{"op": "heard", "id": 1, "session_id": "s", "turn_id": "t", "seq": 1e300}', 1),
    "seq is negative": ('{"op": "heard", "id": 1, "session_id": "s", "turn_id": "t", "seq": -1}', 1),
    "a field too many": ('{"op": "start", "id": 1, "admin": true}', 1),
    "after is a list": ('{"op": "subscribe", "id": 1, "session_id": "s", "after": []}', 1),
    "unknown mode": ('{"op": "begin_turn", "id": 1, "session_id": "s", "input": "?", "params": {"mode": "x"}}', 1),
}


@pytest.mark.parametrize("case", BAD_FRAMES)
async def test_a_bad_frame_is_refused_and_the_connection_lives_on(case: str) -> None:
    frame, command_id = BAD_FRAMES[case]
    async with open_house() as house, connect(house) as peer:
        await peer.socket.send_message(frame)
        assert error_code(await peer.reply(command_id)) == "invalid_command"
        await peer.take_turn(await peer.start())


async def test_a_binary_frame_is_refused_and_the_connection_lives_on() -> None:
    async with open_house() as house, connect(house) as peer:
        await peer.socket.send_message(b'{"op": "start", "id": 1}')
        assert error_code(await peer.reply(None)) == "invalid_command"
        await peer.take_turn(await peer.start())


async def test_the_stage_says_what_it_refuses() -> None:
    async with open_house() as house, connect(house) as peer:
        session_id = await peer.start()
        assert await peer.refusal("begin_turn", session_id=session_id, input="") == "invalid_command"
        assert await peer.refusal("begin_turn", session_id=session_id, input="x" * 70_000) == "too_large"
        assert await peer.refusal("cancel", session_id=session_id, turn_id="t9-000009") == "unknown_turn"
        assert await peer.refusal("finalize", session_id=session_id, turn_id="t9-000009") == "unknown_turn"
        assert await peer.refusal("start", params={"session_id": session_id}) == "invalid_command"


@pytest.mark.parametrize("letter", ["x", "ü", "🎭"])
async def test_a_frame_over_the_limit_closes_the_connection_and_no_other(letter: str) -> None:
    async with open_house(wire_limits=WireLimits(max_frame_bytes=1_000)) as house, connect(house) as bystander:
        async with connect(house) as peer:
            session_id = (await peer.ask("start"))["session_id"]
            fits = orjson.dumps({"op": "cancel", "id": "last", "session_id": session_id}).ljust(1_000).decode()
            await peer.socket.send_message(fits)
            assert (await peer.reply("last"))["ok"] is True
            assert await close_code(peer, letter * (1_000 // len(letter.encode()) + 1)) == 1009
        await bystander.take_turn(await bystander.start())


async def test_a_frame_far_over_the_limit_still_gets_its_answer() -> None:
    async with open_house(wire_limits=WireLimits(max_frame_bytes=1_000)) as house, connect(house) as peer:
        assert await close_code(peer, "x" * 1_000_000) == 1009


def closing(code: int) -> bytes:
    """How a close frame with this code goes on, after its length."""
    return code.to_bytes(2, "big")


def piece(first_byte: int, payload: bytes = b"") -> bytes:
    """A frame as a client sends it, masked with nothing."""
    assert len(payload) < 126
    return bytes((first_byte, 0x80 | len(payload))) + bytes(4) + payload


def close_sent(answer: bytes) -> int:
    """The code of the close frame that is the whole answer."""
    assert answer[:1] == b"\x88"
    assert len(answer) == answer[1] + 2, "something came after the close frame"
    return int.from_bytes(answer[2:4], "big")


TEXT_BEGINS, MORE, LAST, TEXT, CLOSE = 0x01, 0x00, 0x80, 0x81, 0x88

WRONG_BYTES: dict[str, tuple[bytes, int]] = {
    "not UTF-8": (piece(TEXT, b"xyzzy\xff\xfe"), 1007),
    "half a letter": (piece(TEXT, b"xyzzy\xc3"), 1007),
    "not UTF-8, in the last piece": (piece(TEXT_BEGINS, b"xyzzy") + piece(LAST, b"\xff"), 1007),
    "a goodbye that is not UTF-8": (piece(CLOSE, closing(1000) + b"xyzzy\xff"), 1007),
    "no mask": (b"\x81\x05xyzzy", 1002),
    "a piece of nothing": (piece(LAST, b"xyzzy"), 1002),
    "an unknown kind of frame": (piece(0x83, b"xyzzy"), 1002),
    "a ping in pieces": (piece(0x09, b"xyzzy"), 1002),
    "a length that needs fewer bytes": (b"\x81\xfe\x00\x05" + bytes(4) + b"xyzzy", 1002),
    "a frame that will be too long": (b"\x81\xff" + (1 << 40).to_bytes(8, "big") + bytes(4) + b"xyzzy", 1009),
    "a ping that will be too long": (b"\x89\xff" + (1 << 40).to_bytes(8, "big") + bytes(4) + b"xyzzy", 1009),
}


@pytest.mark.parametrize("case", WRONG_BYTES)
async def test_a_violation_of_websocket_is_named_in_the_close_frame_and_not_logged(
    case: str, caplog: pytest.LogCaptureFixture
) -> None:
    sent, code = WRONG_BYTES[case]
    caplog.set_level(logging.DEBUG)
    async with open_house() as house, connect(house) as bystander:
        async with await open_stream(house) as stream:
            await shake_hands(stream)
            await stream.send_all(sent)
            assert close_sent(await read_until_end(stream)) == code
        await bystander.take_turn(await bystander.start())
    assert not [record for record in caplog.records if record.name.startswith("footlights")]
    assert "xyzzy" not in caplog.text
    assert "0xff" not in caplog.text


async def test_commands_before_a_violation_are_performed() -> None:
    async with open_house() as house, await open_stream(house) as stream:
        await shake_hands(stream)
        await stream.send_all(text_frame('{"op":"start","id":1}') + piece(TEXT, b"\xff"))
        await read_until_end(stream)
        assert house.stage.statistics().sessions == 1


async def test_a_client_that_closes_with_the_code_of_a_fault_gets_one_close_frame() -> None:
    async with open_house() as house, await open_stream(house) as stream:
        await shake_hands(stream)
        await stream.send_all(piece(CLOSE, closing(1007)))
        assert close_sent(await read_until_end(stream)) == 1007


# -- handshakes


MALFORMED: dict[str, bytes] = {
    "no HTTP": b"Good evening\r\n\r\n",
    "a request for a page": b"GET /v1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a host that is not ASCII": HANDSHAKE.replace(b"Host: localhost", b"Host: \xff"),
    "a subprotocol that is not ASCII": HANDSHAKE.replace(b"footlights.v1", b"\xff"),
    "an extension that is not ASCII": HANDSHAKE.replace(b"\r\n\r\n", b"\r\nSec-WebSocket-Extensions: \xff\r\n\r\n"),
    "a connection that is not ASCII": HANDSHAKE.replace(b"Connection: Upgrade", b"Connection: \xff"),
}


@pytest.mark.parametrize("case", MALFORMED)
async def test_malformed_handshakes_are_answered_counted_and_logged_in_numbers(
    case: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_house() as house, connect(house) as bystander:
        for _ in range(20):
            async with await open_stream(house) as stream:
                await stream.send_all(MALFORMED[case])
                assert (await read_until_end(stream)).startswith(b"HTTP/1.1 400 ")
        await bystander.take_turn(await bystander.start())
        assert sum(house.access.incidents.counts.values()) == 20
    assert len([record for record in caplog.records if record.name.startswith("footlights")]) <= 1


async def test_refused_handshakes_are_counted_by_their_code() -> None:
    async with open_house(policy=AccessPolicy({"ann": "ann's own token!"})) as house:
        async with await open_stream(house) as stream:
            assert (await shake_hands(stream)).startswith(b"HTTP/1.1 401 ")
        async with await open_stream(house) as stream:
            await stream.send_eof()
            assert await read_until_end(stream) == b""
        assert house.access.incidents.counts == {"ws_handshake_unauthorized": 1, "ws_handshake_incomplete": 1}


KEY_HEADER = b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
VERSION_HEADER = b"Sec-WebSocket-Version: 13\r\n"

# RFC 6455, 4.2.1, 11.3.1 and 11.3.5: the handshake, the status of the answer, and the code of the error.
FORBIDDEN: dict[str, tuple[bytes, int, str]] = {
    "a key of 5 bytes": (HANDSHAKE.replace(KEY_HEADER, b"Sec-WebSocket-Key: c2hvcnQ=\r\n"), 400, "invalid_command"),
    "a key of 17 bytes": (
        HANDSHAKE.replace(KEY_HEADER, b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAAA=\r\n"), 400, "invalid_command"
    ),
    "a key of no base64": (HANDSHAKE.replace(b"A" * 22, b"!" * 22), 400, "invalid_command"),
    "a key without padding": (HANDSHAKE.replace(b"A" * 22 + b"==", b"A" * 22), 400, "invalid_command"),
    "a key that is not ASCII": (HANDSHAKE.replace(b"A" * 22, b"\xff" * 22), 400, "invalid_command"),
    "two keys": (HANDSHAKE.replace(KEY_HEADER, 2 * KEY_HEADER), 400, "invalid_command"),
    "two versions": (
        HANDSHAKE.replace(VERSION_HEADER, b"Sec-WebSocket-Version: 8\r\n" + VERSION_HEADER), 400, "invalid_command"
    ),
    "HTTP/1.0": (HANDSHAKE.replace(b"HTTP/1.1", b"HTTP/1.0"), 505, "unsupported_version"),
    "HTTP/2.0": (HANDSHAKE.replace(b"HTTP/1.1", b"HTTP/2.0"), 505, "unsupported_version"),
}  # fmt: skip


@pytest.mark.parametrize("case", FORBIDDEN)
async def test_a_handshake_that_the_rfc_forbids_is_refused_and_counted(case: str) -> None:
    handshake, status, code = FORBIDDEN[case]
    async with open_house() as house:
        async with await open_stream(house) as stream:
            assert (await shake_hands(stream, handshake)).startswith(f"HTTP/1.1 {status} ".encode())
            assert orjson.loads(await read_until_end(stream))["error"]["code"] == code
        assert house.access.incidents.counts == {f"ws_handshake_{code}": 1}


async def test_a_handshake_in_a_later_version_of_http_1_is_accepted() -> None:
    async with open_house() as house, await open_stream(house) as stream:
        answer = await shake_hands(stream, HANDSHAKE.replace(b"HTTP/1.1", b"HTTP/1.2"))
        assert answer.startswith(b"HTTP/1.1 101 ")


# -- messages in pieces


async def test_a_command_may_come_in_pieces_and_byte_by_byte() -> None:
    async with open_house() as house, await open_stream(house) as stream:
        await shake_hands(stream)
        command = (
            piece(TEXT_BEGINS, b'{"op":')
            + piece(0x89, b"ping")
            + piece(MORE)
            + piece(LAST, b'"start","id":"\xc3\xa4"}')
        )
        for at in range(len(command)):
            await stream.send_all(command[at : at + 1])
            await trio.testing.wait_all_tasks_blocked()
        got = bytearray()
        while b"session_id" not in got:
            got += await stream.receive_some()
        assert got.startswith(b"\x8a\x04ping")
        assert house.stage.statistics().sessions == 1


@pytest.mark.parametrize("in_a_piece", [b"", b"x"])
async def test_a_message_in_endless_pieces_ends_the_connection(in_a_piece: bytes) -> None:
    async with open_house() as house, await open_stream(house) as stream:
        await shake_hands(stream)
        await stream.send_all(piece(TEXT_BEGINS) + piece(MORE, in_a_piece) * 2_000)
        assert close_sent(await read_until_end(stream)) == 1009


async def test_the_pieces_of_a_message_are_no_longer_than_a_frame_may_be() -> None:
    async with open_house(wire_limits=WireLimits(max_frame_bytes=1_000)) as house, await open_stream(house) as stream:
        await shake_hands(stream)
        await stream.send_all(piece(TEXT_BEGINS) + piece(MORE, b"x" * 100) * 10 + piece(0x89))
        assert await stream.receive_some() == b"\x8a\x00"
        await stream.send_all(piece(MORE, b"x"))
        assert close_sent(await read_until_end(stream)) == 1009


async def test_a_burst_of_commands_is_slowed_down_and_each_is_answered() -> None:
    limits = WireLimits(commands_per_second=0.001, command_burst=10)
    async with open_house(wire_limits=limits) as house, connect(house) as peer:
        async with trio.open_nursery() as nursery:

            async def give_thousands() -> None:
                for _ in range(2_000):
                    await peer.send("start")
                await peer.socket.send_message("not JSON")

            nursery.start_soon(give_thousands)
            replies = [await peer.reply(command_id) for command_id in [*range(1, 2_001), None]]
        assert [reply["ok"] for reply in replies] == [True] * 10 + [False] * 1_991
        assert {error_code(reply) for reply in replies[10:]} == {"rate_limited"}


async def test_a_user_is_slowed_down_over_all_its_connections() -> None:
    limits = WireLimits(user_commands_per_second=0.001, user_command_burst=2)
    async with open_house(wire_limits=limits) as house:
        for _ in range(2):
            async with connect(house) as peer:
                await peer.ask("start")
        async with connect(house) as peer:
            await peer.send("start")
            assert error_code(await peer.reply(1)) == "rate_limited"


async def test_a_command_that_crashes_is_internal_and_only_its_place_is_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object, **__: object) -> NoReturn:
        raise RuntimeError("xyzzy")

    async def crash_later(*_: object) -> NoReturn:
        await trio.lowlevel.checkpoint()
        crash()

    async with open_house() as house, connect(house) as peer:
        session_id = await peer.start()
        with monkeypatch.context() as patch:
            access: SessionAccess = house.access
            patch.setattr(access, "begin_turn", crash)
            patch.setattr(access, "finalize", crash_later)
            patch.setattr(access, "subscribe", crash)
            assert await peer.refusal("begin_turn", session_id=session_id, input="xyzzy") == "internal"
            assert await peer.refusal("finalize", session_id=session_id, turn_id="xyzzy") == "internal"
            assert await peer.refusal("subscribe", session_id="xyzzy") == "internal"
        await peer.take_turn(session_id)
    assert "RuntimeError at test_ws_bad_input.py" in caplog.text
    assert "xyzzy" not in caplog.text


async def test_nothing_that_a_client_says_is_logged_at_any_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("trio-websocket", "footlights.ws", "wsproto", "h11"):
        caplog.set_level(logging.DEBUG, name)
    async with open_house() as house, connect(house, "?batch=xyzzy", headers={"X-Name": "xyzzy"}) as peer:
        await peer.take_turn(await peer.start(), "xyzzy")
        await peer.socket.send_message("xyzzy")
        await peer.reply(None)
        with trio.move_on_after(5):
            await peer.socket.ping(b"xyzzy")
        await peer.socket.aclose(4000, "xyzzy")
    assert "xyzzy" not in caplog.text
