"""The models that misbehave do so exactly when they say, and otherwise are what they stand in front of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from footlights import Prompt, ToolRequest, WarmState
from footlights.testing.faults import (
    InjectedFault,
    failing_load,
    failing_model,
    flooding_model,
    stalling_load,
    stalling_model,
)
from footlights_actors import Call, Say, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from trio.testing import MockClock

    from footlights import Model, Output


def inner() -> ScriptedModel:
    return ScriptedModel(lambda _: [Say("one two"), Call("bell"), Say(" three")], model_id="inner")


def ignore(_: float) -> None:
    pass


async def said_by(model: Model) -> tuple[list[str], BaseException | None]:
    """All that it says within an hour, and what it raises."""
    said: list[str] = []
    with trio.move_on_after(3600):
        try:
            async for item in model.generate(Prompt("Hello?")):
                said += ["bell" if isinstance(item, ToolRequest) else str(item)]
        except InjectedFault as fault:
            return said, fault
    return said, None


@pytest.mark.parametrize(
    ("after_tokens", "said"),
    [(0, []), (1, ["one"]), (3, ["one", " two", "bell", " three"]), (9, ["one", " two", "bell", " three"])],
)
async def test_a_model_fails_after_so_many_tokens_or_at_the_end(after_tokens: int, said: list[str]) -> None:
    heard, fault = await said_by(failing_model(inner(), after_tokens=after_tokens))
    assert heard == said
    assert isinstance(fault, InjectedFault)


async def test_a_model_may_be_told_how_to_fail() -> None:
    error = InjectedFault("this one")
    assert await said_by(failing_model(inner(), after_tokens=0, error=error)) == ([], error)


async def test_a_model_stalls_after_so_many_tokens(quiet_clock: MockClock) -> None:
    assert await said_by(stalling_model(inner(), after_tokens=2)) == (["one", " two"], None)
    assert trio.current_time() == 3600


async def test_a_flood_comes_before_everything_and_without_waiting(quiet_clock: MockClock) -> None:
    said, _ = await said_by(flooding_model(inner(), tokens=500, token="x"))
    assert said == ["x"] * 500 + ["one", " two", "bell", " three"]
    assert trio.current_time() == 0


async def test_a_load_that_fails_is_asked_for_and_fails() -> None:
    model = failing_load(inner())
    assert model.warm_state is WarmState.COLD
    with pytest.raises(InjectedFault):
        await model.load(ignore)


async def test_a_load_that_stalls_can_be_cancelled(quiet_clock: MockClock) -> None:
    with trio.move_on_after(3600) as scope:
        await stalling_load(inner()).load(ignore)
    assert scope.cancelled_caught


@pytest.mark.parametrize("make", [failing_load, stalling_load])
async def test_a_model_that_cannot_load_speaks_like_the_model_behind_it(make: Callable[[Model], Model]) -> None:
    assert await said_by(make(inner())) == (["one", " two", "bell", " three"], None)


@pytest.mark.parametrize(
    "make",
    [
        lambda model: failing_model(model, after_tokens=1),
        lambda model: stalling_model(model, after_tokens=1),
        lambda model: flooding_model(model, tokens=1),
    ],
    ids=["failing", "stalling", "flooding"],
)
async def test_a_model_that_misbehaves_later_loads_like_the_model_behind_it(make: Callable[[Model], Model]) -> None:
    behind = inner()
    behind.cool(WarmState.WARM)
    model = make(behind)
    assert (model.model_id, model.warm_state) == ("inner", WarmState.WARM)
    reports: list[float] = []
    await model.load(reports.append)
    assert reports[-1] == 1.0
    assert behind.warm_state is model.warm_state is WarmState.HOT


async def test_the_model_behind_is_closed_with_the_one_in_front(quiet_clock: MockClock) -> None:
    closed: list[str] = []

    class Behind(ScriptedModel):
        async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
            try:
                yield "one"
                await trio.sleep_forever()
            finally:
                closed.append("behind")

    output = stalling_model(Behind(lambda _: []), after_tokens=5).generate(Prompt("Hello?"))
    assert await anext(output) == "one"
    await output.aclose()
    assert closed == ["behind"]
