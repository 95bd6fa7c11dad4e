"""Small innkeeper with the real weights: it ends, it does not repeat itself, and its labels are calibrated."""

from __future__ import annotations

import re
from math import exp, log
from typing import TYPE_CHECKING

import pytest

from footlights import Prompt, Sampling, TurnFinal, TurnParams, open_stage
from footlights.testing import only, take_turn
from footlights_actors.demo.tavern import label_choice
from footlights_actors.demo.tavern.label_choice import LABELS, text_for
from footlights_actors.demo.tavern.small_innkeeper import small_tavern_cast
from footlights_actors.models.local.model import known_model

if TYPE_CHECKING:
    from pathlib import Path

    from footlights_actors.models.local.model import LocalModel

OTHER_LINES = """
Hello there.|I'll take the great chamber.|One ale.|Which rooms are free?|Heard any gossip?|I want to buy the lantern.
It rains a lot here.|A bed for the night, please.|Stew, and be quick.|Do you have a room with a view?
What is going on in the village?|How old is this lantern?|You are a fool.|What does the attic cost?
Give me the cheapest room.|Some wine for my friend.|Goodbye.|Can I pay tomorrow?|Tell me a story.|No, thank you.
"""
LINES = ("My horse is tired.", "Do you believe in ghosts?", "I lost my brother in the war.", "You look like a pirate.")


@pytest.fixture
def model(smollm2: Path) -> LocalModel:
    return known_model("smollm2", slots=2)


def test_known_weights_bring_their_settings_and_the_host_may_change_them(smollm2: Path) -> None:
    assert known_model("smollm2").traits.sampling.max_tokens == 60
    changed = known_model("smollm2", sampling=Sampling(max_tokens=20, seed=1)).traits.sampling
    assert (changed.max_tokens, changed.seed, changed.temperature, changed.stop) == (20, 1, 0.6, ("\n",))
    assert known_model(smollm2).traits.sampling == Sampling()


async def test_the_averages_of_the_labels_are_those_of_these_weights(model: LocalModel) -> None:
    await model.load(lambda _: None)
    try:
        lines = [line for row in OTHER_LINES.split("\n") for line in row.split("|") if line]
        found = [await model.log_probs(text_for(line), LABELS) for line in lines]
    finally:
        await model.unload()
    assert len(found) == 20
    for label in LABELS:
        average = log(sum(exp(each[label]) for each in found) / len(found))
        assert average == pytest.approx(label_choice._AVERAGES[label], abs=0.1)  # pyright: ignore[reportPrivateUsage]


async def test_it_ends_by_itself_and_repeats_nothing(model: LocalModel) -> None:
    async with open_stage(small_tavern_cast(model, pace=0, tool_seconds=0)) as stage:
        session = stage.start()
        for seed, line in enumerate(LINES):
            params = TurnParams(mode="chat", sampling=Sampling(seed=seed))
            final = only(await take_turn(session, line, params), TurnFinal)
            words = final.text.casefold().split()
            fours = [tuple(words[place : place + 4]) for place in range(len(words) - 3)]
            assert len(fours) == len(set(fours))
            assert "\n" not in final.text
            assert len(re.findall(r"[.!?…][\"')*\]]*\s", final.text)) < 2


async def test_a_seed_makes_it_repeatable(model: LocalModel) -> None:
    prompt = Prompt("Who are you?", sampling=Sampling(temperature=0.6, seed=3), max_tokens=12)
    await model.load(lambda _: None)
    try:
        first, second = [[item async for item in model.generate(prompt) if item] for _ in range(2)]
    finally:
        await model.unload()
    assert first == second
