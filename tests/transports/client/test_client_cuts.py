"""Connections cut at any place, and repeatedly: a client gets no gap, no repeat, and every end."""

from __future__ import annotations

import os
import random
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import BudgetTier, CommitOutcome, EventType, Limits, TokenDelta, TurnFinal, TurnParams, laws, open_stage
from footlights.stream.cursor import ALL_SEEN
from footlights.testing import payloads
from footlights_actors import standard_cast
from footlights_transports import ConnectionLost, Retry, connect
from footlights_transports.access.session_access import SessionAccess
from tests.kit.cutting_proxy import UNHARMED, Fate, open_proxy
from tests.kit.serving import serve_ws
from tests.transports.contract.cue_model import CuedModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from footlights import StreamEvent
    from footlights_transports import Client, ClientSession, ClientStream
    from tests.kit.cutting_proxy import Proxy

AT_ONCE = Retry(first=1e-6, longest=1e-6)
"""A test that waits between attempts would only be slower."""
STRIDE = int(os.environ.get("FOOTLIGHTS_CUT_STRIDE", "41"))
"""Every so many bytes there is a cut. With 1 it takes more than a minute."""
SPEECH = "Good evening my friend, how do you do?"
TERMINAL = {EventType.TURN_FINAL, EventType.TURN_INTERRUPTED}


@asynccontextmanager
async def serving(
    model: CuedModel | None = None, limits: Limits | None = None, patience: float = 100
) -> AsyncGenerator[int, None]:
    """The port of a server."""
    with trio.fail_after(patience):  # a promise that breaks may show as a hang
        cast = standard_cast(model or CuedModel())
        async with open_stage(cast, limits=limits) as stage, trio.open_nursery() as nursery:
            serve = partial(serve_ws, SessionAccess(stage), host="127.0.0.1", port=0)
            yield (await nursery.start(serve)).port
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def cut_off(port: int, *fates: Fate) -> AsyncGenerator[tuple[Client, Proxy], None]:
    """A client, and the proxy between it and its server."""
    async with open_proxy(port, fates) as proxy, _connected(proxy) as client:
        yield client, proxy


@asynccontextmanager
async def _connected(proxy: Proxy) -> AsyncGenerator[Client, None]:
    async with AsyncExitStack() as stack:
        client: Client | None = None
        while client is None:  # the first connection is the one thing that a client does not try again
            with suppress(ConnectionLost):
                client = await stack.enter_async_context(connect(f"ws://127.0.0.1:{proxy.port}", retry=AT_ONCE))
        yield client


async def start(client: Client) -> ClientSession:
    while True:
        try:
            return await client.start()
        except ConnectionLost as lost:
            if not lost.maybe_done:
                raise


async def take_all(session: ClientSession, stream: ClientStream) -> list[StreamEvent]:
    turn_id = await session.begin_turn(SPEECH)
    return [event async for event in stream.until_commit(turn_id)]


def check_union(events: list[StreamEvent], texts: set[str] | None = None) -> None:
    assert laws.check(events) == []
    for turn_id in {event.turn_id for event in events}:
        told = [event for event in events if event.turn_id == turn_id]
        kinds = [event.event_type for event in told]
        assert kinds[0] is EventType.TURN_ACCEPTED
        assert sum(kind in TERMINAL for kind in kinds) == kinds.count(EventType.COMMIT_FINAL) == 1
        for final in payloads(told, TurnFinal):
            assert final.text in (texts or {SPEECH})
            assert "".join(delta.delta for delta in payloads(told, TokenDelta)) == final.text


async def test_a_cut_of_the_stream_at_any_byte_loses_and_repeats_nothing() -> None:
    cuts = 0
    async with serving(patience=100 + 1_000 / STRIDE) as port:
        for at in range(1, 3_000, STRIDE):
            async with cut_off(port, UNHARMED, Fate(cut_down=at)) as (client, proxy):
                session = await client.start()
                async with session.subscribe() as stream:
                    check_union(await take_all(session, stream))
                assert proxy.connections in (2, 2 + proxy.cuts)  # behind the last event a cut is nobody's business
                cuts += proxy.cuts
    assert cuts > 1_000 // STRIDE


async def test_a_cut_at_any_byte_ends_every_turn_once_also_where_nothing_is_retained() -> None:
    forgotten = 0
    async with serving(limits=Limits(replay_turns=0), patience=100 + 1_000 / STRIDE) as port:
        for at in range(1, 3_000, STRIDE):
            async with cut_off(port, UNHARMED, Fate(cut_down=at)) as (client, _):
                session = await client.start()
                async with session.subscribe() as stream:
                    events = await take_all(session, stream)
                    assert not stream.terminal_seen
                    assert set(stream.cursor.values()) == {ALL_SEEN}
            assert laws.check(events) == []
            assert [event.event_type for event in events if event.event_type in TERMINAL] == [EventType.TURN_FINAL]
            assert [event.event_type for event in events].count(EventType.COMMIT_FINAL) == 1
            (final,) = payloads(events, TurnFinal)
            assert final.text == ("" if final.text_forgotten else SPEECH)
            forgotten += final.text_forgotten
    assert forgotten


@pytest.mark.parametrize("seed", range(6))
async def test_any_number_of_cuts_of_any_connection_loses_and_repeats_nothing(seed: int) -> None:
    chance = random.Random(seed)
    fates = [
        Fate(
            cut_up=chance.randrange(1, 900),
            cut_down=chance.randrange(1, 2_500),
            piece=chance.choice((7, 100, 65_536)),
            rude=chance.choice((True, False)),
        )
        for _ in range(30)
    ]
    async with serving() as port, cut_off(port, *fates) as (client, proxy):
        session = await start(client)
        async with session.subscribe() as stream:
            events: list[StreamEvent] = []
            for _ in range(6):
                events += await take_all(session, stream)
            last = await session.begin_turn("~never")
            await session.cancel()
            events += [event async for event in stream.until_commit(last)]
            decision = await session.finalize(last)
            await session.heard(last, 0)
            await session.close()
            events += [event async for event in stream]
        assert proxy.cuts > 10
    check_union(events)
    assert {event.turn_id for event in events} == {f"t1-{number:06d}" for number in range(1, 8)}, "each began once"
    assert decision.commit_outcome is CommitOutcome.FAIL_CLOSED


@pytest.mark.parametrize("way", ["cut_up", "cut_down"])
async def test_a_turn_begins_once_wherever_the_connection_of_its_command_is_cut(way: str) -> None:
    # Behind the handshake: the cut is in the command, or in its reply.
    first, last = {"cut_up": (200, 420), "cut_down": (100, 260)}[way]
    cuts = 0
    async with serving(patience=100 + 1_000 / STRIDE) as port:
        for at in range(first, last, max(1, STRIDE // 4)):
            fate = Fate(cut_up=at) if way == "cut_up" else Fate(cut_down=at)
            async with cut_off(port) as (host, _), cut_off(port, fate) as (client, proxy):
                session = client.session((await host.start()).session_id)
                async with session.subscribe() as stream:
                    assert await session.begin_turn(SPEECH) == "t1-000001"
                    check_union([event async for event in stream.until_commit("t1-000001")])
                    assert await session.begin_turn(SPEECH) == "t1-000002"
                    cuts += proxy.cuts
    assert cuts > 10


@pytest.mark.parametrize("piece", [1, 2, 13])
async def test_frames_that_come_in_pieces_are_put_together(piece: int) -> None:
    split = Fate(piece=piece)
    async with serving() as port, cut_off(port, split, split) as (client, _):
        session = await client.start()
        async with session.subscribe() as stream:
            check_union(await take_all(session, stream))


async def test_a_turn_that_ends_while_the_client_is_away_is_delivered_on_return() -> None:
    model = CuedModel()
    async with serving(model) as port, cut_off(port, UNHARMED, Fate(cut_down=700)) as (client, proxy):
        session = await client.start()
        async with session.subscribe() as stream:
            turn_id = await session.begin_turn("Once upon a ~time there was")
            events = [await anext(stream)]
            model.cue("time")
            await session.finalize(turn_id)  # it ended, and the cut connection was not looked at meanwhile
            events += [event async for event in stream.until_commit(turn_id)]
        assert proxy.cuts == 1
    check_union(events, {"Once upon a time there was"})


async def test_a_turn_that_was_begun_and_never_heard_of_is_asked_for_by_its_id() -> None:
    # The connection of the stream is cut right behind the reply to subscribe, before anything of the turn came.
    async with serving() as port:
        at = await _bytes_until_subscribed(port)
        async with cut_off(port, UNHARMED, Fate(hold_down=at, cut_down=at + 1)) as (client, proxy):
            session = await client.start()
            async with session.subscribe() as stream:
                turn_id = await session.begin_turn(SPEECH)
                await session.finalize(turn_id)
                proxy.let_go.set()
                assert stream.cursor[turn_id] == -1
                events = [event async for event in stream.until_commit(turn_id)]
            assert proxy.cuts == 1
        check_union(events)


async def _bytes_until_subscribed(port: int) -> int:
    """How much a client is sent until it is subscribed, and nothing has happened yet."""
    async with cut_off(port) as (client, proxy), (await client.start()).subscribe():
        return proxy.carried[1]


async def test_a_client_that_is_held_up_is_let_go_and_comes_back_by_itself() -> None:
    limits = Limits(stall_detach=1e-9, max_turns_per_subscriber=1)
    async with serving(limits=limits) as port, cut_off(port, UNHARMED, Fate(hold_down=600)) as (client, proxy):
        session = await client.start()
        async with session.subscribe() as stream:
            turn_id = await session.begin_turn("word " * 2_000, TurnParams(tier=BudgetTier.DEEP))
            await session.finalize(turn_id)
            proxy.let_go.set()
            events = [event async for event in stream.until_commit(turn_id)]
        assert proxy.connections > 2
    assert laws.check(events) == []
    assert payloads(events, TurnFinal)


async def test_a_throttled_client_gets_declared_gaps_and_every_end() -> None:
    slow = Fate(slow=True, piece=512)
    limits = Limits(best_effort_max_events_per_turn=4)
    async with serving(limits=limits) as port, cut_off(port, UNHARMED, slow) as (client, _):
        session = await client.start()
        async with session.subscribe() as stream:
            turns = [await session.begin_turn(f"{number} " * 400) for number in range(4)]
            events = [event for turn_id in turns async for event in stream.until_commit(turn_id)]
            missed = {turn_id: list(stream.missed(turn_id)) for turn_id in turns}
    assert laws.check(events) == []
    assert len(payloads(events, TurnFinal)) == 4
    for turn_id in turns:
        told = [event.payload for event in events if event.turn_id == turn_id]
        assert missed[turn_id] == [seqs for payload in told for seqs in payload.dropped_seq_ranges] != []
