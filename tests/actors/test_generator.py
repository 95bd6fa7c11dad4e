"""Generator: it streams text as it arrives, calls tools only when they are allowed, and contains errors of a model."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import (
    EventType,
    InterruptReason,
    Limits,
    Mode,
    ModelError,
    ModelTraits,
    Stage,
    StreamEvent,
    TokenDelta,
    Tool,
    ToolCallStarted,
    ToolContext,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    WarmState,
    open_stage,
)
from footlights.testing import only, payloads, take_turn
from footlights.testing.faults import failing_model, flooding_model
from footlights_actors import Call, Fail, Flood, Line, Say, ScriptedModel, standard_cast
from footlights_actors.generator import MAX_CALLS_PER_ROUND, MAX_TOOL_ROUNDS
from tests.kit.failures import failed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from trio.testing import MockClock

    from footlights import Model, Output, Prompt
    from footlights.events import JsonValue

SECRET = "what the player said"


class FreeModel:
    """Generates whatever it is given to generate with, even what a model must not."""

    model_id = "free"
    traits = ModelTraits()
    warm_state = WarmState.HOT

    def __init__(self, generate: Callable[[Prompt], AsyncGenerator[Output, None]]) -> None:
        self.generate = generate

    async def load(self, report: Callable[[float], None]) -> None:
        raise AssertionError("a hot model is never loaded")

    async def unload(self) -> None:
        raise AssertionError("a model that takes nothing is never unloaded")


async def ring(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    await trio.lowlevel.checkpoint()
    return "ding"


BELL = Tool(name="bell", run=ring)


async def played(model: Model, params: TurnParams | None = None, limits: Limits | None = None) -> list[StreamEvent]:
    async with open_stage(standard_cast(model, tools=[BELL]), limits=limits) as stage:
        return await take_turn(stage.start(), SECRET, params)


# -- text


async def test_tokens_are_streamed_in_order_and_the_final_holds_them_all(quiet_clock: MockClock) -> None:
    events = await played(ScriptedModel(lambda _: [Say("Good evening, traveller.")], pace=0.1))
    deltas = payloads(events, TokenDelta)
    assert [(each.delta, each.offset) for each in deltas] == [("Good", 0), (" evening,", 4), (" traveller.", 13)]
    assert only(events, TurnFinal) == TurnFinal("Good evening, traveller.", output_tokens=3)


async def test_a_model_that_says_nothing_has_said_all_it_had_to_say() -> None:
    events = await played(ScriptedModel(lambda _: []))
    assert only(events, TurnFinal).text == ""
    assert payloads(events, TokenDelta) == []


async def test_a_turn_may_say_as_much_as_its_limit_and_no_more() -> None:
    limits = Limits(max_turn_text_bytes=10)
    fits = await played(ScriptedModel(lambda _: [Flood("é", 5)]), limits=limits)
    assert only(fits, TurnFinal).text == "é" * 5
    events = await played(ScriptedModel(lambda _: [Flood("é", 6)]), limits=limits)
    assert only(events, TurnInterrupted) == failed(InterruptReason.MODEL_ERROR, "too_large")
    assert "".join(each.delta for each in payloads(events, TokenDelta)) == "é" * 5


@pytest.mark.parametrize(("flooding", "burst"), [(1, 32), (100, 16)])
async def test_a_flood_lets_others_run(flooding: int, burst: int) -> None:
    """A task that only yields must get its turn every few tokens, however many turns are flooding."""
    steps = 0

    async def count(stage: Stage) -> None:
        nonlocal steps
        while True:
            await trio.lowlevel.checkpoint()
            steps += stage.statistics().turns_running > 0

    tokens = 240
    model = flooding_model(ScriptedModel(lambda _: []), tokens=tokens)
    async with open_stage(standard_cast(model)) as stage, trio.open_nursery() as nursery:
        nursery.start_soon(count, stage)
        sessions = [stage.start() for _ in range(flooding)]
        handles = [session.finalize(session.begin_turn("Flood!")) for session in sessions]
        for handle in handles:
            await handle.wait()
        nursery.cancel_scope.cancel()
    assert steps >= tokens // burst


async def test_a_flood_can_be_cancelled_from_another_task() -> None:
    model = flooding_model(ScriptedModel(lambda _: []), tokens=100_000)
    async with (
        open_stage(standard_cast(model)) as stage,
        (session := stage.start()).subscribe() as stream,
    ):
        turn_id = session.begin_turn("Flood!")
        for _ in range(10):
            await trio.lowlevel.checkpoint()
        assert session.cancel(turn_id) == (turn_id,)
        events = [event async for event in stream.until_commit(turn_id)]
    assert only(events, TurnInterrupted).reason is InterruptReason.CANCELED


async def test_the_model_is_closed_as_soon_as_its_turn_is_cancelled(quiet_clock: MockClock) -> None:
    closed: list[float] = []

    async def generate(_: Prompt) -> AsyncGenerator[Output, None]:
        try:
            yield "Well,"
            await trio.sleep_forever()
        finally:
            closed.append(trio.current_time())

    async with open_stage(standard_cast(FreeModel(generate))) as stage:
        session = stage.start()
        turn_id = session.begin_turn("Hello?")
        await trio.sleep(2)
        session.cancel(turn_id)
        await session.finalize(turn_id).wait()
    assert closed == [2.0]


# -- tools


async def test_a_model_hears_every_exchange_of_its_turn() -> None:
    heard: list[int] = []

    def script(prompt: Prompt) -> Sequence[Line]:
        heard.append(len(prompt.exchanges))
        return [Say("Ring! "), Call("bell")] if len(prompt.exchanges) < 3 else [Say("Enough.")]

    events = await played(ScriptedModel(script))
    assert heard == [0, 1, 2, 3]
    assert only(events, TurnFinal).text == "Ring! Ring! Ring! Enough."


async def test_a_prompt_has_the_input_and_the_tools() -> None:
    prompts: list[Prompt] = []

    def script(prompt: Prompt) -> Sequence[Line]:
        prompts.append(prompt)
        return []

    await played(ScriptedModel(script))
    await played(ScriptedModel(script), TurnParams(mode=Mode.CHAT))
    assert [(prompt.user, tuple(tool.name for tool in prompt.tools)) for prompt in prompts] == [
        (SECRET, ("bell",)),
        (SECRET, ()),
    ]


@pytest.mark.shows("narration-22")
async def test_in_chat_no_tool_runs_and_the_model_gets_a_refusal() -> None:
    def script(prompt: Prompt) -> Sequence[Line]:
        return [Say(str(prompt.exchanges[0].error))] if prompt.exchanges else [Call("bell")]

    events = await played(ScriptedModel(script), TurnParams(mode=Mode.CHAT))
    assert payloads(events, ToolCallStarted) == []
    assert only(events, TurnFinal).text == "Tools may not be used in this turn."


@pytest.mark.parametrize("mode", Mode)
async def test_a_model_that_only_ever_asks_for_tools_is_ended(mode: Mode) -> None:
    events = await played(ScriptedModel(lambda _: [Call("bell")]), TurnParams(mode=mode))
    why = "The model asked for tools in too many rounds."
    assert only(events, TurnInterrupted) == failed(InterruptReason.MODEL_ERROR, "model_error", sentence=why)
    assert len(payloads(events, ToolCallStarted)) <= MAX_TOOL_ROUNDS


async def test_no_tool_runs_whose_result_never_reaches_the_model() -> None:
    heard: list[int] = []

    def script(prompt: Prompt) -> Sequence[Line]:
        heard.append(len(prompt.exchanges))
        return [Call("bell")]

    events = await played(ScriptedModel(script))
    assert len(payloads(events, ToolCallStarted)) == heard[-1]


async def test_a_model_may_ask_for_so_many_tools_at_once_and_no_more() -> None:
    def script(calls: int) -> Callable[[Prompt], Sequence[Line]]:
        return lambda prompt: [] if prompt.exchanges else [Call("bell")] * calls

    fits = await played(ScriptedModel(script(MAX_CALLS_PER_ROUND)))
    assert len(payloads(fits, ToolCallStarted)) == MAX_CALLS_PER_ROUND
    assert fits[-2].event_type is EventType.TURN_FINAL
    events = await played(ScriptedModel(script(MAX_CALLS_PER_ROUND + 1)))
    why = "The model asked for too many tools at once."
    assert only(events, TurnInterrupted) == failed(InterruptReason.MODEL_ERROR, "model_error", sentence=why)
    assert payloads(events, ToolCallStarted) == []


# -- a model's faults


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (ValueError(SECRET), "ValueError"),
        (ModelError(SECRET), "model_error"),
        (ExceptionGroup(SECRET, [ValueError(SECRET)]), "ValueError"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_model_that_fails_ends_its_turn_and_is_quoted_nowhere(
    caplog: pytest.LogCaptureFixture, error: Exception, detail: str
) -> None:
    caplog.set_level("DEBUG")
    events = await played(failing_model(ScriptedModel(lambda _: [Say("So far so good.")]), after_tokens=2, error=error))
    assert only(events, TurnInterrupted) == failed(InterruptReason.MODEL_ERROR, detail)
    assert "".join(each.delta for each in payloads(events, TokenDelta)) == "So far"
    assert detail in caplog.text
    assert SECRET not in caplog.text + repr(events)


async def test_a_script_that_fails_is_a_model_that_fails() -> None:
    events = await played(ScriptedModel(lambda _: [Say("Oh"), Fail(ZeroDivisionError(SECRET))]))
    assert only(events, TurnInterrupted) == failed(InterruptReason.MODEL_ERROR, "ZeroDivisionError")


def refuses(_: Prompt) -> AsyncGenerator[Output, None]:
    raise ConnectionError(SECRET)


async def half_a_pair(_: Prompt) -> AsyncGenerator[Output, None]:
    yield "\ud800"


async def no_text(_: Prompt) -> AsyncGenerator[Output, None]:
    yield 5  # type: ignore[misc]


@pytest.mark.parametrize("generate", [refuses, half_a_pair, no_text])
async def test_whatever_a_model_does_wrong_is_a_model_error(
    generate: Callable[[Prompt], AsyncGenerator[Output, None]],
) -> None:
    events = await played(FreeModel(generate))
    assert only(events, TurnInterrupted).reason is InterruptReason.MODEL_ERROR


async def test_a_model_that_asks_for_more_tools_than_a_turn_may_show_is_a_model_error() -> None:
    model = ScriptedModel(lambda _: [Call("bell")] * 4)
    events = await played(model, limits=Limits(max_turn_events=20))
    assert only(events, TurnInterrupted) == failed(InterruptReason.MODEL_ERROR, "too_large")


async def test_a_model_that_swallows_its_cancel_is_still_silenced(quiet_clock: MockClock) -> None:
    async def generate(_: Prompt) -> AsyncGenerator[Output, None]:
        yield "Well,"
        with suppress(trio.Cancelled):
            await trio.sleep_forever()
        yield "I am not done"

    async with (
        open_stage(standard_cast(FreeModel(generate))) as stage,
        (session := stage.start()).subscribe() as stream,
    ):
        turn_id = session.begin_turn("Hello?")
        await trio.sleep(1)
        session.cancel(turn_id)
        events = [event async for event in stream.until_commit(turn_id)]
    assert [each.delta for each in payloads(events, TokenDelta)] == ["Well,"]
    assert events[-2].event_type is EventType.TURN_INTERRUPTED
