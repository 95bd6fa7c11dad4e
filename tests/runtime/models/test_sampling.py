"""Sampling: checked when it is made, and merged field by field."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import fields

from footlights import InvalidCommand, Sampling
from footlights.models.sampling import NO_SAMPLING

SOME: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "min_p": 0.1,
    "repeat_penalty": 1.1,
    "frequency_penalty": -0.2,
    "stop": ("\n",),
    "seed": 7,
    "max_tokens": 60,
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -0.1},
        {"temperature": 2.1},
        {"temperature": float("nan")},
        {"temperature": True},
        {"temperature": "1"},
        {"top_p": 1.1},
        {"min_p": -1},
        {"repeat_penalty": 0},
        {"frequency_penalty": 3},
        {"stop": "END"},
        {"stop": 5},
        {"stop": [""]},
        {"stop": ["x" * 101]},
        {"stop": ["a"] * 5},
        {"stop": ["secret", 5]},
        {"stop": ["secret \ud83d"]},
        {"seed": -1},
        {"seed": 2**31},
        {"seed": 1.0},
        {"max_tokens": 0},
        {"max_tokens": True},
    ],
)
def test_what_makes_no_sense_is_refused_and_not_quoted(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidCommand, match=next(iter(wrong))) as refusal:
        Sampling(**wrong)
    assert "secret" not in str(refusal.value)


def test_the_ends_of_each_range_belong_to_it() -> None:
    Sampling(temperature=0, top_p=0, min_p=0, repeat_penalty=0.5, frequency_penalty=-2, stop=[], seed=0, max_tokens=1)
    Sampling(temperature=2, top_p=1, min_p=1, repeat_penalty=2, frequency_penalty=2, stop=["a"] * 4, seed=2**31 - 1)


@pytest.mark.parametrize("name", [each.name for each in fields(Sampling)])
def test_the_more_specific_wins_field_by_field(name: str) -> None:
    general = Sampling(**SOME)
    zero: dict[str, Any] = {"stop": (), "repeat_penalty": 1, "max_tokens": 1}
    specific = Sampling(**{name: zero.get(name, 0)})
    merged = specific.over(general)
    for each in fields(Sampling):
        winner = specific if each.name == name else general
        assert getattr(merged, each.name) == getattr(winner, each.name)
    assert general.over(specific) == general


def test_no_settings_change_nothing() -> None:
    some = Sampling(**SOME)
    assert some.over(NO_SAMPLING) == some
    assert NO_SAMPLING.over(some) == some
    assert hash(some) == hash(Sampling(**{**SOME, "stop": ["\n"]}))
