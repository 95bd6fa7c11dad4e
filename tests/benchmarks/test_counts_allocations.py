"""Allocation meter: counts temporary allocations of our code, and neither its own nor those of other code."""

from __future__ import annotations

import copy
import sys
from typing import TYPE_CHECKING, Any

import pytest

from footlights_bench.counts.allocations import calibrated_meter

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


def allocations_of(function: Callable[[int], object], number: int) -> int:
    meter = calibrated_meter(__file__.__eq__)
    with meter.learning():
        start(function, number)
    with meter.running():
        start(function, number)
    return meter.allocations


def start(function: Callable[[int], object], number: int) -> None:
    function(number)


def take_nothing(number: int) -> int:
    return number


def call_what_takes_nothing(number: int) -> None:
    for _ in range(number):
        take_nothing(number)


def take_and_give_back(number: int) -> None:
    for _ in range(number):
        _waste: list[object] = [[], {}, (number, number)]


def take_in_a_call(number: int) -> None:
    for _ in range(number):
        make_one(number, number)


def make_one(*arguments: int) -> list[int]:
    return [arguments[0]]


def let_a_stranger_work(number: int) -> None:
    for _ in range(number):
        given = [number]
        copy.deepcopy(given)


def generate(number: int) -> Generator[list[int]]:
    for _ in range(number):
        yield [number]


def go_through_a_generator(number: int) -> None:
    for _ in generate(number):
        pass


def fail_each_time(number: int) -> None:
    for _ in range(number):
        try:
            raise_one()
        except LookupError:
            take_nothing(number)


def raise_one() -> None:
    raise LookupError


@pytest.mark.parametrize(
    ("function", "each"),
    [
        (take_nothing, 0),
        (call_what_takes_nothing, 0),
        (take_and_give_back, 5),  # four objects, and the items of the outer list
        (take_in_a_call, 3),  # the tuple of arguments, the list and its items
        (let_a_stranger_work, 4),  # two lists and their items, and nothing of what it took to copy one
        (go_through_a_generator, 2),
    ],
)
def test_every_iteration_costs_its_allocations(function: Callable[[int], object], each: int) -> None:
    assert allocations_of(function, 150) - allocations_of(function, 50) == 100 * each


def test_an_exception_is_counted_without_its_traceback() -> None:
    assert (
        allocations_of(fail_each_time, 150) - allocations_of(fail_each_time, 50) == 100 * 3
    )  # itself, and two steps of its way


def test_an_earlier_trace_function_is_restored() -> None:
    def follower(*_: Any) -> None: ...

    before = sys.gettrace()
    sys.settrace(follower)
    try:
        allocations_of(take_nothing, 1)
        assert sys.gettrace() is follower
    finally:
        sys.settrace(before)
