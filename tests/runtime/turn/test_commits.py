"""A commit handle tells what was decided about a turn, whenever it is asked."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import (
    CommitFinal,
    CommitOutcome,
    CommitUnknown,
    Limits,
    MemoryLedger,
    Stage,
    UnknownTurn,
    open_stage,
)
from footlights.testing.faults import FlakyLedger
from footlights_actors import Pause, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from footlights import Ledger


def tavern(limits: Limits | None = None, ledger: Ledger | None = None) -> AbstractAsyncContextManager[Stage]:
    model = ScriptedModel(lambda _: (Say("Good evening,"), Pause(1.0), Say(" my friend.")))
    return open_stage(standard_cast(model), limits=limits, ledger=ledger)


@pytest.mark.shows("core-60")
async def test_a_handle_may_be_taken_before_during_and_after_the_turn(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        first, queued = session.begin_turn("A room?"), session.begin_turn("A beer?")
        before = session.finalize(queued)
        assert (before.turn_id, before.commit) == (queued, None)
        await session.finalize(first).wait()
        during = session.finalize(queued)
        commit = await before.wait()
        assert commit.commit_outcome is CommitOutcome.OK
        after = session.finalize(queued)
        assert before.commit is during.commit is after.commit is commit
        assert await after.wait() is commit


async def test_a_handle_tells_what_the_stream_tells(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("A room?")
            session.cancel(turn_id)
            events = [event async for event in stream.until_commit(turn_id)]
        assert session.finalize(turn_id).commit == events[-1].payload


async def test_waiting_is_always_a_checkpoint_and_may_be_cancelled(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(Limits(replay_turns=1)) as stage:
        session = stage.start()
        turns = [session.begin_turn("A room?") for _ in range(2)]
        handle = session.finalize(turns[0])
        with trio.move_on_after(0.1) as scope:
            await handle.wait()
        assert scope.cancelled_caught
        await session.finalize(turns[1]).wait()
        for known in (handle, session.finalize(turns[0]), session.finalize(turns[1])):
            with trio.testing.assert_checkpoints():
                await known.wait()


async def test_a_turn_no_longer_kept_is_answered_from_the_ledger(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(Limits(replay_turns=1)) as stage:
        session = stage.start()
        commits: dict[str, CommitFinal] = {}
        for _ in range(3):
            turn_id = session.begin_turn("A room?")
            commits[turn_id] = await session.finalize(turn_id).wait()
        handles = [session.finalize(turn_id) for turn_id in commits]
        assert [handle.commit for handle in handles] == [None, None, list(commits.values())[-1]]
        assert [await handle.wait() for handle in handles] == list(commits.values())


async def test_a_handle_taken_in_time_outlives_the_replay(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(Limits(replay_turns=0)) as stage:
        session = stage.start()
        handle = session.finalize(session.begin_turn("A room?"))
        commit = await handle.wait()
        assert handle.commit is commit


async def test_a_turn_that_is_not_recorded_is_unknown(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(Limits(replay_turns=0), MemoryLedger(max_records=1)) as stage:
        session = stage.start()
        turns = [session.begin_turn("A room?") for _ in range(2)]
        await session.finalize(turns[1]).wait()
        with pytest.raises(UnknownTurn):
            await session.finalize(turns[0]).wait()


async def test_a_ledger_that_cannot_write_fails_the_commit_closed(quiet_clock: trio.testing.MockClock) -> None:
    async with tavern(ledger=FlakyLedger(MemoryLedger(), failing_appends={1})) as stage:
        session = stage.start()
        commit = await session.finalize(session.begin_turn("A room?")).wait()
    assert commit.commit_outcome is CommitOutcome.FAIL_CLOSED
    assert [issue.code for issue in commit.issues] == ["ledger_unavailable"]


async def test_a_commit_in_doubt_is_never_announced(quiet_clock: trio.testing.MockClock) -> None:
    never = FlakyLedger(MemoryLedger(), delay=inf)
    async with trio.open_nursery() as nursery, tavern(Limits(shutdown_deadline=1.0), never) as stage:
        session = stage.start()
        waited_for, asked_later = (session.finalize(session.begin_turn("A room?")) for _ in range(2))

        @nursery.start_soon
        async def _wait() -> None:
            with pytest.raises(CommitUnknown):
                await waited_for.wait()

        await trio.testing.wait_all_tasks_blocked()
    assert waited_for.commit is None
    with pytest.raises(CommitUnknown):
        await asked_later.wait()
