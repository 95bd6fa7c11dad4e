"""A session takes turns, puts them in an order, and refuses what makes no sense."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import (
    Busy,
    BusyRule,
    CommitOutcome,
    EventType,
    InteractionContext,
    InterruptReason,
    InvalidCommand,
    Limits,
    MemoryLedger,
    SessionParams,
    SessionState,
    Stage,
    StreamEvent,
    TooLarge,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    TurnState,
    draft_event,
    open_stage,
)
from footlights.testing import only, take_turn
from footlights.testing.faults import FlakyLedger
from footlights_actors import Pause, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractAsyncContextManager

    from trio.testing import MockClock

SPEECH = "Good evening, my friend."
TALK = (Say("Good evening,"), Pause(1.0), Say(" my friend."))
QUEUE, INTERRUPT, REJECT, CONCURRENT = (
    TurnParams(busy=rule) for rule in (BusyRule.QUEUE, BusyRule.INTERRUPT, BusyRule.REJECT, BusyRule.CONCURRENT)
)


def slow_ledger() -> FlakyLedger:
    """It takes its time, so that there is a window between the end of a turn and its commit."""
    return FlakyLedger(MemoryLedger(), delay=1.0)


def tavern(limits: Limits | None = None, *, ledger: FlakyLedger | None = None) -> AbstractAsyncContextManager[Stage]:
    return open_stage(standard_cast(ScriptedModel(lambda _: TALK)), limits=limits, ledger=ledger)


def ahead(events: Iterable[StreamEvent]) -> dict[str, int]:
    return {event.turn_id: event.payload.turns_ahead for event in events if isinstance(event.payload, TurnAccepted)}


# -- beginning a turn


@pytest.mark.shows("core-44", "core-57", "core-67")
async def test_the_turn_is_accepted_when_begin_turn_returns(quiet_clock: MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            with trio.testing.assert_no_checkpoints():
                turn_id = session.begin_turn("A room?")
                event = await anext(stream)
            assert (event.turn_id, event.seq, event.payload) == (turn_id, 0, TurnAccepted(turns_ahead=0))


@pytest.mark.parametrize("limit", [0, 2])
async def test_the_queue_has_a_limit_and_a_refusal_changes_nothing(quiet_clock: MockClock, limit: int) -> None:
    async with tavern(Limits(max_queued_turns=limit)) as stage:
        session = stage.start()
        turns = [session.begin_turn("A room?") for _ in range(1 + limit)]
        known = session.statistics()
        assert known.turns_waiting == known.max_queued_turns == limit
        with pytest.raises(Busy, match="max_queued_turns"):
            session.begin_turn("One more?")
        assert session.statistics() == known
        await session.finalize(turns[-1]).wait()
        assert session.begin_turn("Now?") == f"t1-{2 + limit:06d}"


async def test_a_barge_in_interrupts_running_and_queued_turns_and_runs_when_they_are_settled(
    quiet_clock: MockClock,
) -> None:
    async with tavern(ledger=slow_ledger()) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            running, queued = session.begin_turn("A room?"), session.begin_turn("A beer?")
            await trio.sleep(0.5)
            barged = session.begin_turn("Fire!", INTERRUPT)
            events = [event async for event in stream.until_commit(barged)]
    reasons = {e.turn_id: e.payload.reason for e in events if isinstance(e.payload, TurnInterrupted)}
    assert reasons == dict.fromkeys((running, queued), InterruptReason.BARGE_IN)
    assert only(events, TurnFinal).text == SPEECH
    assert ahead(events)[barged] == 2
    commits = [at for at, event in enumerate(events) if event.event_type is EventType.COMMIT_FINAL]
    first_word = next(at for at, event in enumerate(events) if event.turn_id == barged and event.seq == 1)
    assert commits[0] < commits[1] < first_word
    never_ran = [EventType.TURN_ACCEPTED, EventType.TURN_INTERRUPTED, EventType.COMMIT_FINAL]
    assert [event.event_type for event in events if event.turn_id == queued] == never_ran


async def test_a_barge_in_that_is_refused_interrupts_no_turn(quiet_clock: MockClock) -> None:
    async with tavern(Limits(max_queued_turns=0, max_concurrent_turns=1)) as stage:
        session = stage.start()
        first = session.begin_turn("A room?")
        second = session.begin_turn("Fire!", INTERRUPT)
        known = session.statistics()
        with pytest.raises(Busy):
            session.begin_turn("Water!", INTERRUPT)
        assert session.statistics() == known
        assert session.cancel(first) == ()
        commit = await session.finalize(second).wait()
        assert commit.commit_outcome is CommitOutcome.OK


async def test_reject_refuses_while_any_turn_is_open(quiet_clock: MockClock) -> None:
    async with tavern(ledger=slow_ledger()) as stage:
        session = stage.start()
        first = session.begin_turn("A room?", REJECT)
        for _ in range(2):  # while it talks, and while its commit is written
            with pytest.raises(Busy, match="reject"):
                session.begin_turn("A beer?", REJECT)
            await trio.sleep(1.5)
        await session.finalize(first).wait()
        assert session.begin_turn("A beer?", REJECT) == "t1-000002"


@pytest.mark.shows("core-62")
async def test_concurrent_turns_run_beside_each_other_up_to_their_limit(quiet_clock: MockClock) -> None:
    async with tavern(Limits(max_concurrent_turns=2)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            began = trio.current_time()
            turns = [session.begin_turn("A room?", CONCURRENT) for _ in range(2)]
            known = session.statistics()
            with pytest.raises(Busy, match="max_concurrent_turns"):
                session.begin_turn("A beer?", CONCURRENT)
            assert session.statistics() == known
            for turn_id in turns:
                await session.finalize(turn_id).wait()
            assert trio.current_time() - began == pytest.approx(1.0)
            events = await stream.receive_batch()
    assert ahead(events) == dict.fromkeys(turns, 0)


@pytest.mark.shows("core-62")
async def test_a_queued_turn_waits_for_every_turn_before_it(quiet_clock: MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            first = session.begin_turn("A room?", CONCURRENT)
            await trio.sleep(0.5)
            second = session.begin_turn("A beer?", CONCURRENT)
            queued = [session.begin_turn("And then?", QUEUE) for _ in range(2)]
            events = [event async for event in stream.until_commit(queued[-1])]
    for at, turn_id in enumerate(queued):
        assert ahead(events)[turn_id] == 2 + at
        began = next(place for place, event in enumerate(events) if event.turn_id == turn_id and event.seq == 1)
        committed = {event.turn_id for event in events[:began] if event.event_type is EventType.COMMIT_FINAL}
        assert committed == {first, second, *queued[:at]}


async def test_the_whole_stage_has_a_limit_of_open_turns(quiet_clock: MockClock) -> None:
    async with tavern(Limits(max_open_turns=1)) as stage:
        turn_id = stage.start().begin_turn("A room?")
        other = stage.start()
        with pytest.raises(Busy, match="max_open_turns"):
            other.begin_turn("A room?")
        await stage.session("s1-000001").finalize(turn_id).wait()
        other.begin_turn("A room?")


@pytest.mark.parametrize(
    ("said", "params", "error"),
    [
        ("", None, InvalidCommand),
        (" \n", None, InvalidCommand),
        ("x" * 9, None, TooLarge),
        ("éééé.", None, TooLarge),
        ("A room?", TurnParams(model="nobody"), InvalidCommand),
        ("A room?", TurnParams(workload="nothing"), InvalidCommand),
        ("\ud83c", None, InvalidCommand),
    ],
)
async def test_what_makes_no_sense_is_refused_and_changes_nothing(
    said: str, params: TurnParams | None, error: type[Exception]
) -> None:
    async with tavern(Limits(max_input_bytes=8)) as stage:
        session = stage.start()
        known = stage.statistics()
        with pytest.raises(error):
            session.begin_turn(said, params)
        assert stage.statistics() == known
        assert session.begin_turn("éééé") == "t1-000001"


async def test_a_turn_that_could_not_be_accepted_takes_no_place() -> None:
    async with tavern() as stage:
        session = stage.start()
        with pytest.raises(RuntimeError, match="async context"):
            await trio.to_thread.run_sync(session.begin_turn, "A room?")
        assert stage.statistics().open_turns == 0


async def test_a_turn_runs_in_the_context_of_the_task_that_began_it(quiet_clock: MockClock) -> None:
    player: ContextVar[str] = ContextVar("player")
    seen: dict[str, str] = {}

    class Ask:
        async def run(self, context: InteractionContext) -> None:
            await trio.sleep(1.0)
            seen[context.input] = player.get()

    async with open_stage(standard_cast(workloads={"ask": Ask()})) as stage:
        session = stage.start()
        turns: list[str] = []
        for name in ("Edda", "Odo", "Una"):
            player.set(name)
            turns.append(session.begin_turn(name, TurnParams(workload="ask")))
        player.set("nobody")
        await session.finalize(turns[-1]).wait()
    assert seen == {"Edda": "Edda", "Odo": "Odo", "Una": "Una"}


# -- statistics and plain calls


async def test_statistics_count_turns_by_state_and_who_waits(quiet_clock: MockClock) -> None:
    async with tavern(Limits(max_queued_turns=3, replay_turns=2, max_subscribers=5)) as stage:
        session = stage.start(SessionParams(session_id="inn"))
        await take_turn(session, "A room?")
        async with session.subscribe() as stream:
            for _ in range(3):
                session.begin_turn("A room?")
            await trio.sleep(0.5)
            found = session.statistics()
            assert found.subscribers == (stream.statistics(),)
        assert found.turns_by_state == {TurnState.PERFORMING: 1, TurnState.ACCEPTED: 2}
        assert (found.session_id, found.state) == ("inn", SessionState.OPEN)
        assert (found.turns_waiting, found.max_queued_turns) == (2, 3)
        assert (found.turns_retained, found.replay_turns, found.max_subscribers) == (1, 2, 5)


async def test_everything_but_closing_is_a_plain_call(quiet_clock: MockClock) -> None:
    async with tavern() as stage:
        with trio.testing.assert_no_checkpoints():
            session = stage.start()
            turn_id = session.begin_turn("A room?")
            session.begin_turn("Fire!", INTERRUPT)
            session.heard(turn_id, 0)
            session.finalize(turn_id)
            session.cancel(turn_id)
            session.cancel()
            session.subscribe()
            session.statistics()
        with trio.testing.assert_checkpoints():
            await session.close()


async def test_a_workload_of_the_hosts_own_follows_the_same_rules(quiet_clock: MockClock) -> None:
    class Greet:
        async def run(self, context: InteractionContext) -> None:
            await trio.sleep(1.0)
            context.emit_event(draft_event("token_delta", {"delta": f"{context.input}!"}))

    async with open_stage(standard_cast(workloads={"greet": Greet()})) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            params = TurnParams(workload="greet", busy=BusyRule.INTERRUPT)
            turns = [session.begin_turn("Hello", params) for _ in range(2)]
            events = [event async for event in stream.until_commit(turns[-1])]
    assert only(events, TurnInterrupted).reason is InterruptReason.BARGE_IN
    assert only(events, TurnFinal).text == "Hello!"
