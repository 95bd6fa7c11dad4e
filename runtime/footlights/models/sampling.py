"""Sampling: how a model chooses its tokens, and when it stops.

A turn, its persona and its model may each have settings. They are merged field by field, and the more specific wins:

    params.sampling.over(persona.sampling).over(model.traits.sampling)

A driver ignores a setting that its interface does not have. The docs of each driver name those.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import cast

from attrs import field, fields, frozen

from footlights.errors import InvalidCommand

DEFAULT_TEMPERATURE = 0.7
"""The temperature if neither the turn nor its persona nor its model has one."""
MAX_STOPS = 4
"""OpenAI takes no more."""
MAX_STOP_CHARS = 100
MAX_WHOLE = 2**31 - 1
"""Of seeds and tokens: llama.cpp takes no more."""


def _stops(value: object) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidCommand("stop must be a list of texts.")
    stops = tuple(cast("Iterable[str]", value))
    if len(stops) > MAX_STOPS or not all(_is_stop(each) for each in stops):
        raise InvalidCommand(f"stop must be at most {MAX_STOPS} texts of 1 to {MAX_STOP_CHARS} characters.")
    return stops


def _is_stop(text: object) -> bool:
    if type(text) is not str or not 0 < len(text) <= MAX_STOP_CHARS:
        return False
    return all(not 0xD800 <= ord(character) <= 0xDFFF for character in text)


@frozen(kw_only=True)
class Sampling:
    """Settings of one turn, persona or model; None where it has none. Raises `InvalidCommand` for an invalid one."""

    temperature: float | None = None
    """Randomness, 0 to 2; 0 takes the likeliest token."""
    top_p: float | None = None
    """Only the likeliest tokens with this probability together are candidates, 0 to 1."""
    min_p: float | None = None
    """Only tokens with at least this share of the likeliest one's probability are candidates, 0 to 1."""
    repeat_penalty: float | None = None
    """Divides the score of tokens that occurred recently, 0.5 to 2; 1 is none."""
    frequency_penalty: float | None = None
    """Lowers the score of a token by each time that it occurred, -2 to 2; 0 is none."""
    stop: tuple[str, ...] | None = field(default=None, converter=_stops)
    """Texts at which a round ends, at most 4. They are not part of the answer."""
    seed: int | None = None
    """Makes the choice repeatable, where the model can: 0 to 2147483647."""
    max_tokens: int | None = None
    """Maximum output tokens of the turn, within the budget of its tier."""

    def __attrs_post_init__(self) -> None:
        _check_number("temperature", self.temperature, 0, 2)
        _check_number("top_p", self.top_p, 0, 1)
        _check_number("min_p", self.min_p, 0, 1)
        _check_number("repeat_penalty", self.repeat_penalty, 0.5, 2)
        _check_number("frequency_penalty", self.frequency_penalty, -2, 2)
        _check_whole("seed", self.seed, 0, MAX_WHOLE)
        _check_whole("max_tokens", self.max_tokens, 1, MAX_WHOLE)

    def over(self, general: Sampling) -> Sampling:
        """These settings, and those of `general` where this one has none."""
        own = {each.name: getattr(self, each.name) for each in fields(Sampling)}
        return Sampling(**{name: getattr(general, name) if value is None else value for name, value in own.items()})


def _check_number(name: str, value: object, least: float, most: float) -> None:
    is_number = type(value) in (int, float) and isfinite(cast("float", value))
    if value is not None and not (is_number and least <= cast("float", value) <= most):
        raise InvalidCommand(f"{name} must be a number from {least:g} to {most:g}.")


def _check_whole(name: str, value: object, least: int, most: int) -> None:
    if value is not None and (type(value) is not int or not least <= value <= most):
        raise InvalidCommand(f"{name} must be a whole number from {least} to {most}.")


NO_SAMPLING = Sampling()
"""No settings at all."""
DEFAULT_SAMPLING = Sampling(temperature=DEFAULT_TEMPERATURE)
"""The settings where neither the turn nor its persona nor its model has one."""
