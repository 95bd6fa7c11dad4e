"""Host code that returns what its caller cannot use: the error names what to write instead, and where."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import pytest

from footlights import (
    CommitFinal,
    Fact,
    Persona,
    RegistrationError,
    Tool,
    ToolCallResult,
    TurnInterrupted,
    open_stage,
    tool,
    traceback_text,
    watch_failures,
)
from footlights.authority import RuleBook, accept, every_turn, patch
from footlights.testing import only, take_turn
from footlights_actors import Call, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from footlights import Cast, Prompt, StreamEvent


async def later(*_: object) -> Any:
    raise AssertionError("it was not awaited")


def unawaited(*_: object) -> Any:
    return later()


async def played(cast: Cast) -> tuple[list[StreamEvent], str]:
    """The events of a turn, and the text of its failure."""
    texts: list[str] = []
    with watch_failures(lambda _, error: texts.append(traceback_text(error))):
        async with open_stage(cast) as stage:
            events = await take_turn(stage.start(), "A room?")
    return events, "".join(texts)


def quiet() -> ScriptedModel:
    return ScriptedModel(lambda _: [Say("Welcome.")])


def calling(tool_name: str) -> ScriptedModel:
    def script(prompt: Prompt) -> list[Say | Call]:
        return [Say("Done.")] if prompt.rounds else [Call(tool_name)]

    return ScriptedModel(script)


# -- facts


def returning(value: object) -> Any:
    def facts(*_: object) -> object:
        return value

    return facts


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        (unawaited, "The facts are a coroutine. Make them with def, and await nothing."),
        (
            returning(["it rains"]),
            'The facts hold something that is not a Fact. Return a list of Fact("name", "text").',
        ),
        (returning([("weather", "it rains")]), "The facts hold something that is not a Fact."),
        (returning({"weather": "it rains"}), 'The facts are not a list. Return a list of Fact("name", "text").'),
        (returning("it rains"), "The facts are not a list."),
        (returning(None), "The facts are not a list."),
        (returning(Fact("weather", "it rains")), "The facts are not a list."),
    ],
)
async def test_facts_that_are_no_facts_say_what_to_return(
    facts: Any, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    events, text = await played(standard_cast(quiet(), personas=Persona(facts=facts)))
    assert only(events, TurnInterrupted).detail == "invalid_registration"
    assert re.match(rf'  File "{re.escape(__file__)}", line \d+, in \w+\n', text)
    assert told in text
    assert re.search(r"invalid_registration at test_bad_returns.py:\d+ \(The facts ", caplog.text)
    assert "rains" not in text + caplog.text


async def test_facts_may_be_any_iterable() -> None:
    def facts(*_: object) -> Any:
        yield Fact("weather", "it rains")

    events, text = await played(standard_cast(quiet(), personas=Persona(facts=facts)))
    assert (only(events, CommitFinal).issues, text) == ((), "")


def test_facts_made_by_an_async_function_are_refused_at_once() -> None:
    with pytest.raises(RegistrationError, match="write def, not async def"):
        Persona(facts=cast("Any", later))


# -- scripts


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (unawaited, "The script returned a coroutine. Write it with def, and await nothing."),
        (returning(None), "The script returned no lines. Return a list of Say(...), Call(...) and the like."),
        (returning("Welcome."), "The script returned something that is not a line."),
        (returning(["Welcome."]), "The script returned something that is not a line."),
    ],
)
async def test_a_script_that_gives_no_lines_says_what_to_return(script: Any, told: str) -> None:
    events, text = await played(standard_cast(ScriptedModel(script)))
    assert only(events, TurnInterrupted).reason == "model_error"
    assert re.match(rf'  File "{re.escape(__file__)}", line \d+, in \w+\n', text)
    assert told in text
    assert "Welcome" not in text


async def _generating(_: object) -> Any:
    yield Say("Welcome.")


@pytest.mark.parametrize("script", [later, _generating])
def test_an_async_script_is_refused_at_once(script: Any) -> None:
    with pytest.raises(RegistrationError, match="write def, not async def"):
        ScriptedModel(script)


# -- rules


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (unawaited, "The rule returned a coroutine. Write it with def, and await nothing: a rule is pure."),
        (lambda *_: None, "The rule returned nothing. Return accept(...) or refuse(...) on every path."),
        (lambda *_: True, "The rule returned no Ruling. Return accept(...) or refuse(...) on every path."),
    ],
)
async def test_a_rule_that_gives_no_ruling_says_what_to_return(rule: Any, told: str) -> None:
    events, text = await played(standard_cast(quiet(), rules={"rent": every_turn(rule)}))
    (issue,) = only(events, CommitFinal).issues
    assert (issue.code, issue.ref) == ("rule_error", "rent")
    assert told in issue.message
    assert f'  File "{__file__}", line ' in text
    assert told in text


def test_an_async_rule_is_refused_at_once() -> None:
    with pytest.raises(RegistrationError, match="write def, not async def"):
        RuleBook({"rent": cast("Any", later)})
    with pytest.raises(RegistrationError, match="is not a function"):
        RuleBook({"rent": cast("Any", accept())})


# -- tools


@tool
async def rent_room() -> Any:
    return later()


@tool
def rent_room_in_a_thread() -> Any:
    return later()


async def run_unawaited(*_: object) -> Any:
    return later()


def run_plain(*_: object) -> Any:
    return "rented"


@tool
async def measure_room() -> Any:
    return {"beds": {1, 2}}


async def test_a_result_that_is_not_json_says_what_is_not_and_where_and_the_turn_goes_on() -> None:
    events, text = await played(standard_cast(calling("measure_room"), tools=[measure_room]))
    result = only(events, ToolCallResult)
    assert result.error is not None
    assert result.error.message == "The tool's result is not JSON."
    assert only(events, CommitFinal).commit_outcome == "ok"
    assert f'  File "{__file__}", line ' in text
    assert text.endswith("BadReturn: The tool's result is not JSON: a set is not a JSON value.\n")


UNAWAITED = "The tool returned a coroutine that was not awaited. Write it with async def, and await the call."


@pytest.mark.parametrize(
    ("made", "told", "line"),
    [
        (rent_room, UNAWAITED, "in rent_room"),
        (rent_room_in_a_thread, UNAWAITED, "in rent_room_in_a_thread"),
        (Tool(name="rent", run=run_unawaited), UNAWAITED, "in run_unawaited"),
        (
            Tool(name="rent", run=run_plain),
            "The tool's run is not async. Write it with async def, or make the tool with @tool.",
            "in run_plain",
        ),
    ],
    ids=["async", "thread", "by hand", "plain by hand"],
)
async def test_a_tool_that_returns_a_coroutine_says_what_to_write(made: Tool, told: str, line: str) -> None:
    events, text = await played(standard_cast(calling(made.name), tools=[made]))
    result = only(events, ToolCallResult)
    assert result.error is not None
    assert (result.error.code, result.error.message) == ("tool_error", told)
    assert only(events, TurnInterrupted).reason == "tool_error"
    assert f'  File "{__file__}", line ' in text
    assert f", {line}\n" in text
    assert told in text


async def test_changes_that_are_no_changes_are_named_where_the_rule_accepts_them() -> None:
    def rule(world: Any, intents: Any) -> Any:
        return accept([patch.replace("/fish", 1)])  # type: ignore[arg-type]  # the mistake

    events, text = await played(standard_cast(quiet(), rules={"rent": every_turn(rule)}))
    (issue,) = only(events, CommitFinal).issues
    assert issue.message.startswith("accept() takes changes that patch made, one by one")
    assert f'  File "{__file__}", line ' in text
