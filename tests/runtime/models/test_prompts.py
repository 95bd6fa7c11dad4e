"""Prompts: parts that do not fit are left out in a stated order, and earlier chat is never included."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from footlights import (
    Fact,
    Persona,
    Prompt,
    PromptTooLarge,
    RegistrationError,
    ToolExchange,
    ToolOffer,
    ToolRequest,
    ToolRound,
)
from footlights.models.prompts import fitted

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import JsonValue

FACTS = [Fact("purse", "20 coins"), Fact("weather", "rain"), Fact("rumour", "a dragon " * 20)]
SMALL = Prompt("A room?", system="You keep the inn.", max_tokens=10)


def answered(*values: JsonValue) -> ToolRound:
    return ToolRound("Let me see.", tuple(ToolExchange(ToolRequest("look", {}), value) for value in values))


def told(prompt: Prompt) -> list[JsonValue]:
    return [each.value for each in prompt.exchanges]


@pytest.mark.shows("feed-39")
def test_facts_follow_the_persona_in_the_order_of_the_host() -> None:
    assert fitted(SMALL, FACTS[:2], None).system == "You keep the inn.\npurse: 20 coins\nweather: rain"


@pytest.mark.parametrize(
    "make",
    [
        lambda: Persona(text="xyzzy \ud800"),
        lambda: Fact("purse", "xyzzy \ud800"),
        lambda: Fact("xyzzy \ud800", "20 coins"),
    ],
)
def test_what_no_model_could_be_told_is_refused_where_it_is_made_and_not_quoted(make: Callable[[], object]) -> None:
    with pytest.raises(RegistrationError, match="not valid Unicode") as refusal:
        make()
    assert (refusal.value.__cause__, refusal.value.__context__) == (None, None)
    assert "xyzzy" not in str(refusal.value)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Fact("x", cast("str", 3)), "The text of a fact must be a string, and not int."),
        (lambda: Fact(cast("str", None), "x"), "The name of a fact must be a string, and not NoneType."),
        (lambda: Persona(text=cast("str", None)), "The text of a persona must be a string, and not NoneType."),
    ],
)
def test_what_is_not_text_is_refused_clearly(make: Callable[[], object], told: str) -> None:
    with pytest.raises(RegistrationError) as refusal:
        make()
    assert str(refusal.value) == told


def test_without_a_persona_the_facts_stand_alone() -> None:
    assert fitted(evolve(SMALL, system=""), FACTS[:1], None).system == "purse: 20 coins"
    assert fitted(evolve(SMALL, system=""), [], None).system == ""


def test_a_model_without_a_window_gets_everything() -> None:
    long = evolve(SMALL, user="x" * 100_000, rounds=(answered("y" * 100_000),))
    assert fitted(long, [], None) == long


def test_the_last_facts_are_left_out_first() -> None:
    systems = [fitted(SMALL, FACTS, tokens).system for tokens in (200, 100, 60)]
    assert [system.count(": ") for system in systems] == [3, 2, 1]
    assert all(system.startswith("You keep the inn.\npurse: 20 coins") for system in systems)


def test_then_the_oldest_answers_of_tools_and_it_is_still_told_that_they_were_asked() -> None:
    rounds = (answered("a" * 900, "b" * 900), answered("c" * 900))
    prompt = fitted(evolve(SMALL, rounds=rounds), FACTS[:1], 900)
    assert told(prompt) == [None, "b" * 900, "c" * 900]
    assert "left out" in str(prompt.exchanges[0].error)
    assert prompt.system == "You keep the inn."
    assert told(fitted(evolve(SMALL, rounds=rounds), [], 600)) == [None, None, "c" * 900]
    assert [each.said for each in prompt.rounds] == ["Let me see."] * 2


def test_answers_that_are_shorter_than_what_would_stand_for_them_stay() -> None:
    rounds = (answered(*[1] * 10), answered("x" * 900))
    prompt = fitted(evolve(SMALL, rounds=rounds), [], 600)
    assert told(prompt) == [1] * 10 + [None]


def test_digits_and_rare_characters_are_taken_to_cost_more_than_words() -> None:
    words, digits, rare = (Fact("it", text) for text in ("word " * 60, "1234567890" * 30, "\N{SNOWMAN}" * 100))
    assert fitted(SMALL, [words], 200).system != "You keep the inn."
    assert fitted(SMALL, [digits], 200).system == fitted(SMALL, [rare], 200).system == "You keep the inn."


def test_what_cannot_be_left_out_does_not_fit() -> None:
    with pytest.raises(PromptTooLarge):
        fitted(evolve(SMALL, user="x" * 1_000), FACTS, 200)
    offer = ToolOffer("look", "Look around. " * 100)
    with pytest.raises(PromptTooLarge):
        fitted(evolve(SMALL, tools=(offer,)), FACTS, 200)


@pytest.mark.shows("gateway-33")
def test_half_of_the_window_is_for_the_prompt_however_long_the_answer_may_be() -> None:
    assert fitted(evolve(SMALL, max_tokens=4_000), [], 200) == evolve(SMALL, max_tokens=4_000)


@given(st.lists(st.text(max_size=40)), st.integers(100, 400), st.text(max_size=10))  # a user who always fits
def test_a_prompt_always_has_a_prefix_of_the_facts(texts: list[str], window: int, user: str) -> None:
    facts = [Fact(str(number), text) for number, text in enumerate(texts)]
    lines = fitted(Prompt(user, system="-", max_tokens=10), facts, window).system
    assert any(
        lines == "\n".join(["-", *(f"{n}: {text}" for n, text in enumerate(texts[:kept]))]).strip()
        for kept in range(len(texts) + 1)
    )
