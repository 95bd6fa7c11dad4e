"""A stage whose ledger another one takes over: it closes with one error, and invents no commit."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from footlights import (
    Busy,
    CommitOutcome,
    CommitUnknown,
    Detached,
    EventType,
    LedgerFenced,
    MemoryLedger,
    Prompt,
    SessionParams,
    StreamEvent,
    Tool,
    open_stage,
)
from footlights.authority import JsonWorld
from footlights.testing.faults import FlakyLedger
from footlights.testing.fenced import Fence, FencedLedger
from footlights_actors import Call, Line, Pause, Say, ScriptedModel, standard_cast
from footlights_kit.explore import cancel_everywhere

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights_kit.trial import Trial

WORLD = JsonWorld({})


@contextmanager
def fenced() -> Iterator[None]:
    """Expect this stage to be closed by that error, and by no other."""
    try:
        yield
    except LedgerFenced:
        return
    raise AssertionError("the stage was not fenced")


def handles() -> tuple[FencedLedger, FencedLedger]:
    shared, fence = MemoryLedger(), Fence()
    return FencedLedger(shared, fence), FencedLedger(shared, fence)


def saying(seconds: float = 0.0) -> ScriptedModel:
    return ScriptedModel(lambda _: (Say("Good evening,"), Pause(seconds), Say(" my friend.")))


async def test_a_fenced_stage_closes_with_one_error_and_tells_of_no_commit(quiet_clock: MockClock) -> None:
    mine, others = handles()
    events: list[StreamEvent] = []
    with fenced():
        async with open_stage(standard_cast(saying(1.0)), ledger=mine) as stage:
            session = stage.start()
            async with session.subscribe() as stream:
                commit = session.finalize(session.begin_turn("A room?"))
                await others.begin_epoch(WORLD)
                events += [event async for event in stream]
    assert EventType.COMMIT_FINAL not in [event.event_type for event in events]
    with pytest.raises(CommitUnknown):
        await commit.wait()
    assert not stage.is_open


async def test_an_error_of_the_host_is_raised_beside_that_of_the_ledger(quiet_clock: MockClock) -> None:
    mine, others = handles()

    async def host() -> None:
        async with open_stage(standard_cast(saying()), ledger=mine):
            await others.begin_epoch(WORLD)
            raise ValueError("the host's own")

    with pytest.raises(BaseExceptionGroup) as caught:
        await host()
    assert caught.group_contains(ValueError)
    assert caught.group_contains(LedgerFenced)


async def test_a_commit_that_is_fenced_is_announced_to_nobody(quiet_clock: MockClock) -> None:
    mine, others = handles()
    told: list[EventType] = []
    with fenced():
        async with open_stage(standard_cast(saying(1.0)), ledger=FlakyLedger(mine)) as stage:  # it has no lease
            session = stage.start()
            async with session.subscribe() as stream:
                session.begin_turn("A room?")
                await others.begin_epoch(WORLD)
                async for event in stream:
                    told.append(event.event_type)  # noqa: PERF401 - kept also when it ends by an error
    assert EventType.TURN_FINAL in told
    assert EventType.COMMIT_FINAL not in told


async def test_a_tool_does_not_run_on_a_stage_that_is_fenced(quiet_clock: MockClock) -> None:
    mine, others = handles()
    ran: list[str] = []

    async def charge(arguments: object, context: object) -> None:
        ran.append("charged")

    def script(prompt: Prompt) -> tuple[Line, ...]:
        return (Say("Done."),) if prompt.rounds else (Pause(1.0), Call("charge"))

    told: list[EventType] = []
    cast = standard_cast(ScriptedModel(script), tools=[Tool(name="charge", run=charge)])
    with fenced():
        async with open_stage(cast, ledger=FlakyLedger(mine)) as stage:
            session = stage.start()
            async with session.subscribe() as stream:
                session.begin_turn("A room?")
                await others.begin_epoch(WORLD)
                async for event in stream:
                    told.append(event.event_type)  # noqa: PERF401 - kept also when it ends by an error
    assert ran == []
    assert EventType.COMMIT_FINAL not in told


async def test_no_turn_begins_while_the_lease_is_doubtful_and_those_that_run_are_committed(
    quiet_clock: MockClock,
) -> None:
    mine, _ = handles()
    async with open_stage(standard_cast(saying(1.0)), ledger=mine) as stage:
        session = stage.start()
        running = session.begin_turn("A room?")
        await wait_all_tasks_blocked()
        assert mine.doubtful is not None
        mine.doubtful(True)
        with pytest.raises(Busy):
            session.begin_turn("A beer?")
        commit = await session.finalize(running).wait()
        assert commit.commit_outcome is CommitOutcome.OK
        mine.doubtful(False)
        commit = await session.finalize(session.begin_turn("A beer?")).wait()
        assert commit.commit_outcome is CommitOutcome.OK


async def test_the_owner_that_is_fenced_and_the_next_one_tell_one_story(quiet_clock: MockClock) -> None:
    mine, others = handles()
    cast = standard_cast(saying(1.0))
    told: list[StreamEvent] = []
    with fenced():
        async with open_stage(cast, ledger=mine) as stage:
            session = stage.start(SessionParams(session_id="ann"))
            async with session.subscribe() as stream:
                turn_id = session.begin_turn("A room?")
                while len(told) < 3:
                    told.append(await anext(stream))
                await others.begin_epoch(WORLD)
                with suppress(Detached):
                    async for event in stream:
                        told.append(event)  # noqa: PERF401 - kept also when it ends by an error
    async with open_stage(cast, ledger=others) as later:
        session = later.resume("ann")
        async with session.subscribe(stream.cursor, stream.terminal_seen) as stream:
            told += [event async for event in stream.until_commit(turn_id)]
    kinds = [event.event_type for event in told]
    assert kinds.count(EventType.COMMIT_FINAL) == 1
    assert kinds.count(EventType.TURN_INTERRUPTED) == 1


def test_a_takeover_at_any_point_leaves_only_commits_that_were_told_or_are_unknown() -> None:
    async def scenario(trial: Trial) -> None:
        shared, fence = MemoryLedger(), Fence()
        first, second = FencedLedger(shared, fence), FencedLedger(shared, fence)
        told: list[str] = []

        def take_over() -> None:
            fence.owner = second

        try:
            async with open_stage(standard_cast(saying()), ledger=first) as stage:
                session = stage.start()
                trial.aim(take_over)
                for _ in range(2):
                    turn_id = session.begin_turn("A room?")
                    await session.finalize(turn_id).wait()
                    told.append(turn_id)
        except LedgerFenced:
            assert fence.owner is second
        finally:
            trial.disarm()
        assert [record.turn_id for record in await shared.commits_from(0, 9)] == told

    cancel_everywhere(scenario)
