"""One subscriber's stream: it waits only when it must, loses nothing to a cancel, and can be taken up again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import (
    BudgetConfig,
    BusyRule,
    CommitFinal,
    Detached,
    DetachReason,
    EventType,
    InteractionContext,
    InteractionSession,
    InvalidCommand,
    Limits,
    Stage,
    StreamEvent,
    Subscription,
    TokenDelta,
    TurnFinal,
    TurnParams,
    draft_event,
    open_stage,
)
from footlights.stream.cursor import ALL_SEEN
from footlights_actors import Flood, Line, Pause, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from contextlib import AbstractAsyncContextManager

    from trio.testing import MockClock

TALK: tuple[Line, ...] = (Say("Good evening,"), Pause(1.0), Say(" my friend."))
TYPES = [
    EventType.TURN_ACCEPTED,
    EventType.MODEL_SELECTED,
    EventType.MODEL_READY,
    EventType.TOKEN_DELTA,
    EventType.TOKEN_DELTA,
    EventType.TURN_FINAL,
    EventType.COMMIT_FINAL,
]


class Chores:
    """A turn of many events that cannot be joined: as many tool calls as its input says."""

    async def run(self, context: InteractionContext) -> None:
        for number in range(int(context.input)):
            call = {"tool_call_id": f"c{number}", "tool_name": "sweep"}
            context.emit_event(draft_event("tool_call_started", call))
            context.emit_event(draft_event("tool_call_result", {**call, "canceled": False}))


def tavern(limits: Limits | None = None, *, lines: Iterable[Line] = TALK) -> AbstractAsyncContextManager[Stage]:
    model = ScriptedModel(lambda _: tuple(lines))
    cast = standard_cast(model, workloads={"chores": Chores()}, budget=BudgetConfig(dialogue_max=10_000))
    return open_stage(cast, limits=limits)


async def perform(session: InteractionSession) -> str:
    """A whole turn."""
    turn_id = session.begin_turn("A room?")
    await session.finalize(turn_id).wait()
    return turn_id


def said(events: Iterable[StreamEvent]) -> str:
    return "".join(event.payload.delta for event in events if isinstance(event.payload, TokenDelta))


# -- reading


async def test_reading_is_a_checkpoint_only_when_there_is_nothing_to_take(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            session.begin_turn("A room?")
            with trio.testing.assert_no_checkpoints():
                await anext(stream)
            with trio.testing.assert_checkpoints():
                await anext(stream)


async def test_a_batch_is_always_a_checkpoint(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            session.begin_turn("A room?")
            for _ in range(2):
                with trio.testing.assert_checkpoints():
                    assert await stream.receive_batch() != []


async def test_entering_is_a_checkpoint_and_leaving_cannot_be_cancelled() -> None:
    async with tavern() as stage:
        session = stage.start()
        stream = session.subscribe()
        with trio.testing.assert_checkpoints():
            await stream.__aenter__()
        with trio.CancelScope() as scope:
            scope.cancel()
            await stream.__aexit__(None, None, None)
        assert not scope.cancelled_caught
        assert session.statistics().subscribers == ()


async def test_a_subscriber_that_is_cancelled_while_entering_never_entered() -> None:
    async with tavern() as stage:
        session = stage.start()
        with trio.CancelScope() as scope:
            scope.cancel()
            await session.subscribe().__aenter__()
        assert scope.cancelled_caught
        assert session.statistics().subscribers == ()


async def test_a_batch_holds_what_waits_up_to_its_limit(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            await perform(session)
            first, rest = await stream.receive_batch(2), await stream.receive_batch()
            assert [event.event_type for event in first] == TYPES[:2]
            # All that was said joins into one event when nobody takes it in between.
            assert [event.event_type for event in rest] == [*TYPES[2:4], *TYPES[5:]]


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_batch_of_nothing_makes_no_sense(limit: int) -> None:
    async with tavern() as stage, stage.start().subscribe() as stream:
        with pytest.raises(InvalidCommand):
            await stream.receive_batch(limit)


@pytest.mark.parametrize("in_batches", [False, True])
async def test_a_read_that_is_cancelled_loses_nothing(quiet_clock: trio.testing.MockClock, in_batches: bool) -> None:
    async with tavern() as stage:
        session = stage.start()
        got: list[StreamEvent] = []
        async with session.subscribe() as stream:
            session.begin_turn("A room?")
            while not got or got[-1].event_type is not EventType.COMMIT_FINAL:
                with trio.move_on_after(0.3):
                    while True:
                        got += await stream.receive_batch(1) if in_batches else [await anext(stream)]
                        if got[-1].event_type is EventType.COMMIT_FINAL:
                            break
    assert said(got) == "Good evening, my friend."


async def test_a_read_in_a_cancelled_scope_takes_nothing(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            await perform(session)
            known = stream.statistics()
            with trio.CancelScope() as scope:
                scope.cancel()
                await stream.receive_batch()
            assert scope.cancelled_caught
            assert stream.statistics() == known


async def test_one_stream_has_one_reader() -> None:
    async with tavern() as stage, stage.start().subscribe() as stream, trio.open_nursery() as nursery:
        nursery.start_soon(stream.receive_batch)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError):
            await anext(stream)
        nursery.cancel_scope.cancel()


async def test_the_end_of_the_session_ends_the_stream_after_all_was_taken(
    quiet_clock: trio.testing.MockClock,
) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            await perform(session)
            await session.close()
            exhausted = [stream.is_exhausted]
            assert [event.seq async for event in stream][-1] == 8
            assert [*exhausted, stream.is_exhausted] == [False, True]
            with trio.testing.assert_checkpoints():
                assert await stream.receive_batch() == []
            with trio.testing.assert_checkpoints(), pytest.raises(StopAsyncIteration):
                await anext(stream)


async def test_a_waiting_reader_gets_the_end(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream, trio.open_nursery() as nursery:
            nursery.start_soon(session.close)
            assert [event async for event in stream] == []


async def test_a_waiting_reader_is_woken_when_the_subscription_is_left(quiet_clock: trio.testing.MockClock) -> None:
    got: list[list[StreamEvent]] = []

    async def read(stream: Subscription) -> None:
        got.append(await stream.receive_batch())

    async with tavern() as stage:
        with trio.move_on_after(10.0):
            async with trio.open_nursery() as nursery, stage.start().subscribe() as stream:
                nursery.start_soon(read, stream)
                await trio.testing.wait_all_tasks_blocked()
    assert got == [[]]


@pytest.mark.parametrize("read", [anext, Subscription.receive_batch])
async def test_a_subscription_that_was_not_entered_says_so_instead_of_waiting(
    quiet_clock: trio.testing.MockClock, read: Callable[[Subscription], Awaitable[object]]
) -> None:
    async with tavern() as stage:
        session = stage.start()
        session.begin_turn("A room?")
        with trio.fail_after(60), pytest.raises(InvalidCommand, match="async with"):
            await read(session.subscribe())
        assert session.statistics().subscribers == ()


async def test_a_subscription_is_entered_once() -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            with pytest.raises(InvalidCommand, match="once"):
                await stream.__aenter__()
            assert len(session.statistics().subscribers) == 1


# -- one turn of it


async def test_until_commit_ends_with_the_commit_and_includes_other_turns(
    quiet_clock: trio.testing.MockClock,
) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            first = session.begin_turn("A room?")
            second = session.begin_turn("A beer?", TurnParams(busy=BusyRule.CONCURRENT))
            events = stream.until_commit(second)
            got = [event async for event in events]
            assert {event.turn_id for event in got} == {first, second}
            assert (got[-1].turn_id, got[-1].event_type) == (second, EventType.COMMIT_FINAL)
            assert [event async for event in events] == []


async def test_until_commit_ends_with_the_session_too(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            first, second = session.begin_turn("A room?"), session.begin_turn("A beer?")
            await session.close()
            assert [e.turn_id async for e in stream.until_commit(second)][-1] == second
            assert first != second
            assert [event async for event in stream.until_commit(first)] == []


# -- as a channel


async def test_a_subscription_is_a_receive_channel_whose_reads_are_checkpoints() -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            assert isinstance(stream, trio.abc.ReceiveChannel)
            await perform(session)
            await session.close()
            events: list[StreamEvent] = []
            while not stream.is_exhausted:
                with trio.testing.assert_checkpoints():
                    events.append(await stream.receive())
            with trio.testing.assert_checkpoints(), pytest.raises(trio.EndOfChannel):
                await stream.receive()
    assert events[-1].event_type is EventType.COMMIT_FINAL
    assert said(events) == "Good evening, my friend."


async def test_a_subscription_that_is_closed_delivers_what_waited_and_no_more() -> None:
    async with tavern() as stage:
        session = stage.start()
        stream = await session.subscribe().__aenter__()
        turn_id = session.begin_turn("A room?")
        await stream.aclose()
        await session.finalize(turn_id).wait()
        assert [event.event_type async for event in stream] == [EventType.TURN_ACCEPTED]


# -- being detached, and resuming


async def test_a_stalled_subscriber_is_let_go_with_a_reason_and_may_resume(
    quiet_clock: trio.testing.MockClock,
) -> None:
    async with tavern(Limits(stall_detach=0.5)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("A room?")
            got = [await anext(stream)]
            await session.finalize(turn_id).wait()
            for _ in range(2):
                with pytest.raises(Detached) as detached:
                    await anext(stream)
                assert detached.value.reason == DetachReason.STALLED
            assert session.statistics().subscribers == ()
            assert not stream.is_exhausted
        async with session.subscribe(after=stream.cursor) as stream:
            got += [event async for event in stream.until_commit(turn_id)]
    assert said(got) == "Good evening, my friend."


async def test_being_let_go_is_a_checkpoint_to_learn_of(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(Limits(stall_detach=0.5)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            await perform(session)
            with trio.testing.assert_checkpoints(), pytest.raises(Detached):
                await stream.receive_batch()


async def test_a_slow_subscriber_slows_neither_the_turn_nor_the_other_one(
    quiet_clock: trio.testing.MockClock,
) -> None:
    limits = Limits(best_effort_max_events_per_turn=4)
    async with tavern(limits, lines=[Flood("word ", 10_000)]) as stage:
        session = stage.start()
        async with session.subscribe() as slow, session.subscribe() as quick:
            turn_id = session.begin_turn("Everything!")
            quick_events = [event async for event in quick.until_commit(turn_id)]
            waiting = slow.statistics()
            assert waiting.best_effort_waiting == 4
            assert waiting.bytes_waiting < 4 * 300 + 3 * 400
            slow_events = [event async for event in slow.until_commit(turn_id)]
    finals = [
        event.payload.text for event in (quick_events[-2], slow_events[-2]) if isinstance(event.payload, TurnFinal)
    ]
    assert finals == ["word " * 10_000] * 2
    assert isinstance(slow_events[-1].payload, CommitFinal)
    assert said(slow_events) == "word " * 4


async def test_the_cursor_names_what_was_taken_and_is_a_copy(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = await perform(session)
            before = {"t1-000000": ALL_SEEN}
            assert stream.cursor == before
            await stream.receive_batch(2)
            cursor = stream.cursor
            await stream.receive_batch()
            assert (cursor, stream.cursor) == ({**before, turn_id: 1}, {turn_id: ALL_SEEN})


async def test_the_cursor_stays_small_and_nothing_retained_is_repeated(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(Limits(replay_turns=2)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            for _ in range(8):
                turn_id = session.begin_turn("A room?")
                async for _ in stream.until_commit(turn_id):
                    pass
            assert len(stream.cursor) <= 3
        async with session.subscribe(after=stream.cursor) as stream:
            assert stream.outbox.is_empty


async def test_a_subscriber_far_behind_gets_nothing_twice_when_it_comes_back(
    quiet_clock: trio.testing.MockClock,
) -> None:
    async with tavern(Limits(replay_turns=1)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            # Lanes take turns, so the commit of the last and shortest turn is taken first.
            turns = [session.begin_turn(chores, TurnParams(workload="chores")) for chores in ("9", "9", "0")]
            await session.finalize(turns[-1]).wait()
            while not stream.outbox.is_empty:
                await stream.receive_batch()
        async with session.subscribe(after=stream.cursor) as stream:
            assert stream.outbox.is_empty


async def test_the_cursor_stays_small_however_often_one_comes_back(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(Limits(replay_turns=1)) as stage:
        session = stage.start()
        cursor = session.subscribe(after={}).cursor
        for _ in range(10):
            async with session.subscribe(after=cursor) as stream:
                turn_id = session.begin_turn("A room?")
                async for _ in stream.until_commit(turn_id):
                    pass
                cursor = stream.cursor
        assert len(cursor) <= 4


async def test_what_waits_when_a_subscriber_leaves_stays_what_it_was(quiet_clock: MockClock) -> None:
    class TalkThenUseATool:
        async def run(self, context: InteractionContext) -> None:
            for word in ("Good ", "evening."):
                context.emit_event(draft_event("token_delta", {"delta": word}))
            await trio.sleep(1)
            context.emit_event(draft_event("tool_call_started", {"tool_call_id": "c1", "tool_name": "rent"}))
            context.emit_event(draft_event("tool_call_result", {"tool_call_id": "c1", "tool_name": "rent"}))

    async with open_stage(standard_cast(workloads={"talk": TalkThenUseATool()})) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("A room?", TurnParams(workload="talk"))
            await trio.sleep(0.5)
        await session.finalize(turn_id).wait()
        taken = [event async for event in stream]
        assert [(event.event_type, event.seq) for event in taken] == [(TYPES[0], 0), (EventType.TOKEN_DELTA, 2)]
        async with session.subscribe(stream.cursor, stream.terminal_seen) as again:
            rest = await again.receive_batch()
        assert [event.seq for event in rest] == [3, 4, 5, 6]
