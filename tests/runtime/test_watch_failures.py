"""The failure hook: every exception of host code that Footlights contains, once, with what failed and the exception."""

from __future__ import annotations

import logging
import random
import re
from typing import TYPE_CHECKING, Any

import pytest

from footlights import (
    Intent,
    IntentType,
    InteractionContext,
    Persona,
    Tool,
    ToolContext,
    TurnParams,
    TurnSummary,
    open_stage,
    watch_failures,
)
from footlights.authority import JsonWorld, Ruling, accept, patch
from footlights.authority.rules import every_turn
from footlights.failures import describe, report
from footlights.testing import take_turn
from footlights.testing.faults import failing_load, failing_model
from footlights_actors import Call, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import Cast, Prompt
    from footlights_actors import Line

SECRET = "the key is under the mat"


class Bug(Exception):
    pass


def buggy(*_: object) -> Any:
    raise Bug(SECRET)


def quiet() -> ScriptedModel:
    return ScriptedModel(lambda _: [Say("Welcome.")])


async def buggy_tool(arguments: object, context: ToolContext) -> None:
    buggy()


def tool_fails() -> Cast:
    def script(prompt: Prompt) -> list[Line]:
        return [Say("Done.")] if prompt.rounds else [Call("rent_room")]

    return standard_cast(ScriptedModel(script), tools=[Tool(name="rent_room", run=buggy_tool)])


def script_fails() -> Cast:
    return standard_cast(ScriptedModel(buggy))


def driver_fails() -> Cast:
    return standard_cast(failing_model(quiet(), after_tokens=0, error=Bug(SECRET)))


def load_fails() -> Cast:
    return standard_cast(failing_load(quiet(), error=Bug(SECRET)))


def rule_fails() -> Cast:
    return standard_cast(quiet(), rules={"tavern.it": every_turn(buggy)})


def facts_fail() -> Cast:
    return standard_cast(quiet(), personas=Persona(facts=buggy))


class BuggyWorkload:
    async def run(self, context: InteractionContext) -> None:
        buggy()


class Staging:
    async def run(self, context: InteractionContext) -> None:
        context.request_commit(Intent(IntentType.TURN_FINALIZE, "a room"))


class BuggyWorld(JsonWorld):
    def changed(self, changes: object) -> JsonWorld:
        raise Bug(SECRET)


def workload_fails() -> Cast:
    return standard_cast(quiet(), workloads={"it": BuggyWorkload()})


def world_fails() -> Cast:
    def rent(world: object, intents: object) -> Ruling:
        return accept(patch.add("/rented", 1))

    return standard_cast(quiet(), world=BuggyWorld({}), rules={"rent": rent}, workloads={"it": Staging()})


WHAT = {
    tool_fails: "the tool rent_room failed in t1-000001",
    script_fails: "t1-000001 of s1-000001 failed",
    driver_fails: "t1-000001 of s1-000001 failed",
    load_fails: "the model scripted could not be loaded",
    rule_fails: "the rule tavern.it failed in t1-000001 of s1-000001",
    facts_fail: "t1-000001 of s1-000001 failed",
    workload_fails: "t1-000001 of s1-000001 failed",
    world_fails: "the world failed in t1-000001 of s1-000001",
}


@pytest.mark.parametrize("make", WHAT, ids=lambda make: make.__name__)
async def test_the_hook_gets_each_exception_once_and_the_log_its_type_and_place(
    make: Callable[[], Cast], caplog: pytest.LogCaptureFixture
) -> None:
    failures: list[tuple[str, str]] = []
    cast = make()
    params = TurnParams(workload="it") if cast.workloads.names else TurnParams()
    with watch_failures(lambda what, error: failures.append((what, describe(error)))):
        async with open_stage(cast) as stage:
            await take_turn(stage.start(), "A room?", params)
    assert [what for what, _ in failures] == [WHAT[make]]
    assert re.search(r"Bug at \w+\.py:\d+$", failures[0][1])
    logged = [record.getMessage() for record in caplog.records]
    assert f"{WHAT[make]}: {failures[0][1]}" in logged
    assert SECRET not in caplog.text


async def test_without_a_hook_a_rule_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with open_stage(rule_fails()) as stage:
        await take_turn(stage.start(), "A room?")
    (record,) = caplog.records
    expected = r"the rule tavern.it failed in t1-000001 of s1-000001: Bug at test_watch_failures.py:\d+"
    assert re.fullmatch(expected, record.getMessage())
    assert record.levelno == logging.ERROR
    assert record.exc_info is None


async def test_the_observer_is_watched_too() -> None:
    def observe(_: TurnSummary) -> None:
        buggy()

    failures: list[str] = []
    with watch_failures(lambda what, _: failures.append(what)):
        async with open_stage(standard_cast(quiet()), observe=observe) as stage:
            await take_turn(stage.start(), "A room?")
    assert failures == ["the observer failed"]


async def test_a_hook_that_fails_is_logged_and_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with watch_failures(buggy):
        async with open_stage(script_fails()) as stage:
            await take_turn(stage.start(), "A room?")
            await take_turn(stage.start(), "A room?")
    assert [line for line in caplog.messages if line.startswith("the failure hook failed: Bug at ")]
    assert SECRET not in caplog.text


def test_hooks_end_with_their_block_and_the_inner_one_counts() -> None:
    log, seen = logging.getLogger("footlights"), list[str]()
    with watch_failures(lambda what, _: seen.append(f"outer: {what}")):
        with watch_failures(lambda what, _: seen.append(f"inner: {what}")):
            report(log, "one", Bug())
        report(log, "two", Bug())
    report(log, "three", Bug())
    assert seen == ["inner: one", "outer: two"]


# -- the place of a failure


def raised_by(function: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any
        function()
    return caught.value


def test_a_failure_inside_a_library_has_the_place_of_the_hosts_line() -> None:
    assert re.fullmatch(r"IndexError at test_watch_failures.py:\d+", describe(raised_by(lambda: random.choice([]))))


def test_a_syntax_error_has_the_place_of_the_text_that_is_wrong() -> None:
    error = raised_by(lambda: compile("room =\n", "/home/edda/game.py", "exec"))
    assert describe(error) == "SyntaxError at game.py:1"
