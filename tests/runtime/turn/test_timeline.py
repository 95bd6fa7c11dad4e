"""Timelines: the parts of a turn's time have owners and no gaps, and add up to the whole, whatever becomes of the turn.

That they add up is checked by the test kit's witness, for every turn that any test makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import (
    BusyRule,
    InteractionContext,
    MemoryLedger,
    ModelTraits,
    ModelUnavailable,
    Part,
    TurnParams,
    TurnSummary,
    UnknownTurn,
    WarmState,
    draft_event,
    open_stage,
)
from footlights.testing import cancel_everywhere, take_turn
from footlights.testing.faults import FlakyLedger, deaf_tool, slow_tool
from footlights.turn.timeline import Timeline, TurnPart
from footlights_actors import Call, Fail, Pause, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from trio.testing import MockClock

    from footlights import Cast, InteractionSession, Prompt
    from footlights.testing import Witness
    from footlights_actors.models.scripted import Line


def seconds(summary: TurnSummary | None) -> dict[str, object]:
    """The parts that took any time, in their order. MockClock moves only when all tasks wait."""
    assert summary is not None
    return {
        each.tool or each.part.value: pytest.approx(each.took_us / 1e6, abs=1e-4)
        for each in summary.parts
        if each.took_us > 100
    }


async def played(cast: Cast, params: TurnParams | None = None, *, delay: float = 0.0) -> dict[str, object]:
    async with open_stage(cast, ledger=FlakyLedger(MemoryLedger(), delay=delay)) as stage:
        session = stage.start()
        events = await take_turn(session, "A room?", params)
        return seconds(session.summary(events[0].turn_id))


def uses_tools(*calls: Line) -> ScriptedModel:
    def script(prompt: Prompt) -> list[Line]:
        return [Pause(0.3), Say("Done.")] if prompt.rounds else [Pause(0.2), Say("Wait."), Pause(0.1), *calls]

    return ScriptedModel(script)


async def test_each_part_of_a_turn_has_its_owner(quiet_clock: MockClock) -> None:
    model = ScriptedModel(
        lambda _: [Pause(1), Say("Good evening."), Pause(2)], warm_state=WarmState.COLD, load_seconds=3
    )
    assert await played(standard_cast(model), delay=0.5) == {"load": 3, "first_token": 1, "speaking": 2, "write": 0.5}


async def test_a_tool_is_a_part_of_its_own_and_the_model_is_asked_again_after_it(quiet_clock: MockClock) -> None:
    async with open_stage(standard_cast(uses_tools(Call("slow", {})), tools=[slow_tool(0.7)])) as stage:
        session = stage.start()
        events = await take_turn(session, "A room?")
        summary = session.summary(events[0].turn_id)
    assert summary is not None
    took = [(each.part, each.tool, round(each.took_us / 1e6, 2)) for each in summary.parts if each.took_us > 1000]
    assert took == [
        (Part.FIRST_TOKEN, None, 0.2),
        (Part.SPEAKING, None, 0.1),
        (Part.TOOL, "slow", 0.7),
        (Part.FIRST_TOKEN, None, 0.3),
    ]


async def test_of_tools_that_run_together_the_first_one_that_is_open_counts(quiet_clock: MockClock) -> None:
    tools = [slow_tool(0.5, "one"), slow_tool(0.2, "two"), slow_tool(0.9, "three")]
    calls = [Call(each.name, {}) for each in tools]
    took = await played(standard_cast(uses_tools(*calls), tools=tools))
    assert took == {"first_token": 0.3, "speaking": 0.1, "one": 0.5, "three": 0.4}


async def test_who_waits_in_line_waits_for_the_queue_and_for_the_slot(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [Pause(1), Say("Hm.")], traits=ModelTraits(slots=1))
    async with open_stage(standard_cast(model)) as stage:
        session, other = stage.start(), stage.start()
        turns = [(session, session.begin_turn("A room?")), (session, session.begin_turn("A room?"))]
        await trio.testing.wait_all_tasks_blocked()
        turns.append((other, other.begin_turn("A beer?")))
        for each, turn_id in turns:
            await each.finalize(turn_id).wait()
        took = [seconds(each.summary(turn_id)) for each, turn_id in turns]
    assert took[0] == {"first_token": 1}
    assert took[2] == {"slot": 1, "first_token": 1}
    assert took[1] == {"queue": 1, "slot": 1, "first_token": 1}


async def test_a_model_that_asks_to_wait_is_a_part(quiet_clock: MockClock) -> None:
    failures = [ModelUnavailable(retry_after=2.0)]

    def script(_: Prompt) -> list[Line]:
        return [Pause(1), Fail(failures.pop()) if failures else Say("Hm.")]

    assert await played(standard_cast(ScriptedModel(script))) == {"first_token": 1, "retry": 2}


class Ponders:
    """A workload that works, has a model, and works again."""

    async def run(self, context: InteractionContext) -> None:
        await trio.sleep(1)
        context.emit_event(draft_event("model_selected", {"model_id": "own", "reason": "own"}))
        context.emit_event(draft_event("model_ready", {"model_id": "own", "warm_state": "hot", "load_ms": 0}))
        await trio.sleep(0.5)
        context.emit_event(draft_event("token_delta", {"delta": "Hm."}))
        await trio.sleep(0.25)
        context.emit_event(draft_event("tool_call_started", {"tool_call_id": "1", "tool_name": "look"}))
        await trio.sleep(2)
        context.emit_event(
            draft_event("tool_call_result", {"tool_call_id": "1", "tool_name": "look", "canceled": False})
        )
        await trio.sleep(4)


async def test_a_workload_is_a_part(quiet_clock: MockClock) -> None:
    cast = standard_cast(ScriptedModel(lambda _: ()), workloads={"ponders": Ponders()})
    took = await played(cast, TurnParams(workload="ponders"))
    assert took == {"first_token": 0.5, "speaking": 0.25, "look": 2, "workload": 4}


async def test_a_cancel_ends_the_part_and_the_grace_of_a_tool_is_the_end(quiet_clock: MockClock) -> None:
    cast = standard_cast(uses_tools(Call("deaf", {})), tools=[deaf_tool(9)])
    async with open_stage(cast) as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        await trio.sleep(1)
        assert session.cancel() == (turn_id,)
        await session.finalize(turn_id).wait()
        took = seconds(session.summary(turn_id))
    assert took == {"first_token": 0.2, "speaking": 0.1, "deaf": 0.7, "finishing": 0.25}


async def test_there_is_no_summary_before_the_commit_nor_of_a_turn_that_never_was(quiet_clock: MockClock) -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Say("Hm.")]))) as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        assert session.summary(turn_id) is None
        with pytest.raises(UnknownTurn):
            session.summary("t1-000009")
        await session.finalize(turn_id).wait()
        summary = session.summary(turn_id)
    assert summary is not None
    assert summary.outcome == "ok"
    assert {Part.QUEUE, Part.PROMPT, Part.COMMIT_WAIT, Part.JUDGE, Part.WRITE} <= {each.part for each in summary.parts}


def test_the_parts_add_up_wherever_a_turn_is_cancelled(footlights_witness: Witness) -> None:
    cast = standard_cast(uses_tools(Call("slow", {})), tools=[slow_tool(0.01)])

    async def scenario() -> None:
        async with open_stage(cast) as stage:
            session = stage.start()
            await _take_two(session)

    cancel_everywhere(scenario)
    assert footlights_witness.timed > 100
    assert footlights_witness.violations == []


async def _take_two(session: InteractionSession) -> None:
    async with session.subscribe() as stream:
        session.begin_turn("A room?")
        turn_id = session.begin_turn("A beer?", TurnParams(busy=BusyRule.INTERRUPT))
        async for _ in stream.until_commit(turn_id):
            pass


async def test_a_part_that_is_lost_is_noticed(monkeypatch: pytest.MonkeyPatch, footlights_witness: Witness) -> None:
    whole = Timeline.parts

    def without_the_longest(self: Timeline, until: float) -> tuple[TurnPart, ...]:
        parts = whole(self, until)
        return tuple(each for each in parts if each is not max(parts, key=lambda part: part.took_us))

    monkeypatch.setattr(Timeline, "parts", without_the_longest)
    await played(standard_cast(ScriptedModel(lambda _: [Pause(0.01), Say("Hm.")])))
    assert [each.law for each in footlights_witness.violations] == ["latency_parts"]
    footlights_witness.tolerated = True
