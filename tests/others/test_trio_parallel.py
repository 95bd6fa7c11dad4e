"""trio-parallel, cancelled everywhere: work in other processes, which are really waited for."""

from __future__ import annotations

import operator
from functools import partial

import pytest
import trio
import trio_parallel

from footlights_kit import cancel_everywhere

pytestmark = pytest.mark.others


async def calculated() -> None:
    async with trio_parallel.open_worker_context() as context:
        assert await context.run_sync(operator.add, 1, 2, cancellable=True) == 3


def test_a_worker_is_ended_with_its_context() -> None:
    assert cancel_everywhere(calculated, orders=1).points > 5


def test_tokens_of_the_limiter_come_back() -> None:
    async def scenario() -> None:
        limiter = trio.CapacityLimiter(1)
        async with trio_parallel.open_worker_context() as context, trio.open_nursery() as nursery:
            for number in range(2):
                nursery.start_soon(partial(context.run_sync, operator.neg, number, cancellable=True, limiter=limiter))

    assert cancel_everywhere(scenario, orders=1).points > 5
