"""Slow, stalled and vanishing observers: they delay no other, and a slow one misses nothing."""

from __future__ import annotations

import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from trio.testing import memory_stream_pair
from trio_websocket import ConnectionClosed, wrap_client_stream

from footlights import BudgetConfig, SessionParams, open_stage
from footlights_actors import Flood, Pause, Say, ScriptedModel, standard_cast
from footlights_transports.access.policy import User
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.views.base.view import run_views
from footlights_transports.views.kgent.frames import PIECE_BYTES
from footlights_transports.views.kgent.pure.messages import ChatEvent, ChatMessage
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.kgent.pure.wire import PerturbQuery
from footlights_transports.views.kgent.room import MAX_BEHIND
from footlights_transports.websocket.server import WsServer
from footlights_transports.websocket.stream import close_frame
from footlights_transports.worlds.world import OneWorld
from tests.kit.peers.kgent_peer import Client, KnownGateway, observe, open_chat_house, perturb, text
from tests.kit.peers.ws_peer import shake_hands

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio.testing import MockClock

    from footlights_transports.views.kgent.gateway import KgentGateway
    from tests.kit.peers.kgent_peer import ChatHouse

OBSERVE = (
    b"GET /observe/default HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
LONG = BudgetConfig(whisper_max=14_000, dialogue_max=14_000, deep_max=14_000)
PLENTY = ChatFluxConfig(session_tokens=10_000_000, message_burst=1_000)
DIALOGUES = 12
LENGTH = 14_000 * 32
"""Of each answer: together far more than socket buffers hold."""


def longwinded() -> ScriptedModel:
    return ScriptedModel(lambda _: [Flood("x" * 3_200, 140)])


@asynccontextmanager
async def stalled_observer(house: ChatHouse) -> AsyncGenerator[trio.SocketStream]:
    """An observer that never reads."""
    narrow = trio.socket.socket()
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    await narrow.connect(("127.0.0.1", house.listening.port))
    async with trio.SocketStream(narrow) as stream:
        await shake_hands(stream, OBSERVE)
        yield stream


async def test_slow_stalled_and_vanishing_observers_do_not_delay_a_fast_one_over_sockets() -> None:
    async with (
        open_chat_house(longwinded(), PLENTY, budget=LONG) as house,
        observe(house) as fast,
        observe(house) as slow,
        stalled_observer(house),
        stalled_observer(house) as vanishing,
        perturb(house) as sender,
    ):
        for number in range(DIALOGUES):
            await sender.send(correlation_id=str(number))
            heard = await fast.hear(str(number))
            assert len(text(heard)) == LENGTH
            if number == 1:
                vanishing.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                vanishing.socket.close()
        assert slow.frames == [], "it has not begun to read"
        for number in range(DIALOGUES):
            assert await slow.hear(str(number)) == fast.told(str(number))


# -- with a mock clock


@asynccontextmanager
async def open_lane(model: ScriptedModel, config: ChatFluxConfig) -> AsyncGenerator[tuple[KgentGateway, WsServer]]:
    async with open_stage(standard_cast(model)) as stage, trio.open_nursery() as nursery:
        access = SessionAccess(stage)
        view = KnownGateway(config)
        server = WsServer(OneWorld(access, await nursery.start(run_views, access, [view])))
        nursery.start_soon(server.run, trio.lowlevel.checkpoint)
        await trio.testing.wait_all_tasks_blocked()
        yield view.gateway, server
        nursery.cancel_scope.cancel()


class Clogged(trio.abc.SendStream):
    """A send stream that blocks forever while it is not open."""

    def __init__(self, stream: trio.abc.SendStream) -> None:
        self.stream = stream
        self.is_open = True

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if not self.is_open:
            await trio.sleep_forever()
        await self.stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def aclose(self) -> None:
        await self.stream.aclose()


def say(gateway: KgentGateway, name: str) -> None:
    message = ChatMessage("user", "Tell me all of it.", correlation_id=name)
    gateway.enter(User(), "default", PerturbQuery()).perturb(message)


async def test_an_observer_that_takes_nothing_is_closed_after_the_send_timeout(quiet_clock: MockClock) -> None:
    model, config = ScriptedModel(lambda _: [Say("Well.")]), ChatFluxConfig(heartbeat_interval=1e6)
    async with open_lane(model, config) as (gateway, server), trio.open_nursery() as nursery:
        ours, theirs = memory_stream_pair()
        send_stream = Clogged(ours.send_stream)
        ended = trio.Event()

        async def serve() -> None:
            await server.serve(trio.StapledStream(send_stream, ours.receive_stream))
            ended.set()

        nursery.start_soon(serve)
        await shake_hands(theirs, OBSERVE)
        send_stream.is_open = False
        began = trio.current_time()
        say(gateway, "a")
        await ended.wait()
        assert trio.current_time() - began <= gateway.access.policy.limits.send_timeout + 2
        assert gateway.room(User(), "default").observe({}).unknown == {}


async def test_an_observer_that_is_too_far_behind_is_closed_with_1013(quiet_clock: MockClock) -> None:
    config = ChatFluxConfig(message_burst=1_000, heartbeat_interval=1e6)
    model = ScriptedModel(lambda _: [Say("Well.")])
    async with open_lane(model, config) as (gateway, server), trio.open_nursery() as nursery:
        ours, theirs = memory_stream_pair()
        nursery.start_soon(server.serve, ours)
        client = Client(await wrap_client_stream(nursery, theirs, "localhost", "/observe/default"))  # type: ignore[arg-type]
        room = gateway.room(User(), "default")
        await trio.testing.wait_all_tasks_blocked()
        # All at once, before its connection gets to read any of them.
        for number in range(MAX_BEHIND + 1):
            dialogue = room.begin(ChatMessage("user", "Hello?", correlation_id=str(number)), lambda: False)
            room.end(dialogue)
        with pytest.raises(ConnectionClosed) as closed:
            await client.receive()
        assert closed.value.reason is not None
        assert closed.value.reason.code == 1013
        nursery.cancel_scope.cancel()


class Trickle(Clogged):
    """A send stream that takes so many seconds for each full piece."""

    seconds = 0.0

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await trio.sleep(self.seconds * len(data) / PIECE_BYTES)
        await self.stream.send_all(data)


class HeldUp(Trickle):
    """The same, but with 0 seconds it sends at once, even when cancelled, as if the socket buffer had room."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        if self.seconds:
            await super().send_all(data)
            return
        with trio.CancelScope(shield=True):
            await self.stream.send_all(data)


async def three_who_delay(server: WsServer, nursery: trio.Nursery) -> trio.abc.AsyncResource:
    """Connect a slow, a stalled and a vanishing observer; returns the stream of the last."""
    ours, slow = memory_stream_pair()
    trickle = Trickle(ours.send_stream)
    nursery.start_soon(server.serve, trio.StapledStream(trickle, ours.receive_stream))
    ours, stalled = memory_stream_pair()
    send_stream = Clogged(ours.send_stream)
    nursery.start_soon(server.serve, trio.StapledStream(send_stream, ours.receive_stream))
    ours, vanishing = memory_stream_pair()
    nursery.start_soon(server.serve, ours)
    for each in (slow, stalled, vanishing):
        await shake_hands(each, OBSERVE)
    trickle.seconds, send_stream.is_open = 3_000, False
    return vanishing


async def times_of_a_fast_one(*, alone: bool) -> list[tuple[float, str]]:
    """When a fast observer gets each event of two dialogues, alone or beside slow ones."""
    model = ScriptedModel(lambda _: [Say("One."), Pause(1), Say(" Two."), Pause(1), Say(" Three.")])
    config = ChatFluxConfig(buffer_chunks=1, heartbeat_interval=1e6)
    heard: list[tuple[float, str]] = []
    async with open_lane(model, config) as (gateway, server), trio.open_nursery() as nursery:
        vanishing = None if alone else await three_who_delay(server, nursery)
        ours, theirs = memory_stream_pair()
        nursery.start_soon(server.serve, ours)
        fast = Client(await wrap_client_stream(nursery, theirs, "localhost", "/observe/default"))  # type: ignore[arg-type]
        await trio.testing.wait_all_tasks_blocked()
        for name in "ab":
            began = trio.current_time()
            say(gateway, name)
            while not fast.told(name) or fast.frames[-1]["event_type"] != "done":
                frame = await fast.receive()
                heard.append((trio.current_time() - began, frame["event_type"]))
                if vanishing is not None and name == "b":
                    await vanishing.aclose()
        nursery.cancel_scope.cancel()
    return heard


async def test_a_fast_observer_gets_events_at_once_despite_slow_ones(quiet_clock: MockClock) -> None:
    when_it_is_said = [(0, "chunk"), (1, "chunk"), *((2, each) for each in ("chunk", "chunk", "message", "done"))]
    for alone in (True, False):
        assert await times_of_a_fast_one(alone=alone) == when_it_is_said * 2


async def test_the_send_timeout_applies_to_each_piece(quiet_clock: MockClock) -> None:
    model, config = ScriptedModel(lambda _: [Say("x" * 6_000)]), ChatFluxConfig(heartbeat_interval=1e6)
    async with open_lane(model, config) as (gateway, server), trio.open_nursery() as nursery:
        ours, theirs = memory_stream_pair()
        send_stream = Trickle(ours.send_stream)
        nursery.start_soon(server.serve, trio.StapledStream(send_stream, ours.receive_stream))
        client = Client(await wrap_client_stream(nursery, theirs, "localhost", "/observe/default"))  # type: ignore[arg-type]
        send_stream.seconds = gateway.access.policy.limits.send_timeout * 0.4
        room = gateway.room(User(), "default")
        for number, length in enumerate((6_000,) * 40 + (6 * PIECE_BYTES,)):
            dialogue = room.begin(ChatMessage("user", "Hello?", correlation_id=str(number)), lambda: False)
            payload = {"correlation_id": str(number)}
            room.add(dialogue, ChatEvent("chunk", {"content": "x" * length, **payload}, 1, 1.0))
            room.end(dialogue, [ChatEvent("done", payload, 2, 1.0)])
        began = trio.current_time()
        assert len(text(await client.hear("40"))) == 6 * PIECE_BYTES
        assert trio.current_time() - began > gateway.access.policy.limits.send_timeout
        nursery.cancel_scope.cancel()


@pytest.mark.shows("gateway-52")
async def test_a_ping_follows_an_interval_without_events(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [Say("Well.")])
    async with open_lane(model, ChatFluxConfig()) as (gateway, server), trio.open_nursery() as nursery:
        ours, theirs = memory_stream_pair()
        nursery.start_soon(server.serve, ours)
        await shake_hands(theirs, OBSERVE)
        began = trio.current_time()
        assert await theirs.receive_some(2) == b"\x89\x00"
        assert trio.current_time() - began == pytest.approx(5.0)
        await trio.sleep(3)
        say(gateway, "a")
        while bytes(await theirs.receive_some()) != b"\x89\x00":
            pass
        assert trio.current_time() - began == pytest.approx(13.0)
        nursery.cancel_scope.cancel()


async def test_an_observer_lost_during_the_handshake_is_unregistered(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [Say("Well.")])
    async with open_lane(model, ChatFluxConfig()) as (gateway, server):
        ours, theirs = memory_stream_pair()
        await theirs.send_all(OBSERVE)
        await theirs.receive_stream.aclose()
        await server.serve(ours)
        assert gateway.room(User(), "default").is_empty


async def test_an_observer_lost_at_a_ping_is_unregistered(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [Say("Well.")])
    async with open_lane(model, ChatFluxConfig()) as (gateway, server), trio.open_nursery() as nursery:
        ours, theirs = memory_stream_pair()
        nursery.start_soon(server.serve, ours)
        await shake_hands(theirs, OBSERVE)
        await trio.sleep(1)
        assert not gateway.room(User(), "default").is_empty
        await theirs.receive_stream.aclose()
        await trio.sleep(5)
        assert [gateway.room(User(), "default").is_empty] == [True]


OVERHEAR = OBSERVE.replace(b"/default", b"/default?session=shared")


async def test_nothing_follows_a_close_frame(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [Say("Well.")])
    async with open_lane(model, ChatFluxConfig()) as (gateway, server), trio.open_nursery() as nursery:
        session = gateway.access.start(User(), SessionParams(session_id="shared"))
        ours, theirs = memory_stream_pair()
        send_stream = HeldUp(ours.send_stream)
        nursery.start_soon(server.serve, trio.StapledStream(send_stream, ours.receive_stream))
        await shake_hands(theirs, OVERHEAR)
        await trio.testing.wait_all_tasks_blocked()
        send_stream.seconds = 10_000  # so that the close frame is still being sent when the turn ends
        room = gateway.room(User(), "default")
        for number in range(MAX_BEHIND + 1):
            dialogue = room.begin(ChatMessage("user", "Hello?", correlation_id=str(number)), lambda: False)
            room.end(dialogue)
        await trio.testing.wait_all_tasks_blocked()
        send_stream.seconds = 0  # for whatever might follow it
        await session.finalize(session.begin_turn("Hello?")).wait()
        await trio.testing.wait_all_tasks_blocked()
        received = b""
        with trio.move_on_after(60):
            while data := bytes(await theirs.receive_some()):
                received += data
        assert received == close_frame(1013, "You are too slow; come back with your correlation_id.")
        nursery.cancel_scope.cancel()


async def test_an_observer_lost_while_its_tap_sends_is_unregistered(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [Say("Well.")])
    async with open_lane(model, ChatFluxConfig()) as (gateway, server), trio.open_nursery() as nursery:
        session = gateway.access.start(User(), SessionParams(session_id="shared"))
        ours, theirs = memory_stream_pair()
        nursery.start_soon(server.serve, ours)
        await shake_hands(theirs, OVERHEAR)
        await trio.testing.wait_all_tasks_blocked()
        await theirs.receive_stream.aclose()
        await session.finalize(session.begin_turn("Hello?")).wait()
        await trio.testing.wait_all_tasks_blocked()
        assert [gateway.room(User(), "default").is_empty] == [True]
        assert session.statistics().observers == ()
