"""Turns, canceled at every point of every scenario.

Each scenario runs beside an innocent neighbour turn of another session, which must always complete. Streams
are held to the laws by the witness, leaks and deadlocks by `cancel_everywhere`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import pytest
import trio
import trio.testing
from attrs import define

from footlights import (
    BusyRule,
    Cast,
    CommitOutcome,
    EventType,
    Intent,
    IntentType,
    InteractionSession,
    InterruptReason,
    Limits,
    MemoryLedger,
    Prompt,
    SideEffects,
    Stage,
    StreamEvent,
    Tool,
    ToolContext,
    ToolReturn,
    TurnInterrupted,
    TurnParams,
    WarmState,
    laws,
    open_stage,
)
from footlights.authority import patch
from footlights.authority.rules import Ruling, accept
from footlights_actors import Call, Line, Pause, Say, ScriptedModel, standard_cast
from footlights_kit.explore import cancel_everywhere

if TYPE_CHECKING:
    from footlights.authority import CommitRecord, TurnRequest, World
    from footlights.events import JsonValue
    from footlights_kit.trial import Trial

ORDERS = 2
PAIRS = 30


# -- the cast


def speech(*lines: Line) -> Callable[[Prompt], Sequence[Line]]:
    """Lines up to the first tools; after them the rest."""

    def script(prompt: Prompt) -> Sequence[Line]:
        rounds: list[list[Line]] = [[]]
        for line in lines:
            if not isinstance(line, Call) and rounds[-1] and isinstance(rounds[-1][-1], Call):
                rounds.append([])
            rounds[-1].append(line)
        done = 0
        for number, each in enumerate(rounds):
            calls = sum(isinstance(line, Call) for line in each)
            if len(prompt.exchanges) < done + calls or number == len(rounds) - 1:
                return each
            done += calls
        return []

    return script


def tool(name: str, seconds: float, *, deaf: bool = False, cancel_safe: bool = False) -> Tool:
    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolReturn:
        with trio.CancelScope(shield=deaf):
            await trio.sleep(seconds)
        context.request_commit(Intent(IntentType.TOOL_RESULT, name))
        return ToolReturn({"done": True}, "done")

    return Tool(name=name, run=run, cancel_safe=cancel_safe, side_effects=SideEffects.MARKED if cancel_safe else None)


def count_results(world: dict[str, int], intents: tuple[Intent, ...]) -> Ruling:
    return accept(patch.replace("/results", world["results"] + len(intents))) if intents else accept()


def cast(*lines: Line, tools: Sequence[Tool] = (), cold: bool = False) -> Cast:
    model = ScriptedModel(
        speech(*lines),
        pace=0.01,
        warm_state=WarmState.COLD if cold else WarmState.HOT,
        load_seconds=0.1,
        load_steps=2,
    )
    neighbourly = ScriptedModel(speech(Say("All is well here.")), model_id="neighbour", pace=0.013)
    return standard_cast(model, neighbourly, tools=tools, world={"results": 0}, rules={"count_results": count_results})


class SlowLedger(MemoryLedger):
    async def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        await trio.sleep(0.02)
        await super().append(records, world, requests)


# -- the house


@define
class House:
    """A stage with the session under test, and the neighbour."""

    trial: Trial
    stage: Stage
    session: InteractionSession
    seen: list[StreamEvent]

    async def settled(self, *turn_ids: str) -> list[StreamEvent]:
        """Wait for the commits of these turns, with points for a cancel all along."""
        for turn_id in turn_ids:
            await self.session.finalize(turn_id).wait()
        self.trial.disarm()
        await trio.testing.wait_all_tasks_blocked()  # until the watcher has seen them too
        return self.seen

    def terminal(self, turn_id: str) -> StreamEvent:
        kinds = (EventType.TURN_FINAL, EventType.TURN_INTERRUPTED)
        [event] = [each for each in self.seen if each.turn_id == turn_id and each.event_type in kinds]
        return event


Play: TypeAlias = Callable[[House], Awaitable[None]]


async def _watch(session: InteractionSession, seen: list[StreamEvent], task_status: trio.TaskStatus[None]) -> None:
    async with session.subscribe() as stream:
        task_status.started()
        async for event in stream:
            seen.append(event)  # noqa: PERF401 - as they come: others look on


def explore(make_cast: Callable[[], Cast], play: Play, *, limits: Limits | None = None, slow: bool = False) -> None:
    async def scenario(trial: Trial) -> None:
        seen: list[StreamEvent] = []
        beside: list[StreamEvent] = []
        ledger = SlowLedger() if slow else MemoryLedger()
        async with trio.open_nursery() as nursery:  # noqa: SIM117 - the watchers outlive the stage
            async with open_stage(make_cast(), ledger=ledger, limits=limits, wall_clock=trio.current_time) as stage:
                session, neighbour = stage.start(), stage.start()
                await nursery.start(_watch, session, seen)
                await nursery.start(_watch, neighbour, beside)
                innocent = neighbour.begin_turn("Good evening.", TurnParams(model="neighbour"))
                await play(House(trial, stage, session, seen))
                await neighbour.finalize(innocent).wait()
                trial.disarm()
                assert stage.statistics().open_turns == 0
        assert [event.event_type for event in beside][-2:] == [EventType.TURN_FINAL, EventType.COMMIT_FINAL]
        assert laws.check(seen) == []

    result = cancel_everywhere(scenario, orders=ORDERS, pairs=PAIRS)
    assert result.points > 10


def canceling(*lines: Line, tools: Sequence[Tool] = (), cold: bool = False) -> None:
    """One turn of these lines, canceled everywhere."""

    async def play(house: House) -> None:
        turn_id = house.session.begin_turn("A room?")
        won: list[tuple[str, ...]] = []
        house.trial.aim(lambda: won.append(house.session.cancel(turn_id)))
        seen = await house.settled(turn_id)
        assert seen[0].event_type is EventType.TURN_ACCEPTED
        interrupted = house.terminal(turn_id).event_type is EventType.TURN_INTERRUPTED
        assert interrupted == any(won)
        assert sum(map(len, won)) <= 1, "a cancel wins once"
        changed = house.stage.world != {"results": 0}
        assert changed == (not interrupted and bool(tools)), "a commit is whole, or it is not"

    explore(partial(cast, *lines, tools=tools, cold=cold), play)


# -- one turn


@pytest.mark.shows("core-29", "core-31")
def test_plain_turn() -> None:
    canceling(Say("Good evening, traveller."))


def test_cold_load() -> None:
    canceling(Say("Good evening."), cold=True)


def test_two_tools() -> None:
    canceling(
        Say("Let me see."),
        Call("look"),
        Call("rent"),
        Say(" Done."),
        tools=[tool("look", 0.02), tool("rent", 0.03)],
    )


def test_two_rounds_of_tools() -> None:
    canceling(Call("look"), Say("And"), Call("rent"), Say("done."), tools=[tool("look", 0.02), tool("rent", 0.02)])


def test_slow_tool_is_reported_after_the_grace() -> None:
    canceling(Say("Wait."), Call("rent"), Say(" Done."), tools=[tool("rent", 2.0)])


def test_tool_that_ignores_cancel() -> None:
    canceling(Say("Wait."), Call("rent"), Say(" Done."), tools=[tool("rent", 0.5, deaf=True)])


def test_cancel_safe_tool() -> None:
    canceling(Say("Wait."), Call("rent"), Say(" Done."), tools=[tool("rent", 0.5, cancel_safe=True)])


# -- several turns


def test_queued_turns() -> None:
    async def play(house: House) -> None:
        session = house.session
        first, second, third = (session.begin_turn(each) for each in ("one", "two", "three"))
        house.trial.aim(lambda: session.cancel(second), lambda: session.cancel(first))
        await house.settled(first, second, third)
        assert house.terminal(third).event_type is EventType.TURN_FINAL
        commits = [event.turn_id for event in house.seen if event.event_type is EventType.COMMIT_FINAL]
        assert set(commits) == {first, second, third}
        started = {
            event.turn_id: number for number, event in enumerate(house.seen) if event.event_type == "model_selected"
        }
        if first in started and third in started:
            done = next(n for n, e in enumerate(house.seen) if e.turn_id == first and e.event_type == "commit_final")
            assert done < started[third], "a queued turn runs after the commit of the one before"

    explore(partial(cast, Say("Good evening.")), play)


def test_barge_in() -> None:
    async def play(house: House) -> None:
        session = house.session
        first = session.begin_turn("Tell me a long story.")
        house.trial.aim(lambda: session.cancel())
        await trio.sleep(0.025)
        second = session.begin_turn("Stop. A room?", TurnParams(busy=BusyRule.INTERRUPT))
        await house.settled(first, second)
        interruption = house.terminal(first).payload
        assert isinstance(interruption, TurnInterrupted)
        assert interruption.reason in (InterruptReason.BARGE_IN, InterruptReason.CANCELED)

    lines = Say("Once upon a time there was."), Call("rent"), Say("Done.")
    explore(partial(cast, *lines, tools=[tool("rent", 0.05)]), play)


def test_concurrent_turns() -> None:
    async def play(house: House) -> None:
        session = house.session
        concurrent = TurnParams(busy=BusyRule.CONCURRENT)
        first, second = session.begin_turn("one", concurrent), session.begin_turn("two", concurrent)
        house.trial.aim(lambda: session.cancel(first))
        await house.settled(first, second)
        assert house.terminal(second).event_type is EventType.TURN_FINAL

    explore(partial(cast, Say("Good evening to you.")), play)


# -- subscribers


def test_two_subscribers_one_of_them_stalled() -> None:
    async def play(house: House) -> None:
        async with house.session.subscribe() as stalled:
            turn_id = house.session.begin_turn("A room?")
            house.trial.aim(lambda: house.session.cancel(turn_id))
            await house.settled(turn_id)
            late = [event async for event in stalled.until_commit(turn_id)]
            assert laws.check(late) == []
            assert late[0].event_type is EventType.TURN_ACCEPTED
            assert late[-2:] == house.seen[-2:] or late[-2].seq == house.terminal(turn_id).seq

    limits = Limits(best_effort_max_events_per_turn=1, bounded_max_events_per_turn=1)
    explore(partial(cast, Say("One two three four."), cold=True), play, limits=limits)


def test_resume_in_the_middle() -> None:
    async def play(house: House) -> None:
        session = house.session
        turn_id = session.begin_turn("A room?")
        house.trial.aim(lambda: session.cancel(turn_id))
        got: list[StreamEvent] = []
        async with session.subscribe() as stream:
            while len(got) < 4 and not (got and got[-1].event_type is EventType.COMMIT_FINAL):
                got.append(await anext(stream))
        async with session.subscribe(after=stream.cursor) as resumed:
            if got[-1].event_type is not EventType.COMMIT_FINAL:
                got += [event async for event in resumed.until_commit(turn_id)]
        await house.settled(turn_id)
        assert laws.check(got) == [], "no gap, no repeat"

    explore(partial(cast, Say("One two three four five.")), play)


# -- the end


@pytest.mark.shows("core-32")
def test_window_between_turn_final_and_commit_final() -> None:
    async def play(house: House) -> None:
        session = house.session
        turn_id = session.begin_turn("A room?")
        async with session.subscribe() as stream:
            async for event in stream:
                if event.event_type is EventType.TURN_FINAL:
                    break
        won: list[str] = []
        house.trial.aim(lambda: won.extend(session.cancel(turn_id)), lambda: won.extend(session.cancel()))
        commit = await session.finalize(turn_id).wait()
        await house.settled(turn_id)
        assert won == []
        assert commit.commit_outcome is CommitOutcome.OK
        assert house.stage.world == {"results": 1}

    rent = tool("rent", 0.01)
    explore(partial(cast, Pause(0.1), Call("rent"), Say("Good evening."), tools=[rent]), play, slow=True)


@pytest.mark.parametrize("lines", [(Say("Good evening, traveller."),), (Say("Wait."), Call("rent"), Say("Done."))])
def test_close_during_a_turn(lines: tuple[Line, ...]) -> None:
    async def play(house: House) -> None:
        session = house.session
        async with trio.open_nursery() as nursery:
            turn_id = session.begin_turn("A room?")
            queued = session.begin_turn("And breakfast?")
            house.trial.aim(lambda: nursery.start_soon(session.close), lambda: session.cancel(turn_id))
            await house.settled(turn_id, queued)

    explore(partial(cast, *lines, tools=[tool("rent", 0.4)]), play)


def test_stage_shutdown() -> None:
    async def scenario(trial: Trial) -> None:
        seen: list[StreamEvent] = []
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as host:
                lines = (Say("Wait a moment."), Call("rent"), Say("Done."))
                the_cast = cast(*lines, tools=[tool("rent", 0.4)], cold=True)
                async with open_stage(the_cast, ledger=SlowLedger(), wall_clock=trio.current_time) as stage:
                    session = stage.start()
                    await nursery.start(_watch, session, seen)
                    turns = [session.begin_turn("A room?"), session.begin_turn("And breakfast?")]
                    trial.aim(host.cancel)
                    for turn_id in turns:
                        await session.finalize(turn_id).wait()
                    trial.disarm()
        assert laws.check(seen) == []
        assert {event.turn_id for event in seen} == set(turns)

    assert cancel_everywhere(scenario, orders=ORDERS, pairs=0).points > 20


def test_a_host_canceled_as_a_whole() -> None:
    """The stage itself is opened, used and closed under the cancel: also while it opens."""

    async def scenario() -> None:
        the_cast = cast(Say("Wait."), Call("rent"), Say("Done."), tools=[tool("rent", 0.4)], cold=True)
        async with open_stage(the_cast, ledger=SlowLedger(), wall_clock=trio.current_time) as stage:
            session = stage.start()
            async with session.subscribe() as stream:
                turn_id = session.begin_turn("A room?")
                async for _ in stream.until_commit(turn_id):
                    pass

    assert cancel_everywhere(scenario, orders=ORDERS).points > 20
