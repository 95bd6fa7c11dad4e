"""A client that lost its server tries again at once, then less and less often, and gives up in the end."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import Busy, InvalidCommand, UnknownTurn
from footlights_transports.client import ConnectionLost, Retry

if TYPE_CHECKING:
    from trio.testing import MockClock


def test_each_wait_is_twice_the_one_before_up_to_the_longest() -> None:
    assert list(islice(Retry(first=1, longest=5).waits(), 5)) == [1, 2, 4, 5, 5]


def test_jitter_comes_from_whoever_brings_it_and_only_shortens() -> None:
    chances = iter((0.0, 1.0, 0.5))
    assert list(islice(Retry(first=1, longest=1, jitter=lambda: next(chances)).waits(), 3)) == [1, 0.5, 0.75]


@pytest.mark.parametrize(("first", "longest", "patience"), [(0, 1, 1), (2, 1, 1), (1, 1, -1), (float("nan"), 1, 1)])
def test_what_makes_no_sense_is_refused(first: float, longest: float, patience: float) -> None:
    with pytest.raises(InvalidCommand):
        Retry(first=first, longest=longest, patience=patience)


async def test_it_is_tried_until_it_works(autojump_clock: MockClock) -> None:
    at: list[float] = []
    began = trio.current_time()

    async def attempt() -> int:
        at.append(trio.current_time() - began)
        if len(at) < 5:
            raise ConnectionLost("Nobody there.")
        return 7

    assert await Retry(first=1, longest=3).until_done(attempt) == 7
    assert at == pytest.approx([0, 0, 1, 3, 6])


async def test_it_is_given_up_when_patience_is_over_with_the_last_error(autojump_clock: MockClock) -> None:
    attempts = 0

    async def attempt() -> None:
        nonlocal attempts
        attempts += 1
        raise Busy(f"attempt {attempts}")

    with pytest.raises(Busy, match="attempt 6"):
        await Retry(first=1, longest=1, patience=3.5).until_done(attempt)


async def test_what_will_not_pass_is_raised_at_once() -> None:
    async def attempt() -> None:
        raise UnknownTurn("No such turn.")

    with pytest.raises(UnknownTurn):
        await Retry().until_done(attempt)
