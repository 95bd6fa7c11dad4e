"""A client that floods a server is slowed down, nothing that it sent is kept, and others are served meanwhile."""

from __future__ import annotations

import gc
import tracemalloc
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import orjson
import pytest
import trio
from trio.testing import memory_stream_pair
from wsproto.connection import Connection, ConnectionType
from wsproto.events import TextMessage

from footlights.token_bucket import TokenBucket
from footlights_transports.access.policy import AccessPolicy, WireLimits
from footlights_transports.websocket.frame_gate import MAX_AT_ONCE
from footlights_transports.websocket.stream import FRAME_COST, WireStream
from tests.kit.peers.kgent_peer import open_chat_house
from tests.kit.peers.ws_peer import HANDSHAKE, connect, open_house, shake_hands, text_frame
from tests.transports.websocket.test_ws_bad_input import BAD_FRAMES, piece

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from trio.testing import MockClock

    from tests.kit.peers.kgent_peer import ChatHouse
    from tests.kit.peers.ws_peer import House

PERTURB = HANDSHAKE.replace(b"/v1", b"/perturb/default")
OBSERVE = HANDSHAKE.replace(b"/v1", b"/observe/default")
TEXT_BEGINS, MORE, LAST = 0x01, 0x00, 0x80
FLOODS: dict[str, bytes] = {
    "pings": piece(0x89),
    "pongs": piece(0x8A),
    "empty frames": piece(0x81),
    "empty pieces": piece(TEXT_BEGINS) + piece(MORE) * 100 + piece(LAST),
    "refused commands": text_frame("[]"),
}
RATE = 10
"""Frames a second."""
SLOW = WireLimits(bytes_per_second=RATE * FRAME_COST, byte_burst=FRAME_COST)


async def dial(house: House | ChatHouse) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", house.listening.port)


async def receive_until(stream: trio.abc.Stream, wanted: bytes) -> bytes:
    got = b""
    while wanted not in got:
        data = await stream.receive_some()
        assert data, got
        got += data
    return got


@asynccontextmanager
async def served(request: bytes, limits: WireLimits) -> AsyncGenerator[House | ChatHouse]:
    """A server that this request finds its way to."""
    if request is HANDSHAKE:
        async with open_house(wire_limits=limits) as house:
            yield house
    else:
        async with open_chat_house(policy=AccessPolicy(limits=limits)) as house:
            yield house


# -- what is charged, and how the client is slowed down


@pytest.mark.parametrize("kind", FLOODS)
async def test_every_frame_is_charged_and_a_flood_is_slowed_down(kind: str, quiet_clock: MockClock) -> None:
    flood = FLOODS[kind] * (1 if kind == "empty pieces" else 102)
    async with open_house(wire_limits=SLOW) as house, await dial(house) as stream:
        await shake_hands(stream)
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream.send_all, flood + text_frame('{"op":"ping","id":"last"}'))
            await receive_until(stream, b'"last"')
        took = trio.current_time() - began
        # The last portion is handled at once, and its bytes are charged too.
        assert took >= (102 - MAX_AT_ONCE) / RATE


@pytest.mark.parametrize("request_head", [PERTURB, OBSERVE])
async def test_the_chat_gateway_slows_a_flood_down_too(request_head: bytes, quiet_clock: MockClock) -> None:
    async with served(request_head, SLOW) as house, await dial(house) as stream:
        await shake_hands(stream, request_head)
        began = trio.current_time()
        await stream.send_all(piece(0x8A) * 102 + piece(0x89, b"last"))
        await receive_until(stream, b"last")
        assert trio.current_time() - began >= (102 - MAX_AT_ONCE) / RATE


async def test_a_user_is_slowed_down_over_all_its_connections_and_no_other_user_is(quiet_clock: MockClock) -> None:
    tokens = {"ann": "ann's own token!", "bob": "bob's own token!"}
    burst = 100 * FRAME_COST
    limits = WireLimits(user_bytes_per_second=RATE * FRAME_COST, user_byte_burst=burst, max_frame_bytes=burst)
    as_ann, as_bob = ({"Authorization": f"Bearer {token}"} for token in tokens.values())
    async with (
        open_house(policy=AccessPolicy(tokens, limits=limits)) as house,
        connect(house, headers=as_ann) as first,
        connect(house, headers=as_ann) as second,
        connect(house, headers=as_bob) as bob,
    ):
        began = trio.current_time()
        for peer in (first, second):
            for _ in range(200):
                await peer.socket.pong(b"")
        await bob.ask("ping")
        assert trio.current_time() - began < 200 / RATE
        async with trio.open_nursery() as nursery:
            nursery.start_soon(first.ask, "ping")
            nursery.start_soon(second.ask, "ping")
        assert trio.current_time() - began >= (400 - 100 - 2 * MAX_AT_ONCE) / RATE


async def test_a_client_that_is_slowed_down_is_not_considered_gone(quiet_clock: MockClock) -> None:
    limits = WireLimits(bytes_per_second=FRAME_COST, byte_burst=FRAME_COST, keep_alive=1.0)
    async with open_house(wire_limits=limits) as house, await dial(house) as stream:
        await shake_hands(stream)
        await stream.send_all(piece(0x8A) * 100 + piece(0x89, b"last"))
        await receive_until(stream, b"last")


async def test_others_run_between_the_portions_of_a_flood() -> None:
    ours, theirs = memory_stream_pair()
    wire = WireStream(ours, lambda: None, 1_000)
    await theirs.send_all(HANDSHAKE)
    assert await wire.receive_some() == HANDSHAKE
    wire.let_frames_pass(TokenBucket(1e9, 1.0, trio.current_time()))
    portions, turns_of_another = 0, 0

    async def another() -> None:
        nonlocal turns_of_another
        while True:
            await trio.lowlevel.checkpoint()
            turns_of_another += 1

    await theirs.send_all(piece(0x8A) * 10_000)
    await theirs.send_eof()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(another)
        while await wire.receive_some():
            portions += 1
        nursery.cancel_scope.cancel()
    assert portions >= 10_000 // MAX_AT_ONCE
    assert turns_of_another >= portions - 1


# -- a frame that comes with the handshake


@pytest.mark.parametrize("request_head", [HANDSHAKE, PERTURB, OBSERVE])
async def test_a_frame_in_the_segment_of_the_handshake_is_answered(request_head: bytes) -> None:
    async with served(request_head, WireLimits()) as house, await dial(house) as stream:
        await stream.send_all(request_head + piece(0x89, b"in the handshake"))
        got = await receive_until(stream, b"in the handshake")
        assert got.startswith(b"HTTP/1.1 101 ")


# -- what is left of what was refused


TIMES = 5
LARGE = "x" * 200_000
UNKNOWN = {"id": 1, "session_id": "unknown", "turn_id": "unknown", "input": "Hello?", "seq": 1}
FIELDS = {
    "begin_turn": ("input",),
    "cancel": ("turn_id",),
    "finalize": ("turn_id",),
    "heard": ("turn_id", "seq"),
    "close": (),
    "subscribe": (),
}
REFUSED_COMMANDS: dict[str, str] = {
    **{name: frame for name, (frame, _) in BAD_FRAMES.items()},
    "a large list": orjson.dumps([LARGE]).decode(),
    "a large field": orjson.dumps({"op": "start", "id": 1, "admin": LARGE}).decode(),
    "a large input": orjson.dumps({"op": "begin_turn", "id": 1, "session_id": "ann", "input": LARGE}).decode(),
    **{
        op: orjson.dumps({"op": op, **{name: UNKNOWN[name] for name in ("id", "session_id", *names)}}).decode()
        for op, names in FIELDS.items()
    },
}
REFUSED_MESSAGES: dict[str, str] = {
    "not JSON": "xyzzy" * 1_000,
    "a list": "[]",
    "an object": "{}",
    "another version": '{"action":"message","version":"9","data":{"content":"hello"}}',
    "no content": '{"action":"message","version":"1.0.0","data":{}}',
    "a large list": orjson.dumps([LARGE]).decode(),
    "a large field": orjson.dumps({"action": "message", "version": "1.0.0", "data": {}, "more": LARGE}).decode(),
    "a bad id": '{"action":"message","version":"1.0.0","data":{"content":"hello","correlation_id":7}}',
}


async def garbage_of(stream: trio.abc.Stream, frames: Mapping[str, str], answer: bytes) -> dict[str, int]:
    """How many objects only the collector finds when each of these was sent and answered some times, if there are."""
    gc.collect()
    gc.freeze()
    gc.disable()
    found: dict[str, int] = {}
    client = Connection(ConnectionType.CLIENT)
    try:
        for name, frame in {"": "", **frames}.items():  # the first makes what is made once
            for _ in range(TIMES):
                await stream.send_all(client.send(TextMessage(frame)))
                await receive_until(stream, answer)
            found[name] = gc.collect()
    finally:
        gc.enable()
        gc.unfreeze()
    # Something else may happen now and then: but not each time.
    return {name: count for name, count in found.items() if name and count >= TIMES}


def limits_for(burst: int) -> WireLimits:
    """So many commands and no more, and as many bytes as anybody likes."""
    return WireLimits(commands_per_second=1e-6, command_burst=burst, byte_burst=1 << 40, user_byte_burst=1 << 40)


@pytest.mark.parametrize("burst", [1_000_000, 1], ids=["bad", "rate limited"])
async def test_refused_commands_leave_nothing_to_the_garbage_collector(burst: int) -> None:
    async with open_house(wire_limits=limits_for(burst)) as house, await dial(house) as stream:
        await shake_hands(stream)
        assert await garbage_of(stream, REFUSED_COMMANDS, b'"ok":false') == {}


@pytest.mark.parametrize("burst", [1_000_000, 1], ids=["bad", "rate limited"])
async def test_refused_messages_leave_nothing_to_the_garbage_collector(burst: int) -> None:
    async with (
        open_chat_house(policy=AccessPolicy(limits=limits_for(burst))) as house,
        await dial(house) as stream,
    ):
        await shake_hands(stream, PERTURB)
        assert await garbage_of(stream, REFUSED_MESSAGES, b'"event_type":"done"') == {}


@pytest.mark.parametrize("head", [HANDSHAKE, PERTURB], ids=["native", "chat"])
async def test_refused_input_keeps_no_memory(head: bytes) -> None:
    answer = b'"ok":false' if head is HANDSHAKE else b'"event_type":"done"'
    data = Connection(ConnectionType.CLIENT).send(TextMessage(REFUSED_COMMANDS["a large list"]))
    async with served(head, limits_for(1_000_000)) as house, await dial(house) as stream:
        await shake_hands(stream, head)
        taken: list[int] = []
        gc.disable()
        tracemalloc.start()
        try:
            for _ in range(2):
                for _ in range(20):
                    await stream.send_all(data)
                    await receive_until(stream, answer)
                taken.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
            gc.enable()
    assert taken[1] - taken[0] < len(LARGE), "twenty more of them, and not one is kept"
