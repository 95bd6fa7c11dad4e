"""Tool runner, with tools that end by themselves: each call runs once and is reported once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from attrs import evolve

from footlights import (
    CommitFinal,
    CommitOutcome,
    Intent,
    IntentType,
    InterruptReason,
    Limits,
    MemoryLedger,
    SideEffects,
    StreamEvent,
    Tool,
    ToolCallResult,
    ToolCallStarted,
    ToolContext,
    ToolError,
    ToolReturn,
    TurnFinal,
    TurnInterrupted,
    open_stage,
    tool,
    watch_failures,
)
from footlights.authority import ToolRecord, ToolState
from footlights.testing import only, payloads, take_turn
from footlights.testing.faults import FlakyLedger, deaf_tool, raising_tool, slow_tool
from footlights_actors import Call, Line, Say, Script, ScriptedModel, standard_cast
from tests.kit.failures import failed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trio.testing import MockClock

    from footlights import Ledger, Prompt
    from footlights.events import JsonValue
    from footlights.tools.tool import ToolFunction


def asking_for(*calls: Call) -> Script:
    """A model that asks for these tools at once, and then tells what came back."""

    def script(prompt: Prompt) -> Sequence[Line]:
        if not prompt.exchanges:
            return calls
        return [Say("; ".join(str(each.value) if each.error is None else each.error for each in prompt.exchanges))]

    return script


def returning(name: str, answer: ToolReturn | JsonValue) -> Tool:
    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolReturn | JsonValue:
        await trio.lowlevel.checkpoint()
        return answer

    return Tool(name=name, run=run)


def staging(tool: Tool, *refs: str) -> Tool:
    """The same tool, which also stages intents, before it does what it does."""

    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolReturn | JsonValue:
        for ref in refs:
            context.request_commit(Intent(IntentType.TOOL_RESULT, ref))
        return await tool.run(arguments, context)

    return evolve(tool, run=run)


async def played(
    script: Script, *tools: Tool, ledger: Ledger | None = None, limits: Limits | None = None
) -> list[StreamEvent]:
    async with open_stage(standard_cast(ScriptedModel(script), tools=tools), ledger=ledger, limits=limits) as stage:
        return await take_turn(stage.start(), "Do it.")


def codes(events: list[StreamEvent]) -> list[str | None]:
    return [None if result.error is None else result.error.code for result in payloads(events, ToolCallResult)]


# -- answers


@pytest.mark.shows("core-38")
async def test_a_result_is_reported_with_its_summary_and_goes_back_to_the_model() -> None:
    events = await played(asking_for(Call("price")), returning("price", ToolReturn(3, "Three coins.")))
    assert only(events, ToolCallStarted) == ToolCallStarted("call-1", "price")
    assert only(events, ToolCallResult) == ToolCallResult("call-1", "price", canceled=False, summary="Three coins.")
    assert only(events, TurnFinal).text == "3"


@pytest.mark.shows("narration-114")
async def test_the_value_of_a_tool_is_for_its_model_and_never_in_the_stream() -> None:
    def script(prompt: Prompt) -> Sequence[Line]:
        return [Say("I know now.")] if prompt.exchanges else [Call("secret")]

    events = await played(script, returning("secret", "xyzzy"))
    assert "xyzzy" not in repr(events)


async def test_a_tool_gets_the_arguments_and_the_world_and_knows_its_turn() -> None:
    seen: list[tuple[object, ...]] = []

    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        await trio.lowlevel.checkpoint()
        seen.append((dict(arguments), context.world, context.session_id, context.turn_id, context.tool_call_id))
        return None

    model = ScriptedModel(asking_for(Call("look", {"at": "door"})))
    cast = standard_cast(model, tools=[Tool(name="look", run=run)], world={"door": "shut"})
    async with open_stage(cast) as stage:
        session = stage.start()
        turn_id = session.begin_turn("Look!")
        await session.finalize(turn_id).wait()
    assert seen == [({"at": "door"}, {"door": "shut"}, session.session_id, turn_id, "call-1")]


async def test_a_tool_error_goes_back_to_the_model_and_the_turn_goes_on() -> None:
    events = await played(asking_for(Call("rent")), raising_tool("rent", error=ToolError("No room is free.")))
    assert codes(events) == ["tool_error"]
    assert only(events, TurnFinal).text == "No room is free."
    assert only(events, CommitFinal).commit_outcome is CommitOutcome.OK


@pytest.mark.shows("core-26")
async def test_what_a_failed_tool_staged_is_not_committed() -> None:
    ledger = MemoryLedger()
    events = await played(
        asking_for(Call("rent")), staging(raising_tool("rent", error=ToolError("no")), "room-1"), ledger=ledger
    )
    record = await ledger.find(events[0].session_id, events[0].turn_id)
    assert record is not None
    assert record.intents == ()


async def test_a_crash_ends_the_turn_after_its_result(caplog: pytest.LogCaptureFixture) -> None:
    events = await played(asking_for(Call("bad")), raising_tool("bad", error=ValueError("what the player said")))
    assert codes(events) == ["tool_error"]
    assert only(events, TurnInterrupted) == failed(InterruptReason.TOOL_ERROR, "ValueError")
    assert only(events, CommitFinal).commit_outcome is CommitOutcome.FAIL_CLOSED
    assert "ValueError" in caplog.text
    assert "what the player said" not in caplog.text + repr(events)


async def test_a_crash_cancels_the_tools_beside_it(quiet_clock: MockClock) -> None:
    events = await played(asking_for(Call("bad"), Call("slow")), raising_tool("bad"), slow_tool(60))
    results = {result.tool_name: result for result in payloads(events, ToolCallResult)}
    assert not results["bad"].canceled
    assert results["slow"].canceled
    assert only(events, TurnInterrupted).reason is InterruptReason.TOOL_ERROR


async def test_a_tool_that_is_no_coroutine_is_a_crash_like_any_other() -> None:
    plain = Tool(name="plain", run=lambda arguments, context: 5)  # type: ignore[arg-type, return-value]
    events = await played(asking_for(Call("plain")), plain)
    assert only(events, TurnInterrupted) == failed(InterruptReason.TOOL_ERROR, "invalid_registration")


async def test_an_unknown_tool_is_refused_without_its_name_in_the_stream_and_named_to_the_developer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shown: list[str] = []
    with watch_failures(lambda what, error: shown.append(f"{what}: {error}")):
        events = await played(asking_for(Call("what_the_model_made_up")))
    (told,) = shown
    assert told.endswith("There is no tool 'what_the_model_made_up' for default; there are: none.")
    assert "the model asked for an unknown tool in t1-000001 of s1-000001; there are: none" in caplog.text
    assert "made_up" not in caplog.text
    assert only(events, ToolCallStarted).tool_name == "unknown"
    assert codes(events) == ["unknown_tool"]
    assert only(events, TurnFinal).text == "There is no such tool."
    assert "made_up" not in repr(events)


@pytest.mark.parametrize("value", [object(), {1: 2}, {"a": {3}}, 2**70, b"bytes"])
async def test_a_result_that_is_not_json_is_an_error_of_the_tool(value: JsonValue) -> None:
    events = await played(asking_for(Call("odd")), returning("odd", value))
    assert codes(events) == ["tool_error"]
    assert only(events, TurnFinal).text == "The tool's result is not JSON."


async def test_a_result_may_be_as_large_as_an_event_and_no_larger() -> None:
    limits = Limits(max_event_bytes=100)
    fits = await played(asking_for(Call("big")), returning("big", "x" * 98), limits=limits)
    assert codes(fits) == [None]
    events = await played(asking_for(Call("big")), returning("big", "x" * 99), limits=limits)
    assert codes(events) == ["tool_error"]
    assert only(events, TurnFinal).text == "The tool's result is too large."


async def test_a_long_summary_is_cut() -> None:
    events = await played(asking_for(Call("chatty")), returning("chatty", ToolReturn(1, "é" * 5000)))
    assert only(events, ToolCallResult).summary == "é" * 499 + "…"


# -- arguments


@tool(idempotency_key=lambda arguments: f"room-{arguments['room']}")
async def rent(room: int, *, context: ToolContext) -> str:
    await trio.lowlevel.checkpoint()
    context.request_commit(Intent(IntentType.TOOL_RESULT, f"room-{room}"))
    return "rented"


@pytest.mark.shows("feed-13")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"room": "xyzzy"}, "The argument room must be an integer."),
        ({}, "The argument room is missing."),
        ({"room": 3, "xyzzy": 1}, "The arguments must have no fields but room."),
        ("xyzzy", "The arguments must be an object."),
    ],
)
async def test_arguments_that_do_not_fit_go_back_to_the_model_and_the_turn_goes_on(
    arguments: Mapping[str, JsonValue], said: str
) -> None:
    ledger = FlakyLedger(MemoryLedger())
    ledger.available = False  # nothing is claimed for a tool that will not run
    events = await played(asking_for(Call("rent", arguments)), rent, ledger=ledger)
    assert codes(events) == ["invalid_arguments"]
    assert only(events, TurnFinal).text == said
    assert "xyzzy" not in repr(events)


async def test_arguments_that_fit_reach_the_tool_and_its_key() -> None:
    ledger = MemoryLedger()
    events = await played(asking_for(Call("rent", {"room": 3})), rent, ledger=ledger)
    assert codes(events) == [None]
    assert only(events, TurnFinal).text == "rented"
    assert await ledger.begin_tool("rent:room-3") == ToolRecord("rent:room-3", ToolState.OK)


async def test_the_model_gets_the_parameters_of_a_tool() -> None:
    offered: list[object] = []

    def script(prompt: Prompt) -> Sequence[Line]:
        offered.extend(offer.parameters for offer in prompt.tools)
        return [Say("Hm.")]

    await played(script, rent, returning("plain", 1))
    assert offered == [rent.parameters, {"type": "object"}]


class NoRoom(ToolError):
    code = "no_room"


async def test_an_error_of_ones_own_keeps_its_code() -> None:
    events = await played(asking_for(Call("rent")), raising_tool("rent", error=NoRoom("None is free.")))
    assert codes(events) == ["no_room"]
    assert only(events, TurnFinal).text == "None is free."


# -- time


def timed(a_tool: Tool, seconds: float = 1.0) -> Tool:
    return evolve(a_tool, timeout=seconds, idempotency_key=lambda _: "key")


def seconds_of_tools(events: list[StreamEvent]) -> float:
    began = next(event for event in events if isinstance(event.payload, ToolCallStarted))
    ended = [event for event in events if isinstance(event.payload, ToolCallResult)][-1]
    return (ended.mono_ts_ms - began.mono_ts_ms) / 1000


@pytest.mark.parametrize("slow", [slow_tool(60, "slow"), deaf_tool(60, "slow")], ids=["cancelled", "deaf"])
async def test_a_tool_that_takes_too_long_is_answered_at_its_time_and_the_turn_goes_on(
    quiet_clock: MockClock, slow: Tool
) -> None:
    ledger = MemoryLedger()
    events = await played(asking_for(Call("slow")), timed(staging(slow, "room-1")), ledger=ledger)
    assert codes(events) == ["tool_timeout"]
    assert not only(events, ToolCallResult).canceled
    assert only(events, TurnFinal).text == "The tool took longer than it may."
    assert seconds_of_tools(events) == 1
    record = await ledger.find(events[0].session_id, events[0].turn_id)
    assert record is not None
    assert (record.outcome, record.intents) == (CommitOutcome.OK, ())


async def test_a_tool_that_ends_in_time_is_not_timed_out(quiet_clock: MockClock) -> None:
    events = await played(asking_for(Call("slow")), timed(slow_tool(0.9)))
    assert codes(events) == [None]


async def idle(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    await trio.sleep_forever()


async def act(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    context.begin_side_effects()
    await trio.sleep_forever()


@pytest.mark.parametrize(
    ("run", "side_effects", "unknown"),
    [
        (idle, SideEffects.NONE, False),
        (idle, SideEffects.MARKED, False),
        (act, SideEffects.MARKED, True),
        (idle, SideEffects.IMMEDIATE, True),
        (idle, None, True),
    ],
    ids=["none", "before the mark", "after the mark", "immediate", "undeclared"],
)
async def test_a_timed_out_tool_gives_its_key_back_only_if_it_had_no_effect(
    quiet_clock: MockClock, run: ToolFunction, side_effects: SideEffects | None, unknown: bool
) -> None:
    ledger = MemoryLedger()
    a_tool = timed(Tool(name="slow", run=run, side_effects=side_effects))
    assert codes(await played(asking_for(Call("slow")), a_tool, ledger=ledger)) == ["tool_timeout"]
    earlier = ToolRecord("slow:key", ToolState.STARTED) if unknown else None
    assert await ledger.begin_tool("slow:key") == earlier


async def test_a_tool_whose_time_is_up_before_it_could_begin_never_begins(quiet_clock: MockClock) -> None:
    runs: list[str] = []
    ledger = FlakyLedger(MemoryLedger(), delay=5)
    events = await played(asking_for(Call("slow")), timed(counting(returning("slow", 1), runs)), ledger=ledger)
    assert codes(events) == ["tool_timeout"]
    assert runs == []
    assert await ledger.begin_tool("slow:key") is None


@pytest.mark.parametrize("ends_well", [True, False])
async def test_later_results_of_a_timed_out_tool_are_discarded(
    quiet_clock: MockClock, caplog: pytest.LogCaptureFixture, ends_well: bool
) -> None:
    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        with trio.CancelScope(shield=True):
            await trio.sleep(3)
        context.request_commit(Intent(IntentType.TOOL_RESULT, "late"))
        if not ends_well:
            raise ToolError("late")
        return "late"

    told: list[tuple[JsonValue, str | None]] = []

    def script(prompt: Prompt) -> Sequence[Line]:
        told.extend((each.value, each.error) for each in prompt.exchanges)
        return [Say("Done.")] if prompt.exchanges else [Call("deaf"), Call("slow")]

    ledger = MemoryLedger()
    cast = standard_cast(ScriptedModel(script), tools=[timed(Tool(name="deaf", run=run)), slow_tool(5)])
    async with open_stage(cast, ledger=ledger) as stage:
        events = await take_turn(stage.start(), "Do it.")
        assert stage.statistics().tools_running == 0
    assert codes(events) == ["tool_timeout", None]
    assert told == [(None, "The tool took longer than it may."), (True, None)]
    ended = ToolRecord("deaf:key", ToolState.OK if ends_well else ToolState.ERROR)
    assert await ledger.begin_tool("deaf:key") == ended
    record = await ledger.find(events[0].session_id, events[0].turn_id)
    assert record is not None
    assert record.intents == ()
    assert caplog.text == ""


async def test_a_timed_out_tool_that_outlives_its_turn_is_a_running_tool_until_it_ends(quiet_clock: MockClock) -> None:
    a_tool = timed(staging_late(deaf_tool(60)))
    async with open_stage(standard_cast(ScriptedModel(asking_for(Call("deaf"))), tools=[a_tool])) as stage:
        await take_turn(stage.start(), "Do it.")
        assert stage.statistics().tools_running == 1
        await trio.sleep(60)
        assert stage.statistics().tools_running == 0


def staging_late(a_tool: Tool) -> Tool:
    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolReturn | JsonValue:
        answer = await a_tool.run(arguments, context)
        context.request_commit(Intent(IntentType.TOOL_RESULT, "late"))
        return answer

    return evolve(a_tool, run=run)


async def test_a_turn_that_is_cancelled_when_the_time_is_up_reports_the_call_once(quiet_clock: MockClock) -> None:
    a_tool = timed(slow_tool(60))
    async with (
        open_stage(standard_cast(ScriptedModel(asking_for(Call("slow"))), tools=[a_tool])) as stage,
        (session := stage.start()).subscribe() as stream,
    ):
        turn_id = session.begin_turn("Do it.")
        async for event in stream:
            if isinstance(event.payload, ToolCallStarted):
                break
        quiet_clock.jump(1.0)  # the deadline has passed, and nobody has run since
        session.cancel(turn_id)
        events = [event async for event in stream.until_commit(turn_id)]
    assert only(events, ToolCallResult).canceled
    assert only(events, TurnInterrupted).reason is InterruptReason.CANCELED


# -- several


async def test_the_tools_of_one_round_run_side_by_side(quiet_clock: MockClock) -> None:
    events = await played(asking_for(Call("a"), Call("b")), slow_tool(5, "a"), slow_tool(3, "b"))
    assert {started.tool_call_id for started in payloads(events, ToolCallStarted)} == {"call-1", "call-2"}
    assert [result.tool_name for result in payloads(events, ToolCallResult)] == ["b", "a"]
    assert events[-1].mono_ts_ms - events[0].mono_ts_ms == 5000


async def test_calls_are_shown_in_the_order_the_model_asked() -> None:
    for _ in range(30):  # a coin is tossed each time
        events = await played(asking_for(Call("a"), Call("b")), returning("a", 1), returning("b", 2))
        assert [started.tool_call_id for started in payloads(events, ToolCallStarted)] == ["call-1", "call-2"]


async def test_results_reach_the_model_in_the_order_it_asked(quiet_clock: MockClock) -> None:
    asked: list[str] = []

    def script(prompt: Prompt) -> Sequence[Line]:
        asked.extend(each.request.tool_name for each in prompt.exchanges)
        return [] if prompt.exchanges else [Call("a"), Call("b"), Call("c")]

    await played(script, slow_tool(3, "a"), slow_tool(2, "b"), slow_tool(1, "c"))
    assert asked == ["a", "b", "c"]


async def test_the_same_tool_may_be_called_twice_at_once(quiet_clock: MockClock) -> None:
    events = await played(asking_for(Call("slow"), Call("slow")), slow_tool(1))
    assert {result.tool_call_id for result in payloads(events, ToolCallResult)} == {"call-1", "call-2"}
    assert codes(events) == [None, None]


async def test_call_ids_count_on_over_the_rounds() -> None:
    def script(prompt: Prompt) -> Sequence[Line]:
        return [Call("a"), Call("a")] if len(prompt.exchanges) < 4 else [Say("Done.")]

    events = await played(script, returning("a", 1))
    assert sorted(started.tool_call_id for started in payloads(events, ToolCallStarted)) == [
        "call-1",
        "call-2",
        "call-3",
        "call-4",
    ]


async def test_how_long_tools_take_does_not_change_what_is_committed(quiet_clock: MockClock) -> None:
    async def digest(a_takes: float, b_takes: float) -> str:
        a, b = staging(slow_tool(a_takes, "a"), "a"), staging(slow_tool(b_takes, "b"), "b")
        events = await played(asking_for(Call("a"), Call("b")), a, b)
        return only(events, CommitFinal).commit_digest

    assert await digest(1, 2) == await digest(2, 1)


async def test_the_tools_of_a_turn_share_its_limit_of_intents() -> None:
    ledger = MemoryLedger()
    events = await played(
        asking_for(Call("a"), Call("b")),
        staging(returning("a", 1), "a"),
        staging(returning("b", 1), "b"),
        ledger=ledger,
        limits=Limits(max_intents_per_turn=1),
    )
    record = await ledger.find(events[0].session_id, events[0].turn_id)
    assert record is not None
    assert len(record.intents) <= 1


# -- what the ledger knows


def counting(tool: Tool, runs: list[str]) -> Tool:
    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolReturn | JsonValue:
        runs.append(tool.name)
        return await tool.run(arguments, context)

    return evolve(tool, run=run)


def keyed(tool: Tool) -> Tool:
    return evolve(tool, idempotency_key=lambda arguments: str(arguments["room"]))


async def test_a_key_runs_once_for_all_callers_and_another_key_is_another_call() -> None:
    runs: list[str] = []
    tool = keyed(counting(returning("rent", "rented"), runs))
    model = ScriptedModel(lambda prompt: [] if prompt.exchanges else [Call("rent", {"room": prompt.user})])
    async with open_stage(standard_cast(model, tools=[tool])) as stage:
        for room in ("3", "4", "3"):
            session = stage.start()
            await session.finalize(session.begin_turn(room)).wait()
    assert len(runs) == 2


async def test_a_second_call_with_the_same_key_is_refused() -> None:
    runs: list[str] = []

    def script(prompt: Prompt) -> Sequence[Line]:
        return [Call("rent", {"room": 3})] if len(prompt.exchanges) < 2 else [Say("Done.")]

    events = await played(script, keyed(counting(returning("rent", "rented"), runs)))
    assert codes(events) == [None, "already_run"]
    assert runs == ["rent"]


async def test_of_two_calls_with_one_key_at_once_one_runs(quiet_clock: MockClock) -> None:
    runs: list[str] = []
    call = Call("rent", {"room": 3})
    events = await played(asking_for(call, call), keyed(counting(slow_tool(1, "rent"), runs)))
    assert sorted(map(str, codes(events))) == ["None", "already_run"]
    assert runs == ["rent"]


async def test_a_tool_that_failed_is_not_run_again_either() -> None:
    runs: list[str] = []

    def script(prompt: Prompt) -> Sequence[Line]:
        return [Call("rent", {"room": 3})] if len(prompt.exchanges) < 2 else [Say("Done.")]

    events = await played(script, keyed(counting(raising_tool("rent", error=ToolError("no")), runs)))
    assert codes(events) == ["tool_error", "already_run"]
    assert runs == ["rent"]


@pytest.mark.parametrize("side_effects", [None, SideEffects.MARKED, SideEffects.IMMEDIATE])
async def test_a_tool_with_side_effects_is_not_run_when_the_ledger_cannot_record_it(
    side_effects: SideEffects | None,
) -> None:
    runs: list[str] = []
    ledger = FlakyLedger(MemoryLedger())
    ledger.available = False
    tool = evolve(counting(returning("rent", 1), runs), side_effects=side_effects)
    events = await played(asking_for(Call("rent")), tool, ledger=ledger)
    assert codes(events) == ["ledger_unavailable"]
    assert runs == []


async def test_a_tool_without_side_effects_needs_no_ledger() -> None:
    runs: list[str] = []
    ledger = FlakyLedger(MemoryLedger())
    ledger.available = False
    tool = evolve(counting(returning("look", 1), runs), side_effects=SideEffects.NONE)
    events = await played(asking_for(Call("look")), tool, ledger=ledger)
    assert codes(events) == [None]
    assert runs == ["look"]


async def test_a_ledger_that_fails_after_the_tool_ran_does_not_undo_its_result(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ledger = FlakyLedger(MemoryLedger())

    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        await trio.lowlevel.checkpoint()
        ledger.available = False
        return "rented"

    events = await played(asking_for(Call("rent")), Tool(name="rent", run=run), ledger=ledger)
    assert codes(events) == [None]
    assert only(events, TurnFinal).text == "rented"
    assert "ended unrecorded" in caplog.text


async def test_a_tool_for_which_there_is_no_room_is_refused_and_the_turn_goes_on(quiet_clock: MockClock) -> None:
    events = await played(
        asking_for(Call("slow"), Call("quick")),
        slow_tool(0.5, "slow"),
        returning("quick", 1),
        limits=Limits(max_running_tools=1),
    )
    results = {result.tool_name: result for result in payloads(events, ToolCallResult)}
    assert results["slow"].error is None
    assert results["quick"].error is not None
    assert results["quick"].error.code == "busy"
    assert only(events, TurnFinal).text


async def test_a_tool_cannot_write_the_world() -> None:
    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        context.world["door"] = "open"
        return True

    cast = standard_cast(
        ScriptedModel(asking_for(Call("pry"))), tools=[Tool(name="pry", run=run)], world={"door": "shut"}
    )
    async with open_stage(cast) as stage:
        session = stage.start()
        await session.finalize(session.begin_turn("Open it.")).wait()
        assert stage.world == {"door": "shut"}
