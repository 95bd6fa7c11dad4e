"""trio-util, cancelled everywhere: values that are waited for, races, and generators with a nursery inside."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
from trio_util import AsyncValue, RepeatedEvent, move_on_when, trio_async_generator, wait_all, wait_any

from footlights_kit import cancel_everywhere

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from footlights_kit import Trial

pytestmark = pytest.mark.others


def test_a_waiter_that_is_cancelled_leaves_a_value_that_others_still_get() -> None:
    async def scenario(trial: Trial) -> None:
        value = AsyncValue(0)

        async def counting() -> None:
            for number in range(1, 4):
                await trio.sleep(1)
                value.value = number

        async with trio.open_nursery() as nursery:
            nursery.start_soon(counting)
            nursery.start_soon(partial(value.wait_value, 3))
            with trial.part():
                await value.wait_value(lambda number: number > 1, held_for=0.5)
            assert await value.wait_value(3) == 3

    assert cancel_everywhere(scenario, pairs=20).points > 10


def test_a_race_leaves_no_task() -> None:
    async def scenario() -> None:
        await wait_any(partial(trio.sleep, 1), partial(trio.sleep, 2))
        await wait_all(partial(trio.sleep, 1), partial(trio.sleep, 2))
        async with move_on_when(trio.sleep, 1):
            await trio.sleep(5)

    assert cancel_everywhere(scenario).points > 20


def test_a_generator_with_a_nursery_inside_is_ended() -> None:
    @trio_async_generator
    async def ticks() -> AsyncGenerator[int]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            for number in range(3):
                await trio.sleep(1)
                yield number
            nursery.cancel_scope.cancel()

    async def scenario() -> None:
        async with ticks() as each:
            async for _ in each:
                await trio.sleep(1)

    assert cancel_everywhere(scenario).points > 20


def test_an_event_that_repeats_reaches_who_was_not_cancelled() -> None:
    async def scenario(trial: Trial) -> None:
        event = RepeatedEvent()

        async def repeating() -> None:
            for _ in range(3):
                await trio.sleep(1)
                event.set()

        async def listener() -> None:
            for _ in range(3):
                await event.wait()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(repeating)
            nursery.start_soon(listener)
            with trial.part():
                await event.wait()

    assert cancel_everywhere(scenario, pairs=20).points > 3
