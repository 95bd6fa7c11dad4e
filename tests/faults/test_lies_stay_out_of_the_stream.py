"""Drivers, tools and hosts that hand in what their types do not allow: none of it reaches a stream.

The laws judge each of these streams, and every event must be written as JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest
from attrs import evolve

from footlights import (
    CommitFinal,
    CommitOutcome,
    InvalidCommand,
    ModelChoice,
    ModelError,
    RegistrationError,
    SessionParams,
    Tool,
    ToolCallResult,
    ToolError,
    ToolRequest,
    TurnInterrupted,
    TurnParams,
    Usage,
    WarmState,
    open_stage,
    wire,
)
from footlights.models.sampling import Sampling
from footlights.testing import only, payloads, take_turn
from footlights.testing.faults import failing_model, raising_tool
from footlights_actors import Call, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from footlights import Cast, Output, Prompt, Stage, StreamEvent

LIES = [5, 2.5, True, None, "lava", "half a pair: \ud800", "x" * 10_000, ["hot"], b"hot", object()]


def lie_name(lie: object) -> str:
    return f"{type(lie).__name__}-{len(lie)}" if isinstance(lie, str) else type(lie).__name__


async def played(cast: Cast) -> list[StreamEvent]:
    async with open_stage(cast) as stage:
        events = await take_turn(stage.start(), "Hello?")
        assert stage.models, "one model's lie hides no model from those who look at all"
    for event in events:
        orjson.dumps(wire.to_wire(event))
    return events


class Lying(ScriptedModel):
    def __init__(self, item: object) -> None:
        super().__init__(lambda _: [])
        self._item = item

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        yield "Well, "
        if not prompt.exchanges:
            yield cast("Any", self._item)


def error_with_code(kind: type[Exception], code: object) -> Exception:
    return cast("Exception", type("Odd", (kind,), {"code": code})("no"))


@pytest.mark.parametrize("lie", LIES, ids=lie_name)
async def test_a_warm_state_that_is_none_fails_its_turn(lie: object) -> None:
    class Volcano(ScriptedModel):
        @property
        def warm_state(self) -> WarmState:
            return cast("WarmState", lie)

    events = await played(standard_cast(Volcano(lambda _: [Say("Hot.")])))
    assert only(events, TurnInterrupted).detail == "model_error"


async def test_a_warm_state_may_be_a_plain_string() -> None:
    class Plain(ScriptedModel):
        @property
        def warm_state(self) -> WarmState:
            return cast("WarmState", "hot")

    events = await played(standard_cast(Plain(lambda _: [Say("Hot.")])))
    assert only(events, CommitFinal).commit_outcome is CommitOutcome.OK


@pytest.mark.parametrize("lie", LIES, ids=lie_name)
@pytest.mark.parametrize(
    "item",
    [
        lambda lie: lie,
        lambda lie: Usage(lie),
        lambda lie: ToolRequest(lie, {}),
        lambda lie: ToolRequest("raising", lie),
        lambda lie: ToolRequest("raising", {"a": lie}),
        lambda lie: ToolRequest("raising", {}, lie),
    ],
    ids=["item", "usage", "tool-name", "arguments", "argument", "problem"],
)
async def test_what_a_model_gives_that_is_none_of_its_things_reaches_no_stream(
    item: Callable[[object], object], lie: object
) -> None:
    tool = raising_tool(error=ToolError("Not today."))
    await played(standard_cast(Lying(item(lie)), tools=[tool]))


class LyingText(str):
    """Half a surrogate pair that says it is ASCII."""

    __slots__ = ()

    def isascii(self) -> bool:
        return True


async def test_a_text_that_lies_about_itself_reaches_no_stream() -> None:
    events = await played(standard_cast(Lying(LyingText("\ud800"))))
    assert only(events, TurnInterrupted).detail == "invalid_event"


@pytest.mark.parametrize("lie", LIES, ids=lie_name)
async def test_a_code_that_a_tool_made_up_is_no_code(lie: object) -> None:
    tool = raising_tool(error=error_with_code(ToolError, lie))
    events = await played(standard_cast(_asking(tool), tools=[tool]))
    (result,) = payloads(events, ToolCallResult)
    assert result.error is not None
    assert result.error.code == ("lava" if lie == "lava" else "tool_error")


@pytest.mark.parametrize("lie", LIES, ids=lie_name)
async def test_a_code_that_a_model_made_up_is_no_code(lie: object) -> None:
    model = failing_model(ScriptedModel(lambda _: [Say("Hi.")]), after_tokens=1, error=error_with_code(ModelError, lie))
    events = await played(standard_cast(model))
    assert only(events, TurnInterrupted).detail == ("lava" if lie == "lava" else "model_error")


async def test_the_name_of_an_exception_quotes_no_text() -> None:
    whispered = cast("type[Exception]", type("I love you", (ValueError,), {}))
    tool = raising_tool(error=whispered())
    events = await played(standard_cast(_asking(tool), tools=[tool]))
    assert only(events, TurnInterrupted).detail == "ValueError"


@pytest.mark.parametrize("lie", [lie for lie in LIES if lie != "lava"], ids=lie_name)
async def test_a_model_is_chosen_for_a_reason_that_can_be_shown(lie: object) -> None:
    with pytest.raises(RegistrationError):
        ModelChoice("scripted", cast("str", lie))
    cast_of_one = standard_cast(ScriptedModel(lambda _: [Say("Hi.")]))
    events = await played(evolve(cast_of_one, choose_model=lambda _: ModelChoice("scripted", cast("str", lie))))
    assert only(events, TurnInterrupted).detail == "invalid_registration"


def _asking(tool: Tool) -> ScriptedModel:
    return ScriptedModel(lambda prompt: [Say("Done.")] if prompt.exchanges else [Call(tool.name)])


# -- hosts that are not typed


def _hashable(lie: Any) -> Any:
    return tuple(lie) if isinstance(lie, list) else lie


NOT_TEXT = [5, ["t"], b"t", object()]
CALLS: dict[str, Callable[[Stage, Any], object]] = {
    "start": lambda stage, lie: stage.start(lie),
    "session": lambda stage, lie: stage.session(lie),
    "closed_session": lambda stage, lie: stage.closed_session(lie),
    "resume": lambda stage, lie: stage.resume(lie),
    "prewarm": lambda stage, lie: stage.prewarm(lie),
    "begin_turn": lambda stage, lie: stage.start().begin_turn(lie),
    "turn params": lambda stage, lie: stage.start().begin_turn("Hello?", lie),
    "cancel": lambda stage, lie: stage.start().cancel(lie),
    "finalize": lambda stage, lie: stage.start().finalize(lie),
    "heard": lambda stage, lie: stage.start().heard(lie, 1),
    "after": lambda stage, lie: stage.start().subscribe(lie),
    "a turn in after": lambda stage, lie: stage.start().subscribe({_hashable(lie): 3}),
    "a seq in after": lambda stage, lie: stage.start().subscribe({"t1-000001": lie if lie != 5 else "3"}),  # type: ignore[dict-item]
    "terminal_seen": lambda stage, lie: stage.start().subscribe({}, [lie] if isinstance(lie, bytes | list) else lie),  # type: ignore[list-item]
    "a text for terminal_seen": lambda stage, lie: stage.start().subscribe({}, str(lie)),
    "session_id": lambda stage, lie: SessionParams(session_id=lie),
    "remote_models": lambda stage, lie: SessionParams(remote_models=lie),
    "model": lambda stage, lie: TurnParams(model=lie),
    "persona": lambda stage, lie: TurnParams(persona=lie),
    "workload": lambda stage, lie: TurnParams(workload=lie),
    "busy": lambda stage, lie: TurnParams(busy=lie),
    "sampling": lambda stage, lie: TurnParams(sampling=lie),
    "temperature": lambda stage, lie: Sampling(temperature=lie if lie != 5 else -5),
}


@pytest.mark.parametrize("call", CALLS)
async def test_a_plain_call_refuses_what_makes_no_sense_with_a_code(call: str) -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Say("Hi.")]))) as stage:
        for lie in NOT_TEXT:
            with pytest.raises(InvalidCommand):
                CALLS[call](stage, lie)


async def test_an_input_that_is_missing_is_refused_with_a_code() -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: [Say("Hi.")]))) as stage:
        with pytest.raises(InvalidCommand, match="must be a string"):
            stage.start().begin_turn(cast("str", None))
