"""aioresult, cancelled everywhere: results of tasks, with who waits for them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
from aioresult import Future, ResultCapture, results_to_channel, wait_all, wait_any

from footlights_kit import cancel_everywhere

if TYPE_CHECKING:
    from footlights_kit import Trial

pytestmark = pytest.mark.others


async def doubled(number: int) -> int:
    await trio.sleep(number)
    return 2 * number


def test_every_task_has_a_result_when_its_nursery_has_ended_whatever_was_cancelled() -> None:
    async def scenario(trial: Trial) -> None:
        results: list[ResultCapture[int]] = []
        with trial.part() as part:
            async with trio.open_nursery() as nursery:
                results += [ResultCapture.start_soon(nursery, doubled, number) for number in range(3)]
                await wait_all(results)
        for number, result in enumerate(results):
            assert result.is_done()
            if not part.cancelled_caught:
                assert result.result() == 2 * number
            else:
                assert isinstance(result.exception(), trio.Cancelled | None)

    assert cancel_everywhere(scenario, pairs=20).points > 20


def test_who_waits_for_a_future_may_be_cancelled_and_the_others_get_it() -> None:
    async def scenario(trial: Trial) -> None:
        future: Future[str] = Future()

        async def setter() -> None:
            await trio.sleep(1)
            future.set_result("done")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(setter)
            with trial.part():
                await future.wait_done()
            with trio.fail_after(2):
                await future.wait_done()
        assert future.result() == "done"

    assert cancel_everywhere(scenario, pairs=10).points > 5


def test_waiting_for_any_leaves_no_task() -> None:
    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            results = [ResultCapture.start_soon(nursery, doubled, number) for number in (3, 1, 2)]
            assert (await wait_any(results)).result() == 2

    assert cancel_everywhere(scenario).points > 20


def test_results_that_come_through_a_channel_close_it() -> None:
    async def scenario() -> None:
        send, receive = trio.open_memory_channel[ResultCapture[int]](0)
        async with trio.open_nursery() as nursery, receive:
            results = [ResultCapture.start_soon(nursery, doubled, number) for number in range(3)]
            nursery.start_soon(partial(results_to_channel, results, send))
            assert [result.result() async for result in receive] == [0, 2, 4]

    assert cancel_everywhere(scenario).points > 20
