"""A client that lost its server tries again at once, then less and less often, and gives up in the end."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import Busy, InvalidCommand, UnknownTurn
from footlights_transports.client.client import ConnectionLost, Retry
from footlights_transports.client.retry import A_WHILE, Losses

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


async def test_the_time_that_attempts_take_counts_as_patience_too(autojump_clock: MockClock) -> None:
    attempts = 0

    async def attempt() -> None:
        nonlocal attempts
        attempts += 1
        await trio.sleep(10)
        raise ConnectionLost("Not in time.")

    with pytest.raises(ConnectionLost):
        await Retry(first=1, longest=1, patience=35).until_done(attempt)
    assert attempts == 5  # begun at 0, 10, 21, 32 and 43


async def losses_in_a_row(losses: Losses, count: int) -> list[float]:
    """How long each wait was."""
    waits: list[float] = []
    for _ in range(count):
        began = trio.current_time()
        await losses.wait_after(ConnectionLost("Gone."))
        waits.append(trio.current_time() - began)
    return waits


async def test_after_something_worked_all_begins_anew(autojump_clock: MockClock) -> None:
    losses = Losses(Retry(first=1, longest=4, patience=10))
    assert await losses_in_a_row(losses, 4) == [0, 1, 2, 4]
    losses.forget()
    assert await losses_in_a_row(losses, 4) == [0, 1, 2, 4]


async def test_a_server_that_answers_is_not_given_up_but_asked_no_sooner(autojump_clock: MockClock) -> None:
    losses = Losses(Retry(first=1, longest=4, patience=1))
    for wait in (0, 1, 2, 4, 4, 4):
        assert await losses_in_a_row(losses, 1) == [wait]
        losses.answered()


@pytest.mark.parametrize(("stood", "next_wait"), [(A_WHILE, 0), (A_WHILE - 1, 4)])
async def test_a_connection_that_stood_for_a_while_was_a_good_one(
    autojump_clock: MockClock, stood: float, next_wait: float
) -> None:
    losses = Losses(Retry(first=1, longest=4))
    await losses_in_a_row(losses, 3)
    losses.connected()
    await trio.sleep(stood)
    assert await losses_in_a_row(losses, 1) == pytest.approx([next_wait])


async def test_after_giving_up_there_is_patience_again(autojump_clock: MockClock) -> None:
    losses = Losses(Retry(first=1, longest=1, patience=0.5))
    for _ in range(2):
        assert await losses_in_a_row(losses, 2) == [0, 1]
        with pytest.raises(ConnectionLost):
            await losses_in_a_row(losses, 1)


async def test_what_will_not_pass_is_raised_at_once() -> None:
    async def attempt() -> None:
        raise UnknownTurn("No such turn.")

    with pytest.raises(UnknownTurn):
        await Retry().until_done(attempt)
