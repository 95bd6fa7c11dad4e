"""The broadcaster: one task sends for all connections, and one that has to wait delays no other."""

from __future__ import annotations

import socket
from collections import Counter
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, cast

import orjson
import pytest
import trio
import trio.testing
from trio_websocket import ConnectionClosed, HandshakeError, wrap_client_stream

from footlights import EventType, Limits, laws, open_stage, wire
from footlights.testing import Trial, cancel_everywhere
from footlights_actors import Flood, Line, Pause, Say, ScriptedModel, standard_cast
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.encodings import Encodings
from footlights_transports.websocket.broadcaster import LONGEST_GATHERING, Broadcaster, Delivery
from footlights_transports.websocket.server import WsServer
from footlights_transports.worlds.world import OneWorld
from tests.kit.serving import native

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

    from trio.testing import MockClock
    from trio_websocket import WebSocketConnection

    from footlights import InteractionSession, Stage, StreamEvent
    from footlights_transports.websocket.writer import FrameWriter

TLS = pytest.mark.parametrize("as_with_tls", [False, True], ids=["plain", "as with TLS"])
WORDS: tuple[Line, ...] = tuple(line for _ in range(50) for line in (Flood(" word", 1), Pause(0.01)))


class Encoding(Encodings):
    """Encodes with a given function."""

    def __init__(self, encode: Callable[[StreamEvent], bytes]) -> None:
        super().__init__()
        self._told = encode

    def encode(self, event: StreamEvent) -> bytes:
        return self._told(event)


class House:
    """A server whose connections are socket pairs: data arrives at once, and little fits between the two ends."""

    def __init__(self, stage: Stage, server: WsServer, nursery: trio.Nursery) -> None:
        self.stage = stage
        self._server = server
        self._nursery = nursery
        self._sockets: list[trio.socket.SocketType] = []

    async def connect(
        self, path: str = "/v1", buffer: int | None = None, *, as_with_tls: bool = False
    ) -> WebSocketConnection:
        ours, theirs = trio.socket.socketpair()
        self._sockets += (ours, theirs)
        if buffer is not None:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
        stream = trio.SocketStream(ours)
        self._server.connections.start_soon(self._serve, trio.StapledStream(stream, stream) if as_with_tls else stream)
        return await wrap_client_stream(
            self._nursery,
            trio.SocketStream(theirs),
            "localhost",
            path,
            subprotocols=["footlights.v1"],
            message_queue_size=0,
        )

    def close(self) -> None:
        for each in self._sockets:
            each.close()

    async def _serve(self, stream: trio.abc.Stream) -> None:
        async with stream:
            await self._server.serve(stream)


@asynccontextmanager
async def open_house(
    script: tuple[Line, ...] = WORDS, encode: Callable[[StreamEvent], bytes] | None = None, limits: Limits | None = None
) -> AsyncGenerator[House]:
    cast = standard_cast(ScriptedModel(lambda _: script))
    async with open_stage(cast, limits=limits) as stage, trio.open_nursery() as nursery:
        access = SessionAccess(stage)
        if encode is not None:
            access.admission.encodings = Encoding(encode)
        server = WsServer(OneWorld(access, native(access)))
        accepting = trio.Event()

        async def accept() -> None:
            accepting.set()
            await trio.lowlevel.checkpoint()

        nursery.start_soon(server.run, accept)
        await accepting.wait()
        house = House(stage, server, nursery)
        try:
            yield house
        finally:
            nursery.cancel_scope.cancel()
    house.close()


async def follow(client: WebSocketConnection, session: InteractionSession, after: str = "") -> None:
    await client.send_message(f'{{"op":"subscribe","id":1,"session_id":"{session.session_id}"{after}}}')
    assert orjson.loads(await client.get_message())["ok"]


async def take_turn(client: WebSocketConnection) -> list[list[StreamEvent]]:
    """The events of each frame of a turn."""
    frames: list[list[StreamEvent]] = []
    while not (frames and frames[-1][-1].event_type is EventType.COMMIT_FINAL):
        frame = orjson.loads(await client.get_message())
        frames.append([wire.decode(orjson.dumps(event)) for event in (frame if isinstance(frame, list) else [frame])])
    assert laws.check([event for events in frames for event in events]) == []
    return frames


class Steps(trio.abc.Instrument):
    def __init__(self) -> None:
        self.by_name: Counter[str] = Counter()

    def __enter__(self) -> Steps:
        trio.lowlevel.add_instrument(self)
        return self

    def __exit__(self, *_: object) -> None:
        trio.lowlevel.remove_instrument(self)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.by_name[task.name] += 1


async def test_while_every_client_reads_only_the_broadcaster_is_woken(quiet_clock: MockClock) -> None:
    async with open_house() as house:
        session = house.stage.start()
        clients = [await house.connect() for _ in range(5)]
        for client in clients:
            await follow(client, session)
        with Steps() as steps:
            session.begin_turn("Go on.")
            for client in clients:
                assert len(await take_turn(client)) >= 50
        followers = sum(count for name, count in steps.by_name.items() if "_follow" in name)
        assert followers == 0
        assert 50 <= steps.by_name["ws broadcaster"] < 150


@TLS
async def test_a_client_that_does_not_read_delays_no_other_and_gets_everything_in_order_later(
    as_with_tls: bool, quiet_clock: MockClock
) -> None:
    async with open_house(tuple(Flood("x" * 30, 1) for _ in range(200))) as house:
        session = house.stage.start()
        slow, quick = await house.connect(buffer=1, as_with_tls=as_with_tls), await house.connect()
        for client in (slow, quick):
            await follow(client, session)
        for _ in range(3):
            session.begin_turn("Go on.")
            await take_turn(quick)
        await slow.send_message('{"op":"ping","id":7}')
        assert await take_commits(slow, 3) == [7]
        await trio.testing.wait_all_tasks_blocked()
        with Steps() as steps:
            session.begin_turn("And again.")
            await take_commits(slow, 1)
        assert steps.by_name["ws broadcaster"] > 0


async def take_commits(client: WebSocketConnection, commits: int) -> list[int]:
    """Take events until so many commits; return the ids of replies that came meanwhile."""
    events: list[StreamEvent] = []
    replies: list[int] = []
    while commits:
        frame = orjson.loads(await client.get_message())
        if "reply" in frame:
            replies.append(frame["reply"])
        else:
            events.append(wire.decode(orjson.dumps(frame)))
            commits -= events[-1].event_type is EventType.COMMIT_FINAL
    assert laws.check(events) == []
    return replies


@TLS
async def test_a_batch_is_sent_at_once_after_silence_and_then_at_most_every_twenty_milliseconds(
    as_with_tls: bool, quiet_clock: MockClock
) -> None:
    async with open_house() as house:
        session = house.stage.start()
        client = await house.connect("/v1?batch=1", as_with_tls=as_with_tls)
        await follow(client, session)
        await trio.sleep(1)
        began = trio.current_time()
        session.begin_turn("Go on.")
        frames = await take_turn(client)
        assert frames[0][0].event_type is EventType.TURN_ACCEPTED
        assert trio.current_time() - began == pytest.approx(0.5, abs=0.05)
        assert 20 <= len(frames) <= 27


@TLS
async def test_time_in_which_nothing_was_said_delays_no_batch(as_with_tls: bool, quiet_clock: MockClock) -> None:
    words = tuple(line for _ in range(20) for line in (Flood(" word", 1), Pause(0.05)))
    async with open_house(words) as house:
        session = house.stage.start()
        client = await house.connect("/v1?batch=1", as_with_tls=as_with_tls)
        await follow(client, session)
        session.begin_turn("Go on.")
        delays: list[float] = []
        is_over = False
        while not is_over:
            frame = orjson.loads(await client.get_message())
            last = frame[-1] if isinstance(frame, list) else frame
            delays.append(trio.current_time() - last["mono_ts_ms"] / 1000)
            is_over = last["event_type"] == "commit_final"
        assert len(delays) >= 20, "each word comes in a frame of its own"
        assert max(delays) < 0.025


@TLS
async def test_rounds_of_batches_take_a_tenth_of_the_time_and_no_client_waits_long(
    as_with_tls: bool, quiet_clock: MockClock
) -> None:
    """Each event takes 8 ms to encode, as if very many were to be sent."""

    def slowly(event: StreamEvent) -> bytes:
        quiet_clock.jump(0.008)
        return wire.encode(event)

    async with open_house(encode=slowly) as house:
        session = house.stage.start()
        client = await house.connect("/v1?batch=1", as_with_tls=as_with_tls)
        await follow(client, session)
        session.begin_turn("Go on.")
        frames = await take_turn(client)
        assert 0.5 / LONGEST_GATHERING <= len(frames) <= 15


async def test_a_client_that_sends_commands_all_the_time_gets_its_batches_too(quiet_clock: MockClock) -> None:
    """Each event takes 8 ms to encode: batches are rare, and answers are not."""

    def slowly(event: StreamEvent) -> bytes:
        quiet_clock.jump(0.008)
        return wire.encode(event)

    async with open_house(encode=slowly) as house, trio.open_nursery() as nursery:
        session = house.stage.start()
        client = await house.connect("/v1?batch=1")
        await follow(client, session)

        async def ask() -> None:
            while True:
                await client.send_message('{"op":"ping","id":7}')
                await trio.sleep(0.007)

        nursery.start_soon(ask)
        session.begin_turn("Go on.")
        came_at: list[float] = []
        last: StreamEvent | None = None
        while last is None or last.event_type is not EventType.COMMIT_FINAL:
            frame = orjson.loads(await client.get_message())
            if isinstance(frame, list):
                came_at.append(trio.current_time())
                last = wire.decode(orjson.dumps(frame[-1]))
        nursery.cancel_scope.cancel()
        assert max(later - sooner for sooner, later in pairwise(came_at)) < 0.15


@pytest.mark.parametrize("after", ["", ',"after":{}'])
async def test_an_event_that_cannot_be_sent_ends_this_connection_and_no_other(
    after: str, quiet_clock: MockClock
) -> None:
    def choosy(event: StreamEvent) -> bytes:
        if event.session_id == unlucky.session_id and event.event_type is EventType.TOKEN_DELTA:
            raise ValueError("no")
        return wire.encode(event)

    async with open_house(encode=choosy) as house:
        unlucky, lucky = house.stage.start(), house.stage.start()
        clients = [await house.connect(), await house.connect()]
        for client, session in zip(clients, (unlucky, lucky), strict=True):
            await follow(client, session, after)
        unlucky.begin_turn("Go on.")
        lucky.begin_turn("Go on.")
        await take_turn(clients[1])
        with pytest.raises(ConnectionClosed):
            await take_turn(clients[0])


class Writer:
    """Records what it is given, and sends it or not."""

    is_clear = True
    due_at = 0.0

    def __init__(self, *, is_gone: bool = False, fails: bool = False, in_batches: bool = False) -> None:
        self.in_batches = in_batches
        self._fails = fails
        self.put: list[bytes] = []
        self.sends = 0
        self._is_gone = is_gone

    def put_events(self, encoded: Iterable[bytes]) -> None:
        self.put += encoded

    def send_nowait(self) -> bool:
        self.sends += 1
        if self._fails:
            raise MemoryError
        return not self._is_gone


@asynccontextmanager
async def open_delivery(writer: Writer) -> AsyncGenerator[tuple[InteractionSession, Broadcaster, Delivery, trio.Event]]:
    """A running delivery, and an event for when it is handed over."""
    async with open_stage(standard_cast(ScriptedModel(lambda _: (Say("Good evening."),)))) as stage:
        session, broadcaster, is_over = stage.start(), Broadcaster(wire.encode), trio.Event()
        async with session.subscribe() as stream, trio.open_nursery() as nursery:
            delivery = Delivery(broadcaster, stream, cast("FrameWriter", writer))

            async def run() -> None:
                with suppress(MemoryError):
                    await delivery.run()
                is_over.set()

            nursery.start_soon(broadcaster.run)
            nursery.start_soon(run)
            await trio.testing.wait_all_tasks_blocked()
            yield session, broadcaster, delivery, is_over
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("writer", [Writer(is_gone=True), Writer(fails=True)], ids=["gone", "fails"])
async def test_a_delivery_that_cannot_be_sent_is_handed_over_to_its_own_task(writer: Writer) -> None:
    async with open_delivery(writer) as (session, _, _, is_over):
        session.begin_turn("A room?")
        await is_over.wait()


async def test_what_is_taken_along_is_not_sent_again() -> None:
    writer = Writer()
    async with open_delivery(writer) as (session, broadcaster, delivery, _):
        broadcaster.take_along(delivery)
        assert not writer.put
        session.begin_turn("A room?")
        broadcaster.take_along(delivery)
        assert [wire.decode(event).event_type for event in writer.put] == [EventType.TURN_ACCEPTED]
        assert not writer.sends
        await trio.testing.wait_all_tasks_blocked()
        seqs = [wire.decode(event).seq for event in writer.put]
        assert seqs == sorted(set(seqs))


async def test_a_reply_does_not_split_a_batch() -> None:
    writer = Writer(in_batches=True)
    async with open_delivery(writer) as (session, broadcaster, delivery, _):
        session.begin_turn("A room?")
        broadcaster.take_along(delivery)
        assert not writer.put


async def test_a_stream_has_one_reader_a_task_or_the_broadcaster() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: ()))) as stage:
        session = stage.start()
        async with session.subscribe() as stream, trio.open_nursery() as nursery:
            nursery.start_soon(partial(anext, stream))
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(trio.BusyResourceError):
                stream.call_when_ready(lambda: None)
            nursery.cancel_scope.cancel()
        async with session.subscribe() as stream:
            stream.call_when_ready(lambda: None)
            with pytest.raises(trio.BusyResourceError):
                await stream.receive_batch()
            stream.call_when_ready(None)
            assert stream.receive_nowait() == []


def test_a_server_with_a_broadcaster_that_is_cancelled_at_any_moment_leaves_nothing_behind() -> None:
    async def scenario(trial: Trial) -> None:
        cast = standard_cast(ScriptedModel(lambda _: (Say("Good evening, my friend."),)))
        async with open_stage(cast) as stage, trio.open_nursery() as nursery:
            session = stage.start()
            server, closed, scope = (
                WsServer(OneWorld(access := SessionAccess(stage), native(access))),
                trio.Event(),
                trio.CancelScope(),
            )
            accepting = trio.Event()

            async def run() -> None:
                with scope:
                    await server.run(accept)
                closed.set()

            async def accept() -> None:
                accepting.set()
                await trio.lowlevel.checkpoint()

            nursery.start_soon(run)
            await accepting.wait()
            house = House(stage, server, nursery)
            trial.aim(scope.cancel)
            with trio.move_on_after(5.0):
                await play(house, session)
            trial.disarm()
            scope.cancel()
            await closed.wait()
            assert stage.statistics().subscribers == 0
            assert set(stage.statistics().turns_settled) <= {"ok"}
            nursery.cancel_scope.cancel()
        house.close()

    assert cancel_everywhere(scenario, orders=2, pairs=20).points > 50


async def play(house: House, session: InteractionSession) -> None:
    """Follow a turn as far as the connection lasts."""
    try:
        client = await house.connect()
        await follow(client, session)
        turn_id = session.begin_turn("A room?")
        await take_turn(client)
        await session.finalize(turn_id).wait()
    except (ConnectionClosed, HandshakeError):
        pass
