"""Tools that break the rules: each affects its own turn only."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
import trio
from attrs import evolve

from footlights import (
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    Intent,
    IntentType,
    InterruptReason,
    Limits,
    MemoryLedger,
    SideEffects,
    StreamEvent,
    Tool,
    ToolCallResult,
    ToolContext,
    ToolError,
    ToolReturn,
    TurnInterrupted,
    open_stage,
)
from footlights.testing import only, payloads, take_turn
from footlights.testing.faults import FlakyLedger, raising_tool
from footlights_actors import Call, Say, ScriptedModel, standard_cast
from tests.kit.failures import failed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from trio.testing import MockClock

    from footlights.events import JsonValue


def model_asking_for(tool: Tool, arguments: Mapping[str, JsonValue] | None = None) -> ScriptedModel:
    """Asks for the tool once, unless it is asked how the neighbours are."""
    call = Call(tool.name, arguments or {})
    return ScriptedModel(lambda prompt: [Say("Fine.")] if prompt.exchanges or prompt.user == "And you?" else [call])


async def survived(
    tool: Tool, arguments: Mapping[str, JsonValue] | None = None, *, cancel_after: float | None = None
) -> list[StreamEvent]:
    """What such a turn looks like, on a stage where the next turn must still be possible."""
    async with (
        open_stage(standard_cast(model_asking_for(tool, arguments), tools=[tool])) as stage,
        (session := stage.start()).subscribe() as stream,
    ):
        turn_id = session.begin_turn("Do it.")
        if cancel_after is not None:
            await trio.sleep(cancel_after)
            session.cancel(turn_id)
        events = [event async for event in stream.until_commit(turn_id)]
        neighbour = session.begin_turn("And you?")
        assert (await session.finalize(neighbour).wait()).commit_outcome is CommitOutcome.OK
    return events


@pytest.mark.parametrize("durable", [False, True])
async def test_a_key_that_no_ledger_could_keep_is_refused_and_the_tool_is_not_run(
    tmp_path: Path, durable: bool
) -> None:
    tool = evolve(raising_tool("rent"), idempotency_key=lambda _: "a\ud800")
    tavern = standard_cast(model_asking_for(tool), tools=[tool])
    async with open_stage(tavern, ledger=tmp_path / "inn.ledger" if durable else None) as stage:
        events = await take_turn(stage.start(), "Do it.")
    refusal = only(events, ToolCallResult).error
    assert refusal == ErrorInfo("tool_error", "The tool was not run: its key is not valid Unicode.")
    assert only(events, CommitFinal).commit_outcome is CommitOutcome.OK


async def test_a_list_from_a_model_where_a_ref_belongs_never_reaches_the_ledger(tmp_path: Path) -> None:
    async def order(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        context.request_commit(Intent(IntentType.TOOL_RESULT, cast("str", arguments["order"])))
        return None

    tool = Tool(name="order", run=order)
    for _ in range(2):
        cast_of_one = standard_cast(model_asking_for(tool, {"order": ["o-17"]}), tools=[tool])
        async with open_stage(cast_of_one, ledger=tmp_path / "inn.ledger") as stage:
            events = await take_turn(stage.start(), "Do it.")
            assert only(events, TurnInterrupted).reason is InterruptReason.TOOL_ERROR


async def test_a_tool_that_changes_its_arguments_affects_no_other() -> None:
    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        await trio.lowlevel.checkpoint()
        assert isinstance(arguments, dict)
        arguments["room"] = 4
        return None

    tool = Tool(name="rent", run=run, idempotency_key=lambda arguments: str(arguments["room"]))
    events = await survived(tool, arguments={"room": 3})
    assert only(events, ToolCallResult).error is None


async def test_a_tool_whose_tasks_all_fail_hurts_only_its_turn() -> None:
    async def fail() -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError

    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            nursery.start_soon(fail)
        return None

    events = await survived(Tool(name="group", run=run))
    assert only(events, TurnInterrupted).reason is InterruptReason.TOOL_ERROR


async def sleep_and_fail_to_clean_up(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep_forever)
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError


async def test_a_cancelled_tool_that_fails_while_it_cleans_up_affects_no_other(quiet_clock: MockClock) -> None:
    tool = Tool(name="messy", run=sleep_and_fail_to_clean_up, cancel_safe=True, side_effects=SideEffects.IMMEDIATE)

    events = await survived(tool, cancel_after=1)
    assert only(events, ToolCallResult).canceled


async def test_a_tool_that_fails_while_the_stage_closes_does_not_stop_the_commits(quiet_clock: MockClock) -> None:
    tool = Tool(name="messy", run=sleep_and_fail_to_clean_up)
    ledger = FlakyLedger(MemoryLedger(), delay=0)
    async with open_stage(standard_cast(model_asking_for(tool), tools=[tool]), ledger=ledger) as stage:
        session = stage.start()
        turn_id = session.begin_turn("Do it.")
        commit = session.finalize(turn_id)
        await trio.sleep(1)
        ledger.delay = 1
    assert (await commit.wait()).commit_outcome is CommitOutcome.FAIL_CLOSED


@pytest.mark.parametrize(
    "answer", [ToolReturn(1, "half a pair: \ud800"), ToolError("half a pair: \ud800")], ids=["summary", "error"]
)
async def test_words_that_are_not_unicode_are_an_error_of_the_tool(answer: ToolReturn | ToolError) -> None:
    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolReturn:
        await trio.lowlevel.checkpoint()
        if isinstance(answer, ToolError):
            raise answer
        return answer

    events = await survived(Tool(name="odd", run=run))
    assert not only(events, ToolCallResult).canceled
    assert {each.reason for each in payloads(events, TurnInterrupted)} <= {InterruptReason.TOOL_ERROR}


@pytest.mark.parametrize("value", [float("nan"), {"a": [float("inf")]}], ids=["nan", "inf"])
async def test_numbers_that_json_does_not_have_are_an_error_of_the_tool(value: JsonValue) -> None:
    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        await trio.lowlevel.checkpoint()
        return value

    events = await survived(Tool(name="odd", run=run))
    assert only(events, ToolCallResult).error is not None


async def test_a_tool_that_stages_too_much_hurts_only_its_turn() -> None:
    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        await trio.lowlevel.checkpoint()
        for number in range(Limits().max_intents_per_turn + 1):
            context.request_commit(Intent(IntentType.TOOL_RESULT, f"intent-{number}"))
        return None

    events = await survived(Tool(name="greedy", run=run))
    assert only(events, TurnInterrupted) == failed(InterruptReason.TOOL_ERROR, "busy")
