"""Limits refuse every value that would make a queue unbounded or useless."""

from __future__ import annotations

from math import inf, nan

import attrs
import pytest

from footlights import Limits, RegistrationError

COUNTS = [each.name for each in attrs.fields(Limits) if isinstance(each.default, int)]
SECONDS = [each.name for each in attrs.fields(Limits) if isinstance(each.default, float)]
MAY_BE_ZERO = {"max_queued_turns", "replay_bytes", "replay_bytes_per_session", "replay_sessions", "replay_turns"}


@pytest.mark.shows("core-76")
def test_the_requirements_own_limits_have_their_names_and_values() -> None:
    limits = Limits()
    assert limits.best_effort_max_events_per_turn == 256
    assert limits.bounded_max_events_per_turn == 128
    assert limits.max_bytes_per_turn_queue == 1_000_000


def test_all_the_text_of_a_turn_fits_into_a_queue() -> None:
    limits = Limits()
    assert limits.max_turn_text_bytes < limits.max_bytes_per_turn_queue


@pytest.mark.parametrize("name", COUNTS)
def test_a_count_has_a_least_value_and_takes_it(name: str) -> None:
    least = 0 if name in MAY_BE_ZERO else 1
    assert getattr(Limits(**{name: least}), name) == least
    with pytest.raises(RegistrationError, match=rf"{name} is {least - 1}; it must be at least {least}\."):
        Limits(**{name: least - 1})


@pytest.mark.parametrize("name", SECONDS)
@pytest.mark.parametrize("value", [0.0, 0.001, inf])
def test_a_time_may_be_anything_from_nothing_to_for_ever(name: str, value: float) -> None:
    assert getattr(Limits(**{name: value}), name) == value  # type: ignore[arg-type]  # chosen by name


@pytest.mark.parametrize("name", SECONDS)
@pytest.mark.parametrize("value", [-0.001, -inf, nan])
def test_a_time_is_never_negative_nor_unknown(name: str, value: float) -> None:
    with pytest.raises(RegistrationError, match=name):
        Limits(**{name: value})  # type: ignore[arg-type]  # chosen by name


def test_a_time_of_zero_may_be_written_without_a_point() -> None:
    assert Limits(tool_cancel_grace=0).tool_cancel_grace == 0


def test_a_count_below_one_is_refused_however_it_is_written() -> None:
    with pytest.raises(RegistrationError):
        Limits(max_sessions=0.5)  # type: ignore[arg-type]  # what an untyped host may do


def test_limits_cannot_change() -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Limits().replay_turns = 5  # type: ignore[misc]  # that is the point


def test_no_more_turns_are_retained_than_clients_remember() -> None:
    assert Limits(replay_turns=512).replay_turns == 512
    with pytest.raises(RegistrationError, match=r"replay_turns is 513; it must be at most 512\."):
        Limits(replay_turns=513)
