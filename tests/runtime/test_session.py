"""A session orders its turns, lets them be interrupted, and shows them to whoever subscribes."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import (
    Busy,
    BusyRule,
    CommitFinal,
    CommitOutcome,
    EventType,
    Heard,
    InteractionContext,
    InteractionSession,
    InterruptReason,
    InvalidCommand,
    Limits,
    MemoryLedger,
    SessionClosed,
    SessionParams,
    SessionState,
    Stage,
    StreamEvent,
    Subscription,
    TokenDelta,
    TooLarge,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    TurnState,
    UnknownTurn,
    draft_event,
    open_stage,
)
from footlights_actors import Line, Pause, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from footlights.authority.record import CommitRecord

QUEUE, INTERRUPT, REJECT, CONCURRENT = (
    TurnParams(busy=rule) for rule in (BusyRule.QUEUE, BusyRule.INTERRUPT, BusyRule.REJECT, BusyRule.CONCURRENT)
)
SPEECH = "Good evening, my friend."
TALK: tuple[Line, ...] = (Say("Good evening,"), Pause(1.0), Say(" my friend."))


class SlowLedger(MemoryLedger):
    """A ledger that takes its time, so that there is a window between the end of a turn and its commit."""

    async def append(self, records: Sequence[CommitRecord]) -> None:
        await trio.sleep(1.0)
        await super().append(records)


def tavern(
    limits: Limits | None = None, *, lines: Iterable[Line] = TALK, ledger: MemoryLedger | None = None
) -> AbstractAsyncContextManager[Stage]:
    model = ScriptedModel(lambda _: tuple(lines))
    return open_stage(standard_cast(model), limits=limits, ledger=ledger, wall_clock=lambda: 0.0)


async def committed(stream: Subscription, *turn_ids: str) -> list[StreamEvent]:
    """Everything until all of these turns are committed."""
    got: list[StreamEvent] = []
    missing = set(turn_ids)
    while missing:
        event = await anext(stream)
        got.append(event)
        if event.event_type is EventType.COMMIT_FINAL:
            missing.discard(event.turn_id)
    return got


def ending(events: Iterable[StreamEvent], turn_id: str) -> object:
    """How the turn ended: the reason of its interruption, or its text."""
    for event in events:
        if event.turn_id == turn_id:
            if isinstance(event.payload, TurnInterrupted):
                return event.payload.reason
            if isinstance(event.payload, TurnFinal):
                return event.payload.text
    return None


def ahead(events: Iterable[StreamEvent]) -> dict[str, int]:
    return {event.turn_id: event.payload.turns_ahead for event in events if isinstance(event.payload, TurnAccepted)}


def types_of(events: Iterable[StreamEvent], turn_id: str) -> list[EventType]:
    return [event.event_type for event in events if event.turn_id == turn_id]


# -- beginning a turn


async def test_the_turn_is_accepted_when_begin_turn_returns(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            with trio.testing.assert_no_checkpoints():
                turn_id = session.begin_turn("A room?")
                event = await anext(stream)
            assert (event.turn_id, event.seq, event.payload) == (turn_id, 0, TurnAccepted(turns_ahead=0))


async def test_a_queued_turn_is_accepted_now_and_runs_after_the_commit_before_it(
    quiet_clock: trio.testing.MockClock,
) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turns = [session.begin_turn("A room?", QUEUE) for _ in range(3)]
            events = await committed(stream, *turns)
    assert ahead(events) == dict(zip(turns, range(3), strict=True))
    order = [event.turn_id for event in events if event.event_type is not EventType.TURN_ACCEPTED]
    assert order == sorted(order)
    assert [ending(events, turn_id) for turn_id in turns] == [SPEECH] * 3


@pytest.mark.parametrize("limit", [0, 2])
async def test_the_queue_has_a_limit_and_a_refusal_changes_nothing(
    quiet_clock: trio.testing.MockClock, limit: int
) -> None:
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
    quiet_clock: trio.testing.MockClock,
) -> None:
    async with tavern(ledger=SlowLedger()) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            running, queued = session.begin_turn("A room?"), session.begin_turn("A beer?")
            await trio.sleep(0.5)
            barged = session.begin_turn("Fire!", INTERRUPT)
            events = await committed(stream, running, queued, barged)
    assert ending(events, running) is ending(events, queued) is InterruptReason.BARGE_IN
    assert ending(events, barged) == SPEECH
    assert ahead(events)[barged] == 2
    commits = [at for at, event in enumerate(events) if event.event_type is EventType.COMMIT_FINAL]
    first_word = next(at for at, event in enumerate(events) if event.turn_id == barged and event.seq == 1)
    assert commits[0] < commits[1] < first_word
    assert types_of(events, queued) == [EventType.TURN_ACCEPTED, EventType.TURN_INTERRUPTED, EventType.COMMIT_FINAL]


async def test_a_barge_in_that_is_refused_interrupts_nobody(quiet_clock: trio.testing.MockClock) -> None:
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


async def test_reject_refuses_while_any_turn_is_open(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(ledger=SlowLedger()) as stage:
        session = stage.start()
        first = session.begin_turn("A room?", REJECT)
        for _ in range(2):  # while it talks, and while its commit is written
            with pytest.raises(Busy, match="reject"):
                session.begin_turn("A beer?", REJECT)
            await trio.sleep(1.5)
        await session.finalize(first).wait()
        assert session.begin_turn("A beer?", REJECT) == "t1-000002"


async def test_concurrent_turns_run_beside_each_other_up_to_their_limit(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(Limits(max_concurrent_turns=2)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            began = trio.current_time()
            turns = [session.begin_turn("A room?", CONCURRENT) for _ in range(2)]
            known = session.statistics()
            with pytest.raises(Busy, match="max_concurrent_turns"):
                session.begin_turn("A beer?", CONCURRENT)
            assert session.statistics() == known
            events = await committed(stream, *turns)
            assert trio.current_time() - began == pytest.approx(1.0)
    assert ahead(events) == dict.fromkeys(turns, 0)


async def test_a_queued_turn_waits_for_every_turn_before_it(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            first = session.begin_turn("A room?", CONCURRENT)
            await trio.sleep(0.5)
            second = session.begin_turn("A beer?", CONCURRENT)
            queued = session.begin_turn("And then?", QUEUE)
            events = await committed(stream, first, second, queued)
    assert ahead(events)[queued] == 2
    began = next(at for at, event in enumerate(events) if event.turn_id == queued and event.seq == 1)
    assert {e.turn_id for e in events[:began] if e.event_type is EventType.COMMIT_FINAL} == {first, second}


async def test_the_whole_stage_has_a_limit_of_open_turns(quiet_clock: trio.testing.MockClock) -> None:
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


async def test_a_turn_runs_in_the_context_of_whoever_began_it(quiet_clock: trio.testing.MockClock) -> None:
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


# -- canceling


async def test_a_cancel_says_which_turn_it_won_and_that_turn_is_interrupted(
    quiet_clock: trio.testing.MockClock,
) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("A room?")
            await trio.sleep(0.5)
            assert session.cancel(turn_id) == (turn_id,)
            assert session.cancel(turn_id) == ()
            events = await committed(stream, turn_id)
            assert session.cancel(turn_id) == ()
    assert ending(events, turn_id) is InterruptReason.CANCELED
    commit = events[-1].payload
    assert isinstance(commit, CommitFinal)
    assert (commit.commit_outcome, [issue.code for issue in commit.issues]) == (
        CommitOutcome.FAIL_CLOSED,
        ["turn_interrupted"],
    )


async def test_a_cancel_after_the_final_event_changes_nothing_about_the_commit(
    quiet_clock: trio.testing.MockClock,
) -> None:
    async with tavern(ledger=SlowLedger()) as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        await trio.sleep(1.5)
        assert session.statistics().turns_by_state == {TurnState.FINAL: 1}
        assert session.cancel(turn_id) == session.cancel() == ()
        commit = await session.finalize(turn_id).wait()
        assert commit.commit_outcome is CommitOutcome.OK


async def test_a_canceled_queued_turn_never_runs_and_holds_nobody_up(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            first, second, third = (session.begin_turn("A room?") for _ in range(3))
            assert session.cancel(second) == (second,)
            events = await committed(stream, first, second, third)
    assert types_of(events, second) == [EventType.TURN_ACCEPTED, EventType.TURN_INTERRUPTED, EventType.COMMIT_FINAL]
    assert [ending(events, turn_id) for turn_id in (first, third)] == [SPEECH, SPEECH]


async def test_canceling_everything_wins_every_open_turn(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        assert session.cancel() == ()
        done = session.begin_turn("A room?")
        await session.finalize(done).wait()
        turns = [session.begin_turn("A room?", params) for params in (QUEUE, QUEUE, CONCURRENT)]
        other = stage.start()
        neighbour = other.begin_turn("A room?")
        assert session.cancel() == tuple(turns)
        assert session.cancel() == ()
        assert (await other.finalize(neighbour).wait()).commit_outcome is CommitOutcome.OK


UNKNOWN = ["", "t1-000002", "t1-000000", "t1-1", "t1-0000001", "t2-000001", "t1-", "t1-\u0661", "x" * 10_000]


@pytest.mark.parametrize(
    "turn_id",
    [
        *UNKNOWN,
        "t1-" + "9" * 5000,
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        lambda session, turn_id: session.cancel(turn_id),
        lambda session, turn_id: session.finalize(turn_id),
        lambda session, turn_id: session.heard(turn_id, 0),
    ],
)
async def test_an_id_that_was_never_given_out_is_unknown(
    call: Callable[[InteractionSession, str], object], turn_id: str
) -> None:
    async with tavern() as stage:
        session = stage.start()
        session.begin_turn("A room?")
        with pytest.raises(UnknownTurn) as unknown:
            call(session, turn_id)
        assert len(str(unknown.value)) < 200


async def test_the_turn_of_another_session_is_unknown(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        inn, barn = (stage.start(SessionParams(session_id=name)) for name in ("inn", "barn"))
        turn_id = inn.begin_turn("A room?")
        with pytest.raises(UnknownTurn):
            barn.cancel(turn_id)


# -- what was heard


@pytest.mark.parametrize("seq", range(5))
async def test_an_interruption_carries_the_text_up_to_what_was_heard(
    quiet_clock: trio.testing.MockClock, seq: int
) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("A room?")
            await trio.sleep(0.5)
            session.heard(turn_id, seq)
            session.cancel(turn_id)
            events = await committed(stream, turn_id)
    interrupted = events[-2].payload
    assert isinstance(interrupted, TurnInterrupted)
    # turn_accepted, model_selected and model_ready come before the two words.
    assert interrupted.heard == Heard(seq, ["", "", "", "Good", "Good evening,"][seq])


async def test_what_was_heard_never_becomes_less(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("A room?")
            await trio.sleep(0.5)
            for seq in (4, 1):
                session.heard(turn_id, seq)
            session.cancel(turn_id)
            session.heard(turn_id, 5)
            events = await committed(stream, turn_id)
    assert isinstance(events[-2].payload, TurnInterrupted)
    assert events[-2].payload.heard == Heard(4, "Good evening,")


@pytest.mark.parametrize("seq", [-1, 5, 10**30])
async def test_what_was_not_said_cannot_have_been_heard(quiet_clock: trio.testing.MockClock, seq: int) -> None:
    async with tavern() as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        await trio.sleep(0.5)
        with pytest.raises(InvalidCommand):
            session.heard(turn_id, seq)


async def test_what_was_heard_is_counted_in_whole_events(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        with pytest.raises((InvalidCommand, TypeError)):
            session.heard(turn_id, 0.0)  # type: ignore[arg-type]  # what an untyped host may do


async def test_hearing_a_turn_that_is_long_over_is_no_mistake(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(Limits(replay_turns=0)) as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        await session.finalize(turn_id).wait()
        session.heard(turn_id, 3)


# -- subscribing


async def whole_turn(session: InteractionSession) -> list[StreamEvent]:
    async with session.subscribe() as stream:
        return await committed(stream, session.begin_turn("A room?"))


async def replayed(session: InteractionSession, after: Mapping[str, int] | None) -> list[StreamEvent]:
    """What waits for a subscriber that comes now."""
    async with session.subscribe(after) as stream:
        return [] if stream.outbox.is_empty else await stream.receive_batch(10_000)


async def first(events: AsyncIterator[StreamEvent], count: int) -> list[StreamEvent]:
    got: list[StreamEvent] = []
    async for event in events:
        got.append(event)
        if len(got) == count:
            break
    return got


def said(events: Iterable[StreamEvent]) -> str:
    return "".join(event.payload.delta for event in events if isinstance(event.payload, TokenDelta))


def others(events: Iterable[StreamEvent]) -> list[tuple[str, int, EventType]]:
    return [(e.turn_id, e.seq, e.event_type) for e in events if not isinstance(e.payload, TokenDelta)]


async def test_coming_back_to_a_finished_turn_at_any_point_gives_exactly_the_rest(
    quiet_clock: trio.testing.MockClock,
) -> None:
    async with tavern() as stage:
        session = stage.start()
        events = await whole_turn(session)
        (turn_id,) = {event.turn_id for event in events}
        for at, event in enumerate(events):
            rest = await replayed(session, {turn_id: event.seq})
            assert others(rest) == others(events[at + 1 :])
            assert said(rest) == said(events[at + 1 :])


@pytest.mark.parametrize("taken", range(1, 12))
async def test_coming_back_while_the_turn_goes_on_skips_and_repeats_nothing(
    quiet_clock: trio.testing.MockClock, taken: int
) -> None:
    lines: list[Line] = [Say("Good evening,"), Pause(1.0), Say(" my friend."), Pause(1.0), Say(" Sit down.")]
    async with tavern(lines=lines) as stage:
        session = stage.start()
        whole = await whole_turn(session)
        turn_id = session.begin_turn("A room?")
        async with session.subscribe() as stream:
            got = await first(stream.until_commit(turn_id), taken)
        async with session.subscribe(after={**stream.cursor, whole[0].turn_id: whole[-1].seq}) as stream:
            if got[-1].event_type is not EventType.COMMIT_FINAL:
                got += await committed(stream, turn_id)
    assert said(got) == said(whole)
    assert [each[1:] for each in others(got)] == [each[1:] for each in others(whole)]
    assert [event.seq for event in got] == sorted({event.seq for event in got})


async def test_a_newcomer_gets_unfinished_turns_from_their_beginning_and_no_finished_ones(
    quiet_clock: trio.testing.MockClock,
) -> None:
    async with tavern() as stage:
        session = stage.start()
        await whole_turn(session)
        running, queued = session.begin_turn("A beer?"), session.begin_turn("And then?")
        await trio.sleep(0.5)
        async with session.subscribe() as stream:
            events = await committed(stream, running, queued)
    assert {event.turn_id for event in events} == {running, queued}
    assert [ending(events, turn_id) for turn_id in (running, queued)] == [SPEECH, SPEECH]
    assert {e.turn_id: e.seq for e in reversed(events)} == {running: 0, queued: 0}


async def test_whoever_asks_for_everything_gets_all_that_is_retained(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(Limits(replay_turns=2)) as stage:
        session = stage.start()
        turns = [(await whole_turn(session))[0].turn_id for _ in range(3)]
        assert {event.turn_id for event in await replayed(session, {})} == set(turns[1:])
        assert {event.turn_id for event in await replayed(session, {turns[1]: 2, turns[0]: 0})} == set(turns[1:])
        assert session.statistics().turns_retained == 2


async def test_nothing_is_retained_if_the_host_wants_it_so(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(Limits(replay_turns=0)) as stage:
        session = stage.start()
        await whole_turn(session)
        assert await replayed(session, {}) == []


@pytest.mark.parametrize(
    "seq",
    [
        9,
        10**30,
        -2,
    ],
)
async def test_nobody_can_have_seen_what_was_not_said(quiet_clock: trio.testing.MockClock, seq: int) -> None:
    async with tavern() as stage:
        session = stage.start()
        events = await whole_turn(session)
        assert events[-1].seq == 8
        stream = session.subscribe(after={events[0].turn_id: seq})
        with pytest.raises(InvalidCommand):
            await stream.__aenter__()
        assert session.statistics().subscribers == ()


async def test_a_session_has_only_so_many_subscribers_at_once(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(Limits(max_subscribers=1)) as stage:
        session = stage.start()
        for _ in range(2):
            async with session.subscribe():
                with pytest.raises(Busy, match="max_subscribers"):
                    await session.subscribe().__aenter__()
                assert len(session.statistics().subscribers) == 1


async def test_losing_every_subscriber_is_not_a_cancel(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("A room?")
            await anext(stream)
        commit = await session.finalize(turn_id).wait()
        assert commit.commit_outcome is CommitOutcome.OK


# -- closing


async def test_closing_interrupts_what_is_open_and_ends_every_stream(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream, session.subscribe() as other:
            turns = [session.begin_turn("A room?") for _ in range(2)]
            await trio.sleep(0.5)
            await session.close()
            events = [event async for event in stream]
            assert [event async for event in other] == events
        assert [ending(events, turn_id) for turn_id in turns] == [InterruptReason.SESSION_CLOSED] * 2
        assert session.state is SessionState.CLOSED
        assert stage.statistics().sessions == 0


async def test_closing_twice_or_at_once_is_the_same_as_closing(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(ledger=SlowLedger()) as stage:
        session = stage.start()
        session.begin_turn("A room?")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.close)
            nursery.start_soon(session.close)
        with trio.testing.assert_checkpoints():
            await session.close()


async def test_a_closing_session_takes_no_turn_and_a_closed_one_no_subscriber(
    quiet_clock: trio.testing.MockClock,
) -> None:
    async with tavern(ledger=SlowLedger()) as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.close)
            await trio.testing.wait_all_tasks_blocked()
            assert session.statistics().state is SessionState.CLOSING
            with pytest.raises(SessionClosed):
                session.begin_turn("Still there?")
            async with session.subscribe() as stream:
                events = await committed(stream, turn_id)
        assert ending(events, turn_id) is InterruptReason.SESSION_CLOSED
        with pytest.raises(SessionClosed):
            await session.subscribe().__aenter__()
        with pytest.raises(SessionClosed):
            session.begin_turn("Anybody?")
        assert session.cancel() == ()


async def test_a_close_that_is_cancelled_still_closes(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(ledger=SlowLedger()) as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        with trio.CancelScope() as scope:
            scope.cancel()
            await session.close()
        assert scope.cancelled_caught
        await session.finalize(turn_id).wait()
        assert session.statistics().state is SessionState.CLOSED


async def test_closing_between_the_final_event_and_the_commit_changes_nothing_about_it(
    quiet_clock: trio.testing.MockClock,
) -> None:
    async with tavern(ledger=SlowLedger()) as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        await trio.sleep(1.5)
        await session.close()
        commit = session.finalize(turn_id).commit
        assert commit is not None
        assert commit.commit_outcome is CommitOutcome.OK


# -- statistics and plain calls


async def test_statistics_count_turns_by_state_and_who_waits(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(Limits(max_queued_turns=3, replay_turns=2, max_subscribers=5)) as stage:
        session = stage.start(SessionParams(session_id="inn"))
        await whole_turn(session)
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


async def test_everything_but_closing_is_a_plain_call(quiet_clock: trio.testing.MockClock) -> None:
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


async def test_a_workload_of_the_hosts_own_follows_the_same_rules(quiet_clock: trio.testing.MockClock) -> None:
    class Greet:
        async def run(self, context: InteractionContext) -> None:
            await trio.sleep(1.0)
            context.emit_event(draft_event("token_delta", {"delta": f"{context.input}!"}))

    async with open_stage(standard_cast(workloads={"greet": Greet()})) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            params = TurnParams(workload="greet", busy=BusyRule.INTERRUPT)
            turns = [session.begin_turn("Hello", params) for _ in range(2)]
            events = await committed(stream, *turns)
    assert [ending(events, turn_id) for turn_id in turns] == [InterruptReason.BARGE_IN, "Hello!"]
