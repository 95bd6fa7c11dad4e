"""Closing a session settles every turn and ends every stream, even if the closing task is cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import (
    CommitOutcome,
    InterruptReason,
    MemoryLedger,
    SessionClosed,
    SessionState,
    Stage,
    TurnInterrupted,
    open_stage,
)
from footlights.testing import only
from footlights.testing.faults import FlakyLedger
from footlights_actors import Pause, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from trio.testing import MockClock

TALK = (Say("Good evening,"), Pause(1.0), Say(" my friend."))


def slow_ledger() -> FlakyLedger:
    """It takes its time, so that there is a window between the end of a turn and its commit."""
    return FlakyLedger(MemoryLedger(), delay=1.0)


def tavern(*, ledger: FlakyLedger | None = None) -> AbstractAsyncContextManager[Stage]:
    return open_stage(standard_cast(ScriptedModel(lambda _: TALK)), ledger=ledger)


async def test_closing_twice_or_at_once_is_the_same_as_closing(quiet_clock: MockClock) -> None:
    async with tavern(ledger=slow_ledger()) as stage:
        session = stage.start()
        session.begin_turn("A room?")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.close)
            nursery.start_soon(session.close)
        with trio.testing.assert_checkpoints():
            await session.close()
        assert (session.state, stage.statistics().sessions) == (SessionState.CLOSED, 0)


async def test_a_closing_session_takes_no_turn_and_a_closed_one_no_subscriber(
    quiet_clock: MockClock,
) -> None:
    async with tavern(ledger=slow_ledger()) as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(session.close)
            await trio.testing.wait_all_tasks_blocked()
            assert session.statistics().state is SessionState.CLOSING
            with pytest.raises(SessionClosed):
                session.begin_turn("Still there?")
            async with session.subscribe() as stream:
                events = [event async for event in stream.until_commit(turn_id)]
        assert only(events, TurnInterrupted).reason is InterruptReason.SESSION_CLOSED
        with pytest.raises(SessionClosed):
            await session.subscribe().__aenter__()
        with pytest.raises(SessionClosed):
            session.begin_turn("Anybody?")
        assert session.cancel() == ()


async def test_a_close_that_is_cancelled_still_closes(quiet_clock: MockClock) -> None:
    async with tavern(ledger=slow_ledger()) as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        with trio.CancelScope() as scope:
            scope.cancel()
            await session.close()
        assert scope.cancelled_caught
        await session.finalize(turn_id).wait()
        assert session.statistics().state is SessionState.CLOSED


async def test_closing_between_the_final_event_and_the_commit_changes_nothing_about_it(
    quiet_clock: MockClock,
) -> None:
    async with tavern(ledger=slow_ledger()) as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        await trio.sleep(1.5)
        await session.close()
        commit = session.finalize(turn_id).commit
        assert commit is not None
        assert commit.commit_outcome is CommitOutcome.OK
