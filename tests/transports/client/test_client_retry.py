"""Retry: a client reconnects at once, then after growing waits, and gives up when its patience is exhausted."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import Busy, InvalidCommand
from footlights_transports import ConnectionLost, Retry
from footlights_transports.client.retry import STABLE_SECONDS, Backoff

if TYPE_CHECKING:
    from trio.testing import MockClock


def test_each_wait_is_twice_the_one_before_up_to_the_longest() -> None:
    assert list(islice(Retry(first=1, longest=5).waits(), 5)) == [1, 2, 4, 5, 5]


def test_jitter_comes_from_the_host_and_only_shortens() -> None:
    chances = iter((0.0, 1.0, 0.5))
    assert list(islice(Retry(first=1, longest=1, jitter=lambda: next(chances)).waits(), 3)) == [1, 0.5, 0.75]


@pytest.mark.parametrize(("first", "longest", "patience"), [(0, 1, 1), (2, 1, 1), (1, 1, -1), (float("nan"), 1, 1)])
def test_impossible_values_are_refused(first: float, longest: float, patience: float) -> None:
    with pytest.raises(InvalidCommand):
        Retry(first=first, longest=longest, patience=patience)


async def waits_of(backoff: Backoff, count: int, *, attempt: float = 0) -> list[float]:
    """The wait after each of `count` losses in a row; every attempt takes `attempt` seconds."""
    waits: list[float] = []
    for _ in range(count):
        await trio.sleep(attempt)
        began = trio.current_time()
        await backoff.wait_after(ConnectionLost("Gone."))
        waits.append(trio.current_time() - began)
    return waits


async def test_after_a_success_the_waits_begin_anew(autojump_clock: MockClock) -> None:
    backoff = Backoff(Retry(first=1, longest=4, patience=10))
    assert await waits_of(backoff, 4) == [0, 1, 2, 4]
    backoff.reset()
    assert await waits_of(backoff, 4) == [0, 1, 2, 4]


async def test_an_answer_renews_patience_but_not_the_waits(autojump_clock: MockClock) -> None:
    backoff = Backoff(Retry(first=1, longest=4, patience=1))
    for wait in (0, 1, 2, 4, 4, 4):
        assert await waits_of(backoff, 1) == [wait]
        backoff.answered()


@pytest.mark.parametrize(("stood", "next_wait"), [(STABLE_SECONDS, 0), (STABLE_SECONDS - 1, 4)])
async def test_a_stable_connection_ends_the_series_of_losses(
    autojump_clock: MockClock, stood: float, next_wait: float
) -> None:
    backoff = Backoff(Retry(first=1, longest=4))
    await waits_of(backoff, 3)
    backoff.connected()
    await trio.sleep(stood)
    assert await waits_of(backoff, 1) == pytest.approx([next_wait])


async def test_after_giving_up_there_is_patience_again(autojump_clock: MockClock) -> None:
    backoff = Backoff(Retry(first=1, longest=1, patience=0.5))
    for _ in range(2):
        assert await waits_of(backoff, 2) == [0, 1]
        with pytest.raises(ConnectionLost):
            await waits_of(backoff, 1)


async def test_giving_up_raises_the_last_error(autojump_clock: MockClock) -> None:
    backoff = Backoff(Retry(first=1, longest=1, patience=3.5))
    assert await waits_of(backoff, 5) == [0, 1, 1, 1, 1]
    with pytest.raises(Busy, match="the sixth"):
        await backoff.wait_after(Busy("the sixth"))


async def test_the_time_that_attempts_take_counts_as_patience_too(autojump_clock: MockClock) -> None:
    backoff = Backoff(Retry(first=1, longest=1, patience=35))
    await waits_of(backoff, 4, attempt=10)
    with pytest.raises(ConnectionLost):
        await waits_of(backoff, 1, attempt=10)


async def test_a_loss_is_told_when_the_first_attempt_fails_and_once(autojump_clock: MockClock) -> None:
    told: list[bool] = []
    backoff = Backoff(Retry(first=1, longest=4, patience=10, tell=told.append))
    await backoff.wait_after(ConnectionLost("Gone."))
    backoff.connected()
    assert told == []
    await backoff.wait_after(Busy("Not now."))
    assert told == []
    await waits_of(backoff, 2)
    assert told == [False]
    backoff.connected()
    backoff.connected()
    assert told == [False, True]
