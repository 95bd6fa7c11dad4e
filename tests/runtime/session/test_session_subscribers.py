"""Every subscriber, however late, gets every event that is due, and none of them twice."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from footlights import (
    Busy,
    EventType,
    InteractionSession,
    InvalidCommand,
    Limits,
    SessionParams,
    Stage,
    StreamEvent,
    TokenDelta,
    open_stage,
)
from footlights.session.core import MAX_OBSERVERS
from footlights.testing import payloads, take_turn
from footlights_actors import Line, Pause, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager

    from trio.testing import MockClock

SPEECH = "Good evening, my friend."
TALK: tuple[Line, ...] = (Say("Good evening,"), Pause(1.0), Say(" my friend."))


def tavern(limits: Limits | None = None, *, lines: Iterable[Line] = TALK) -> AbstractAsyncContextManager[Stage]:
    return open_stage(standard_cast(ScriptedModel(lambda _: tuple(lines))), limits=limits)


async def replayed(session: InteractionSession, after: Mapping[str, int] | None) -> list[StreamEvent]:
    """What waits for a subscriber that comes now."""
    async with session.subscribe(after) as stream:
        return [] if stream.is_empty else await stream.receive_batch(10_000)


async def first(events: AsyncIterator[StreamEvent], count: int) -> list[StreamEvent]:
    got: list[StreamEvent] = []
    async for event in events:
        got.append(event)
        if len(got) == count:
            break
    return got


def said(events: Iterable[StreamEvent]) -> str:
    return "".join(payload.delta for payload in payloads(events, TokenDelta))


def others(events: Iterable[StreamEvent]) -> list[tuple[str, int, EventType]]:
    return [(e.turn_id, e.seq, e.event_type) for e in events if not isinstance(e.payload, TokenDelta)]


async def test_coming_back_to_a_finished_turn_at_any_point_gives_exactly_the_rest(
    quiet_clock: MockClock,
) -> None:
    async with tavern() as stage:
        session = stage.start()
        events = await take_turn(session, "A room?")
        (turn_id,) = {event.turn_id for event in events}
        for at, event in enumerate(events):
            rest = await replayed(session, {turn_id: event.seq})
            assert others(rest) == others(events[at + 1 :])
            assert said(rest) == said(events[at + 1 :])


@pytest.mark.parametrize("taken", range(1, 12))
async def test_coming_back_while_the_turn_goes_on_skips_and_repeats_nothing(quiet_clock: MockClock, taken: int) -> None:
    lines: list[Line] = [Say("Good evening,"), Pause(1.0), Say(" my friend."), Pause(1.0), Say(" Sit down.")]
    async with tavern(lines=lines) as stage:
        session = stage.start()
        whole = await take_turn(session, "A room?")
        turn_id = session.begin_turn("A room?")
        async with session.subscribe() as stream:
            got = await first(stream.until_commit(turn_id), taken)
        async with session.subscribe(after={**stream.cursor, whole[0].turn_id: whole[-1].seq}) as stream:
            if got[-1].event_type is not EventType.COMMIT_FINAL:
                got += [event async for event in stream.until_commit(turn_id)]
    assert said(got) == said(whole)
    assert [each[1:] for each in others(got)] == [each[1:] for each in others(whole)]
    assert [event.seq for event in got] == sorted({event.seq for event in got})


async def test_an_empty_cursor_gets_everything_that_is_retained(quiet_clock: MockClock) -> None:
    async with tavern(Limits(replay_turns=2)) as stage:
        session = stage.start()
        turns = [(await take_turn(session, "A room?"))[0].turn_id for _ in range(3)]
        assert {event.turn_id for event in await replayed(session, {})} == set(turns[1:])
        assert {event.turn_id for event in await replayed(session, {turns[1]: 2})} == set(turns[1:])
        assert session.statistics().turns_retained == 2


async def test_nothing_is_retained_if_the_host_wants_it_so(quiet_clock: MockClock) -> None:
    async with tavern(Limits(replay_turns=0)) as stage:
        session = stage.start()
        await take_turn(session, "A room?")
        assert await replayed(session, {}) == []


@pytest.mark.parametrize("seq", [9, 10**30, -2])
async def test_a_cursor_outside_the_turn_is_refused(quiet_clock: MockClock, seq: int) -> None:
    async with tavern() as stage:
        session = stage.start()
        events = await take_turn(session, "A room?")
        assert events[-1].seq == 8
        stream = session.subscribe(after={events[0].turn_id: seq})
        with pytest.raises(InvalidCommand):
            await stream.__aenter__()
        assert session.statistics().subscribers == ()


async def test_a_session_has_only_so_many_subscribers_at_once(quiet_clock: MockClock) -> None:
    async with tavern(Limits(max_subscribers=1)) as stage:
        session = stage.start()
        for _ in range(2):
            async with session.subscribe():
                with pytest.raises(Busy, match="max_subscribers"):
                    await session.subscribe().__aenter__()
                assert len(session.statistics().subscribers) == 1


async def test_an_observer_takes_no_place_of_a_subscriber_and_there_are_eight_places_for_them(
    quiet_clock: MockClock,
) -> None:
    async with tavern(Limits(max_subscribers=1)) as stage:
        session = stage.start()
        async with session.subscribe(observer=True) as one, AsyncExitStack() as others_who_watch:
            for _ in range(MAX_OBSERVERS - 1):
                await others_who_watch.enter_async_context(session.subscribe(observer=True))
            with pytest.raises(Busy, match="observers"):
                await session.subscribe(observer=True).__aenter__()
            async with session.subscribe() as stream:
                with pytest.raises(Busy, match="max_subscribers"):
                    await session.subscribe().__aenter__()
                turn_id = session.begin_turn("A room?")
                told = [event async for event in stream.until_commit(turn_id)]
                assert others([event async for event in one.until_commit(turn_id)]) == others(told)
                now = session.statistics()
                assert (len(now.subscribers), len(now.observers)) == (1, MAX_OBSERVERS)
                assert stage.statistics().subscribers == 1
                assert stage.statistics().events_waiting > 0
        async with session.subscribe(observer=True):
            assert len(session.statistics().observers) == 1


async def test_two_handles_are_equal_if_they_are_of_the_same_session() -> None:
    async with tavern() as stage:
        ann = SessionParams(session_id="ann")
        first = stage.start(ann)
        assert {first, stage.session("ann")} == {first}
        assert first != stage.start()
        assert first != "ann"
        await first.close()
        assert stage.start(ann) != first
