"""Interrupted turns with tools: the tool may finish, its result is discarded, and nothing is claimed that is not so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest
import trio
from attrs import evolve

from footlights import (
    CommitFinal,
    CommitOutcome,
    Intent,
    IntentType,
    InterruptReason,
    Ledger,
    MemoryLedger,
    SideEffects,
    StreamEvent,
    Tool,
    ToolCallResult,
    ToolCallStarted,
    ToolContext,
    TurnInterrupted,
    open_stage,
)
from footlights.authority import ToolRecord, ToolState
from footlights.testing import only, payloads, take_turn
from footlights.testing.faults import (
    FlakyLedger,
    blocking_tool,
    deaf_tool,
    hanging_tool,
    slow_tool,
)
from footlights_actors import Call, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from trio.testing import MockClock

    from footlights import Stage
    from footlights.events import JsonValue
    from footlights.tools.tool import ToolFunction

GRACE = 0.25
KEY = "key"


def with_key(tool: Tool) -> Tool:
    return evolve(tool, idempotency_key=lambda _: KEY)


async def interrupted(
    *tools: Tool,
    after: float = 1.0,
    ledger: Ledger | None = None,
    then: Callable[[Stage], Awaitable[None]] | None = None,
) -> list[StreamEvent]:
    """A turn that runs these tools and is cancelled so many seconds later."""
    model = ScriptedModel(lambda _: [Call(tool.name) for tool in tools])
    async with (
        open_stage(standard_cast(model, tools=tools), ledger=ledger) as stage,
        (session := stage.start()).subscribe() as stream,
    ):
        turn_id = session.begin_turn("Do it.")
        events = [await anext(stream)]
        while len(payloads(events, ToolCallStarted)) < len(tools):
            events.append(await anext(stream))
        await trio.sleep(after)
        assert session.cancel(turn_id) == (turn_id,)
        events += [event async for event in stream.until_commit(turn_id)]
        if then is not None:
            await then(stage)
    return events


def seconds_to_end(events: list[StreamEvent], cancelled_after: float = 1.0) -> float:
    """From the cancel to the terminal."""
    began = next(event for event in events if isinstance(event.payload, ToolCallStarted))
    ended = next(event for event in events if isinstance(event.payload, TurnInterrupted))
    return (ended.mono_ts_ms - began.mono_ts_ms) / 1000 - cancelled_after


# -- finish, then discard


@pytest.mark.shows("core-34", "core-35")
async def test_a_tool_that_ends_within_the_grace_is_waited_for_and_discarded(quiet_clock: MockClock) -> None:
    events = await interrupted(slow_tool(1.1))
    assert only(events, ToolCallResult) == ToolCallResult(
        "call-1", "slow", canceled=True, side_effects_may_have_occurred=True
    )
    assert only(events, TurnInterrupted).reason is InterruptReason.CANCELED
    assert seconds_to_end(events) == pytest.approx(0.1, abs=0.002)


@pytest.mark.parametrize("tool", [slow_tool(60), hanging_tool(), deaf_tool(60)], ids=lambda tool: tool.name)
async def test_a_turn_waits_no_longer_than_the_grace_for_any_tool(quiet_clock: MockClock, tool: Tool) -> None:
    events = await interrupted(tool)
    result = only(events, ToolCallResult)
    assert result.canceled
    assert result.side_effects_may_have_occurred
    assert seconds_to_end(events) == pytest.approx(GRACE, abs=0.002)


async def test_many_tools_share_one_grace(quiet_clock: MockClock) -> None:
    events = await interrupted(slow_tool(60, "a"), slow_tool(60, "b"), deaf_tool(60, "c"))
    assert [result.canceled for result in payloads(events, ToolCallResult)] == [True] * 3
    assert seconds_to_end(events) == pytest.approx(GRACE, abs=0.002)


async def test_a_thread_that_ends_within_the_grace_is_waited_for(quiet_clock: MockClock) -> None:
    events = await interrupted(blocking_tool(0.002), after=0)
    assert only(events, ToolCallResult).canceled
    assert seconds_to_end(events, cancelled_after=0) < GRACE


@pytest.mark.shows("core-36")
async def test_what_a_cancelled_tool_staged_is_discarded(quiet_clock: MockClock) -> None:
    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        context.request_commit(Intent(IntentType.TOOL_RESULT, "before"))
        await trio.sleep(1.1)
        context.request_commit(Intent(IntentType.TOOL_RESULT, "after"))
        return None

    ledger = MemoryLedger()
    events = await interrupted(Tool(name="stager", run=run), ledger=ledger)
    record = await ledger.find(events[0].session_id, events[0].turn_id)
    assert record is not None
    assert (record.outcome, record.intents) == (CommitOutcome.FAIL_CLOSED, ())


class TellingLedger(MemoryLedger):
    """Calls back in the very step in which a tool ended, before anybody could see its result."""

    def __init__(self, on_complete: Callable[[], object]) -> None:
        super().__init__()
        self._on_complete = on_complete

    async def complete_tool(self, key: str, outcome: Literal["ok", "error"]) -> None:
        self._on_complete()
        await super().complete_tool(key, outcome)


async def test_a_cancel_overtakes_a_result_that_was_on_its_way(quiet_clock: MockClock) -> None:
    tool = slow_tool(1)
    won: list[tuple[str, ...]] = []
    ledger = TellingLedger(lambda: won.append(session.cancel()))
    model = ScriptedModel(lambda _: [Call("slow")])
    async with open_stage(standard_cast(model, tools=[tool]), ledger=ledger) as stage:
        session = stage.start()
        events = await take_turn(session, "Do it.")
    assert won == [(events[0].turn_id,)]
    assert only(events, ToolCallResult).canceled
    assert only(events, TurnInterrupted).reason is InterruptReason.CANCELED


# -- tools that may be cancelled


async def idle(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    await trio.sleep_forever()


async def act(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    context.begin_side_effects()
    await trio.sleep_forever()


@pytest.mark.shows("core-37", "core-40")
@pytest.mark.parametrize(
    ("run", "side_effects", "may_have_occurred"),
    [
        (idle, SideEffects.NONE, False),
        (idle, SideEffects.MARKED, False),
        (act, SideEffects.MARKED, True),
        (idle, SideEffects.IMMEDIATE, True),
    ],
    ids=["none", "before the mark", "after the mark", "immediate"],
)
async def test_a_cancel_safe_tool_is_cancelled_at_once_and_tells_of_its_side_effects(
    quiet_clock: MockClock, run: ToolFunction, side_effects: SideEffects, may_have_occurred: bool
) -> None:
    events = await interrupted(Tool(name="safe", run=run, cancel_safe=True, side_effects=side_effects))
    result = only(events, ToolCallResult)
    assert (result.canceled, result.side_effects_may_have_occurred) == (True, may_have_occurred)
    assert seconds_to_end(events) == 0


async def test_a_cancel_safe_tool_that_is_deaf_still_gets_only_the_grace(quiet_clock: MockClock) -> None:
    events = await interrupted(evolve(deaf_tool(60), cancel_safe=True, side_effects=SideEffects.IMMEDIATE))
    assert only(events, ToolCallResult).canceled
    assert seconds_to_end(events) == pytest.approx(GRACE, abs=0.002)


@pytest.mark.parametrize(
    ("run", "may_run_again"), [(idle, True), (act, False)], ids=["before the mark", "after the mark"]
)
async def test_a_cancelled_tool_gives_its_key_back_only_if_it_had_no_effect(
    quiet_clock: MockClock, run: ToolFunction, may_run_again: bool
) -> None:
    ledger = MemoryLedger()
    tool = with_key(Tool(name="safe", run=run, cancel_safe=True, side_effects=SideEffects.MARKED))
    await interrupted(tool, ledger=ledger)
    unknown = ToolRecord(f"safe:{KEY}", ToolState.STARTED)
    assert await ledger.begin_tool(f"safe:{KEY}") == (None if may_run_again else unknown)


async def test_a_tool_that_runs_on_may_yet_have_side_effects_and_is_reported_so(quiet_clock: MockClock) -> None:
    effects: list[str] = []

    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        await trio.sleep(10)
        context.begin_side_effects()
        effects.append("the letter is sent")
        return None

    async def wait(_: Stage) -> None:
        await trio.sleep(10)

    events = await interrupted(Tool(name="late", run=run, side_effects=SideEffects.MARKED), then=wait)
    assert effects
    assert only(events, ToolCallResult).side_effects_may_have_occurred


# -- tools that outlive their turn


@pytest.mark.shows("core-34")
async def test_a_tool_left_behind_runs_on_and_its_end_is_recorded(quiet_clock: MockClock) -> None:
    ledger = MemoryLedger()

    async def wait(stage: Stage) -> None:
        assert stage.statistics().tools_running == 1
        assert await ledger.begin_tool(f"slow:{KEY}") == ToolRecord(f"slow:{KEY}", ToolState.STARTED)
        await trio.sleep(60)
        assert stage.statistics().tools_running == 0

    await interrupted(with_key(slow_tool(60)), ledger=ledger, then=wait)
    assert await ledger.begin_tool(f"slow:{KEY}") == ToolRecord(f"slow:{KEY}", ToolState.OK)


async def test_a_tool_left_behind_that_fails_says_nothing_more_in_the_stream(
    quiet_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        await trio.sleep(10)
        raise ValueError("what the player said")

    async def wait(stage: Stage) -> None:
        await trio.sleep(20)
        assert stage.statistics().tools_running == 0

    ledger = MemoryLedger()
    events = await interrupted(with_key(Tool(name="late", run=run)), ledger=ledger, then=wait)
    assert isinstance(events[-1].payload, CommitFinal)
    assert await ledger.begin_tool(f"late:{KEY}") == ToolRecord(f"late:{KEY}", ToolState.ERROR)
    assert "ValueError" in caplog.text
    assert "what the player said" not in caplog.text


async def test_closing_the_stage_leaves_a_running_tool_unknown(quiet_clock: MockClock) -> None:
    ledger = MemoryLedger()
    await interrupted(with_key(slow_tool(60)), ledger=ledger)
    assert await ledger.begin_tool(f"slow:{KEY}") == ToolRecord(f"slow:{KEY}", ToolState.STARTED)


async def test_no_task_outlives_the_stage_even_if_it_is_deaf(quiet_clock: MockClock) -> None:
    before = trio.lowlevel.current_task().parent_nursery
    assert before is not None
    tasks = len(before.child_tasks)
    began = trio.current_time()
    await interrupted(deaf_tool(60))
    assert trio.current_time() - began == 60
    assert len(before.child_tasks) == tasks


async def test_a_tool_that_had_not_begun_when_its_turn_was_cancelled_never_begins(quiet_clock: MockClock) -> None:
    runs: list[float] = []

    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        await trio.lowlevel.checkpoint()
        runs.append(trio.current_time())
        return None

    async def wait(_: Stage) -> None:
        await trio.sleep(10)

    await interrupted(Tool(name="claimed", run=run), ledger=FlakyLedger(MemoryLedger(), delay=5), then=wait)
    assert runs == []
