"""A cancel wins or loses a turn at once, and says so; it touches no turn but those it won."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from footlights import (
    BusyRule,
    CommitOutcome,
    EventType,
    InteractionSession,
    MemoryLedger,
    SessionParams,
    Stage,
    TurnParams,
    TurnState,
    UnknownTurn,
    open_stage,
)
from footlights.testing.faults import FlakyLedger
from footlights_actors import Pause, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from trio.testing import MockClock

TALK = (Say("Good evening,"), Pause(1.0), Say(" my friend."))


def tavern(*, ledger: FlakyLedger | None = None) -> AbstractAsyncContextManager[Stage]:
    return open_stage(standard_cast(ScriptedModel(lambda _: TALK)), ledger=ledger)


@pytest.mark.shows("core-32")
async def test_a_cancel_after_the_final_event_changes_nothing_about_the_commit(
    quiet_clock: MockClock,
) -> None:
    async with tavern(ledger=FlakyLedger(MemoryLedger(), delay=1.0)) as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        await trio.sleep(1.5)
        assert session.statistics().turns_by_state == {TurnState.FINAL: 1}
        assert session.cancel(turn_id) == session.cancel() == ()
        commit = await session.finalize(turn_id).wait()
        assert commit.commit_outcome is CommitOutcome.OK


async def test_a_canceled_queued_turn_never_runs_and_delays_no_other(quiet_clock: MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            first, second, third = (session.begin_turn("A room?") for _ in range(3))
            assert session.cancel(second) == (second,)
            events = [event async for event in stream.until_commit(third)]
    never_ran = [EventType.TURN_ACCEPTED, EventType.TURN_INTERRUPTED, EventType.COMMIT_FINAL]
    assert [event.event_type for event in events if event.turn_id == second] == never_ran
    assert [event.turn_id for event in events if event.event_type is EventType.TURN_FINAL] == [first, third]


async def test_canceling_everything_wins_every_open_turn(quiet_clock: MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        assert session.cancel() == ()
        done = session.begin_turn("A room?")
        await session.finalize(done).wait()
        turns = [session.begin_turn("A room?", params) for params in (None, None, TurnParams(busy=BusyRule.CONCURRENT))]
        other = stage.start()
        neighbour = other.begin_turn("A room?")
        assert session.cancel() == tuple(turns)
        assert session.cancel() == ()
        assert (await other.finalize(neighbour).wait()).commit_outcome is CommitOutcome.OK


UNKNOWN = ["", "t1-000002", "t1-000000", "t1-1", "t1-0000001", "t2-000001", "t1-", "t1-\u0661", "x" * 10_000]


@pytest.mark.parametrize("turn_id", [*UNKNOWN, "t1-" + "9" * 5000])
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


async def test_the_turn_of_another_session_is_unknown(quiet_clock: MockClock) -> None:
    async with tavern() as stage:
        inn, barn = (stage.start(SessionParams(session_id=name)) for name in ("inn", "barn"))
        turn_id = inn.begin_turn("A room?")
        with pytest.raises(UnknownTurn):
            barn.cancel(turn_id)
