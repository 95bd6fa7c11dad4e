"""Sampling of a turn: the turn, its persona and its model in this order; a text that was cut at its limit says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from attrs import evolve

from footlights import (
    BudgetConfig,
    Model,
    ModelTraits,
    Persona,
    Sampling,
    ToolContext,
    TurnFinal,
    TurnParams,
    Usage,
    WarmState,
    open_stage,
    tool,
)
from footlights.testing import only, take_turn
from footlights_actors import Call, Flood, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from footlights import Output, Prompt
    from footlights_actors import Line


def listening(told: list[Prompt], sampling: Sampling) -> ScriptedModel:
    def script(prompt: Prompt) -> Iterable[Line]:
        told.append(prompt)
        return [Flood("word ", 50)]

    return ScriptedModel(script, traits=ModelTraits(sampling=sampling))


async def final_of(
    model: Model, params: TurnParams | None = None, persona: Persona | None = None, most: int = 4_000
) -> TurnFinal:
    cast = standard_cast(model, personas=persona, budget=BudgetConfig(dialogue_max=most), tools=[look])
    async with open_stage(cast) as stage:
        return only(await take_turn(stage.start(), "Well?", params), TurnFinal)


@tool
async def look(context: ToolContext) -> str:
    """Look."""
    return "seen"


async def test_the_turn_wins_over_the_persona_and_the_persona_over_the_model() -> None:
    told: list[Prompt] = []
    model = listening(told, Sampling(temperature=0.1, top_p=0.2, seed=3))
    persona = Persona(sampling=Sampling(top_p=0.5, stop=["."]))
    await final_of(model, TurnParams(sampling=Sampling(seed=9)), persona)
    assert told[0].sampling == Sampling(temperature=0.1, top_p=0.5, seed=9, stop=["."])


async def test_without_any_setting_the_temperature_has_its_default() -> None:
    told: list[Prompt] = []
    await final_of(listening(told, Sampling()))
    assert told[0].sampling == Sampling(temperature=0.7)


@pytest.mark.parametrize(("limit", "budget", "said"), [(5, 4_000, 5), (60, 7, 7), (None, 7, 7)])
async def test_a_text_that_reaches_its_limit_is_cut_and_says_so(limit: int | None, budget: int, said: int) -> None:
    told: list[Prompt] = []
    final = await final_of(listening(told, Sampling()), TurnParams(sampling=Sampling(max_tokens=limit)), most=budget)
    assert final.cut
    assert final.text == "word " * said
    assert told[0].max_tokens == said


@pytest.mark.parametrize("length", [1, 32 * 5 + 1])
async def test_a_text_that_ends_by_itself_is_not_cut(length: int) -> None:
    exact = await final_of(ScriptedModel(lambda _: [Flood("w", 5)]), TurnParams(sampling=Sampling(max_tokens=5)))
    assert not exact.cut
    long = await final_of(
        ScriptedModel(lambda _: [Flood("w" * length, 1)]), TurnParams(sampling=Sampling(max_tokens=5))
    )
    assert long.cut is (length > 32 * 5)


class Counting:
    """A model that says itself whether its answer was cut."""

    model_id = "counting"
    traits = ModelTraits()
    warm_state = WarmState.HOT

    def __init__(self, *usages: Usage) -> None:
        self._usages = list(usages)

    async def load(self, report: object) -> None:
        raise AssertionError("a hot model is never loaded")

    async def unload(self) -> None:
        raise AssertionError("a model that takes nothing is never unloaded")

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        yield "A word"
        yield self._usages.pop(0)


@pytest.mark.parametrize("cut", [False, True])
async def test_a_model_that_was_cut_by_its_server_says_so(cut: bool) -> None:
    assert (await final_of(Counting(Usage(2, cut=cut)))).cut is cut


async def test_a_turn_whose_tools_have_used_up_its_limit_is_cut() -> None:
    def script(prompt: Prompt) -> Iterable[Line]:
        return [Say("Seen.")] if prompt.exchanges else [Say("Let me see."), Call("look")]

    final = await final_of(ScriptedModel(script), TurnParams(sampling=Sampling(max_tokens=3)))
    assert (final.text, final.cut) == ("Let me see.", True)
    enough = await final_of(ScriptedModel(script), TurnParams(sampling=Sampling(max_tokens=4)))
    assert (enough.text, enough.cut) == ("Let me see.Seen.", False)


def test_a_persona_keeps_its_settings_when_it_changes() -> None:
    sampling = Sampling(temperature=0)
    assert evolve(Persona(sampling=sampling), text="You are terse.").sampling is sampling
