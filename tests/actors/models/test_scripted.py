"""Scripted model: the same prompt gives the same tokens at the same times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from footlights import Output, Prompt, RegistrationError, ToolRequest, WarmState
from footlights_actors import Call, Fail, Flood, Line, Pause, Say, ScriptedModel, Stall

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trio.testing import MockClock

PROMPT = Prompt("Hello?")


async def spoken(model: ScriptedModel, prompt: Prompt = PROMPT) -> list[tuple[float, Output]]:
    """What it said, and when."""
    began = trio.current_time()
    return [(trio.current_time() - began, item) async for item in model.generate(prompt)]


def scripted(*lines: Line, pace: float = 0.0) -> ScriptedModel:
    return ScriptedModel(lambda _: lines, pace=pace)


def ignore(_: float) -> None:
    pass


# -- lines


@given(st.text(" \n\tabcé日"))
def test_words_joined_are_what_was_to_be_said(text: str) -> None:
    async def main() -> list[Output]:
        return [item for _, item in await spoken(scripted(Say(text)))]

    tokens = trio.run(main)
    assert "".join(map(str, tokens)) == text
    assert "" not in tokens


async def test_say_speaks_word_by_word_at_the_models_pace(quiet_clock: MockClock) -> None:
    said = await spoken(scripted(Say("Good evening, sir."), pace=0.5))
    assert said == [(0.5, "Good"), (1.0, " evening,"), (1.5, " sir.")]


async def test_flood_knows_no_pace(quiet_clock: MockClock) -> None:
    assert await spoken(scripted(Flood("x", 1000), pace=0.5)) == [(0.0, "x")] * 1000


async def test_pause_takes_its_time(quiet_clock: MockClock) -> None:
    assert await spoken(scripted(Say("a"), Pause(2), Say("b"))) == [(0.0, "a"), (2.0, "b")]


async def test_call_asks_for_a_tool() -> None:
    said = await spoken(scripted(Call("bell"), Call("door", {"open": True})))
    assert [item for _, item in said] == [ToolRequest("bell", {}), ToolRequest("door", {"open": True})]


async def test_fail_raises_what_it_was_given() -> None:
    error = ValueError()
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - it is the very object that is asked for below
        await spoken(scripted(Say("a"), Fail(error)))
    assert caught.value is error


async def test_stall_says_nothing_more_and_does_not_end(quiet_clock: MockClock) -> None:
    said: list[Output] = []
    with trio.move_on_after(1_000_000) as scope:
        async for item in scripted(Say("a"), Stall(), Say("b")).generate(PROMPT):
            said.append(item)  # noqa: PERF401 - what was said before the cancel is what counts
    assert scope.cancelled_caught
    assert said == ["a"]


# -- determinism


async def test_the_same_prompt_is_answered_alike_every_time(quiet_clock: MockClock) -> None:
    def script(prompt: Prompt) -> Sequence[Line]:
        return [Say(f"You said {prompt.user}"), Pause(1), Flood("!", 3), Call("bell")]

    model = ScriptedModel(script, pace=0.125)
    assert await spoken(model) == await spoken(model)
    assert await spoken(model) != await spoken(model, Prompt("Goodbye!"))


async def test_two_turns_may_speak_at_once(quiet_clock: MockClock) -> None:
    model = scripted(Say("a b c"), pace=1)
    heard: list[list[tuple[float, Output]]] = []

    async def listen() -> None:
        heard.append(await spoken(model))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        nursery.start_soon(listen)
    assert heard[0] == heard[1] == [(1.0, "a"), (2.0, " b"), (3.0, " c")]


# -- loading


async def test_loading_takes_its_time_and_reports_each_step(quiet_clock: MockClock) -> None:
    reports: list[tuple[float, float]] = []
    model = ScriptedModel(lambda _: [], warm_state=WarmState.COLD, load_seconds=4, load_steps=4)
    await model.load(lambda progress: reports.append((trio.current_time(), progress)))
    assert reports == [(1.0, 0.25), (2.0, 0.5), (3.0, 0.75), (4.0, 1.0)]
    assert model.warm_state is WarmState.HOT


async def test_an_unloaded_model_must_load_again(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [], warm_state=WarmState.COLD, load_seconds=2)
    await model.load(ignore)
    model.cool()
    assert model.warm_state is WarmState.COLD
    await model.load(ignore)
    assert trio.current_time() == pytest.approx(4)


async def test_who_waits_for_a_load_that_is_under_way_finds_it_done(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [], warm_state=WarmState.COLD, load_seconds=3)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(model.load, ignore)
        nursery.start_soon(model.load, ignore)
    assert trio.current_time() == pytest.approx(3)


async def test_a_load_that_fails_leaves_the_model_as_it_was() -> None:
    model = ScriptedModel(lambda _: [], warm_state=WarmState.COLD, load_error=ConnectionError())
    for _ in range(2):
        with pytest.raises(ConnectionError):
            await model.load(ignore)
        assert model.warm_state is WarmState.COLD


async def test_a_cancelled_load_leaves_the_model_as_it_was(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [], warm_state=WarmState.COLD, load_seconds=3)
    with trio.move_on_after(1):
        await model.load(ignore)
    assert model.warm_state is WarmState.COLD


# -- registration


def test_times_must_not_be_negative_and_loading_needs_a_step() -> None:
    with pytest.raises(RegistrationError):
        ScriptedModel(lambda _: [], pace=-1)
    with pytest.raises(RegistrationError):
        ScriptedModel(lambda _: [], load_seconds=-1)
    with pytest.raises(RegistrationError):
        ScriptedModel(lambda _: [], load_steps=0)
