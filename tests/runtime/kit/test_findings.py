"""What an exploration finds without an assert, and what it does not suspect."""

from __future__ import annotations

import socket
from contextlib import aclosing, asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights_kit import (
    CancelSwallowed,
    CleanupCut,
    Diverged,
    ExplorationFailed,
    GraceExceeded,
    LocksHeld,
    ResourcesLeaked,
    Runaway,
    TasksLeaked,
    cancel_everywhere,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

    from footlights_kit import Trial
    from footlights_kit.trial import Scenario


def found(scenario: Scenario, **options: float) -> tuple[type[BaseException], str]:
    with pytest.raises(ExplorationFailed) as failed:
        cancel_everywhere(scenario, **options)  # type: ignore[arg-type]  # all options used here are numbers
    assert failed.value.__cause__ is not None
    return type(failed.value.__cause__), str(failed.value)


def test_a_task_that_catches_everything_is_ended_and_named() -> None:
    async def scenario() -> None:
        while True:
            with suppress(BaseException):
                await trio.sleep(1)

    kind, said = found(scenario, max_points=300)
    assert kind is Runaway
    assert "in scenario: await trio.sleep(1)" in said


def test_an_async_generator_that_cannot_be_closed_is_ended_and_named() -> None:
    async def endless() -> AsyncGenerator[int]:
        while True:
            with suppress(BaseException):
                await trio.sleep(1)
                yield 1

    async def scenario() -> None:
        async for _ in endless():
            await trio.sleep(1)
            return

    kind, said = found(scenario, max_points=300)
    assert kind is Runaway
    assert "in endless: await trio.sleep(1)" in said


def test_a_loop_of_retries_is_ended_long_before_the_limit() -> None:
    async def scenario() -> None:
        for _ in range(3):
            try:
                await trio.sleep(1)
            except trio.Cancelled:
                while True:
                    try:
                        await trio.sleep(1)
                    except trio.Cancelled:
                        continue

    assert found(scenario)[0] is Runaway


# -- swallowed


@pytest.mark.parametrize("allowed", [True, False])
def test_a_cancel_that_nothing_lets_through_is_swallowed(allowed: bool) -> None:
    async def scenario() -> None:
        with suppress(trio.Cancelled):
            await trio.sleep(1)

    if allowed:
        assert cancel_everywhere(scenario, allow=[CancelSwallowed]).points > 1
    else:
        kind, said = found(scenario)
        assert kind is CancelSwallowed
        assert "in scenario: await trio.sleep(1)" in said


def test_a_child_that_swallows_is_found_in_the_part_that_is_cancelled() -> None:
    async def child() -> None:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            return

    async def scenario(trial: Trial) -> None:
        with trial.part():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(child)
                nursery.cancel_scope.deadline = trio.current_time() + 1

    kind, said = found(scenario, pairs=0)
    assert kind is CancelSwallowed
    assert "child#0" in said


def test_a_cancel_that_a_scope_inside_caught_was_not_swallowed() -> None:
    async def scenario() -> None:
        for _ in range(3):
            with trio.move_on_after(1):
                await trio.sleep(2)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 5)
            await trio.sleep(1)
            nursery.cancel_scope.cancel()

    assert cancel_everywhere(scenario).points > 10


# -- cleanup


@asynccontextmanager
async def connected(goodbye: Callable[[], Awaitable[object]]) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        await goodbye()


def test_cleanup_that_awaits_without_a_shield_is_cut() -> None:
    async def scenario() -> None:
        async with connected(partial(trio.sleep, 1)):
            await trio.sleep(1)

    kind, said = found(scenario)
    assert kind is CleanupCut
    assert "in connected: await goodbye()" in said
    assert "in scenario: await trio.sleep(1)" in said


def test_cleanup_in_a_shield_and_closing_of_streams_are_not_suspected() -> None:
    async def shielded() -> None:
        with trio.move_on_after(1, shield=True):
            await trio.sleep(0.5)

    async def scenario() -> None:
        left, right = trio.testing.memory_stream_pair()
        send, receive = trio.open_memory_channel[int](1)
        async with left, right, send, receive, connected(shielded), connected(trio.lowlevel.checkpoint):
            await send.send(1)
            await receive.receive()
            await trio.sleep(1)

    assert cancel_everywhere(scenario).points > 5


# -- what is left behind


class Kept:
    """What keeps a thing alive after the run."""

    things: list[object] = []  # noqa: RUF012 - the point


def test_a_lock_a_semaphore_and_a_token_that_are_not_given_back_are_found() -> None:
    async def scenario(acquire: Callable[[], Awaitable[object]], release: Callable[[], object]) -> None:
        await acquire()
        await trio.sleep(1)
        release()

    async def of_lock() -> None:
        lock = trio.Lock()
        await scenario(lock.acquire, lock.release)

    async def of_semaphore() -> None:
        semaphore = trio.Semaphore(2)
        await scenario(semaphore.acquire, semaphore.release)

    async def of_limiter() -> None:
        limiter = trio.CapacityLimiter(2)
        await scenario(limiter.acquire, limiter.release)

    for each in (of_lock, of_semaphore, of_limiter):
        kind, said = found(each)
        assert kind is LocksHeld
        assert "in scenario: await trio.sleep(1)" in said


def test_a_token_that_is_held_for_something_else_than_a_task_is_found() -> None:
    async def scenario() -> None:
        limiter, connection = trio.CapacityLimiter(1), object()
        await limiter.acquire_on_behalf_of(connection)
        await trio.sleep(1)
        limiter.release_on_behalf_of(connection)

    kind, said = found(scenario)
    assert kind is LocksHeld
    assert "in scenario: await trio.sleep(1)" in said


def test_a_task_that_is_a_function_of_trio_is_named_with_the_line_of_its_nursery() -> None:
    async def scenario() -> None:
        with suppress(BaseException):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.sleep, 1)

    kind, said = found(scenario)
    assert kind is CancelSwallowed
    assert "trio.sleep#0 in a nursery at" in said
    assert "in scenario: async with trio.open_nursery()" in said
    assert "_timeouts.py" not in said


def test_a_semaphore_that_is_a_signal_is_not_suspected() -> None:
    async def scenario() -> None:
        tickets = trio.Semaphore(3)
        for _ in range(3):
            await tickets.acquire()
            await trio.sleep(1)

    assert cancel_everywhere(scenario).points > 3


def test_a_file_that_something_keeps_open_is_found_and_a_cache_is_not(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    cache: list[object] = []

    async def scenario(kept: list[object], most: int) -> None:
        if len(kept) < most:
            kept.append(path.open())
        await trio.sleep(1)

    assert cancel_everywhere(partial(scenario, cache, 1)).points > 1
    leaking: list[object] = []
    try:
        kind, said = found(partial(scenario, leaking, 1000))
    finally:
        for each in (*cache, *leaking):
            each.close()  # type: ignore[attr-defined]
    assert kind is ResourcesLeaked
    assert str(path) in said


def test_a_socket_that_is_dropped_is_found() -> None:
    async def scenario() -> None:
        made = socket.socket()
        await trio.sleep(1)
        made.close()

    kind, said = found(scenario)
    assert kind is ResourcesLeaked
    assert "unclosed <socket.socket" in said
    assert "in scenario: await trio.sleep(1)" in said


def test_an_async_generator_that_is_left_is_found_and_a_closed_one_is_not() -> None:
    async def numbers() -> AsyncGenerator[int, None]:
        for number in range(5):
            yield number

    async def left() -> None:
        async for _ in numbers():
            await trio.sleep(1)

    async def closed() -> None:
        async with aclosing(numbers()) as each:
            async for _ in each:
                await trio.sleep(1)

    kind, said = found(left)
    assert kind is ResourcesLeaked
    assert "sync generator" in said
    assert "in left: await trio.sleep(1)" in said
    assert cancel_everywhere(closed).points > 5


def test_a_leaked_task_is_named_with_its_line() -> None:
    async def scenario() -> None:
        trio.lowlevel.spawn_system_task(trio.sleep, 5, name="left behind")
        await trio.sleep(1)

    kind, said = found(scenario)
    assert kind is TasksLeaked
    assert "left behind#0 at " in said


# -- time


def test_a_shield_that_takes_longer_than_the_grace_fails_and_says_where() -> None:
    async def scenario() -> None:
        try:
            await trio.sleep(1)
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(40)

    kind, said = found(scenario)
    assert kind is GraceExceeded
    assert "more than 30 virtual seconds after the cancel" in said
    assert "in scenario: await trio.sleep(40)" in said
    assert cancel_everywhere(scenario, grace=60).points > 2


# -- large scenarios


async def large() -> None:
    for _ in range(30):
        await trio.sleep(1)
        await trio.lowlevel.checkpoint()
    await trio.sleep(1)


def test_a_budget_visits_a_point_for_each_line_first_and_says_how_far_it_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0

    def monotonic() -> float:
        nonlocal now
        now += 1
        return now

    monkeypatch.setattr("footlights_kit.explorer.time.monotonic", monotonic)
    part = cancel_everywhere(large, orders=2, budget=5)
    assert (part.points, part.all_points) == (4, 2 * 93)
    assert (part.lines, part.all_lines) == (3, 3)
    assert str(part).startswith("4 of 186 points, 3 of 3 lines, ")
    whole = cancel_everywhere(large, orders=1, budget=1e9)
    assert whole.points == whole.all_points


def test_ten_thousand_points_are_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        for _ in range(10_000):
            await trio.lowlevel.checkpoint()

    monkeypatch.setattr("footlights_kit.explorer.time.monotonic", iter(range(100)).__next__)
    assert cancel_everywhere(scenario, orders=1, budget=2).all_points >= 10_000


def test_a_bug_that_needs_three_cancels_is_found_by_triples_alone() -> None:
    async def scenario(trial: Trial) -> None:
        cancels: list[int] = []
        trial.aim(lambda: cancels.append(1))
        for _ in range(3):
            await trio.sleep(1)
        assert len(cancels) < 3

    assert cancel_everywhere(scenario, orders=1).pairs > 5
    with pytest.raises(ExplorationFailed) as failed:
        cancel_everywhere(scenario, orders=1, triples=5)
    assert failed.value.replay.count(",") == 2


def test_a_failure_is_shrunk_to_the_fewest_cancels() -> None:
    runs = 0

    async def scenario(trial: Trial) -> None:
        nonlocal runs
        runs += 1
        cancels: list[int] = []
        trial.aim(lambda: cancels.append(1))
        await trio.sleep(1)
        await trio.sleep(1)
        assert not cancels or runs < 10

    with pytest.raises(ExplorationFailed) as failed:
        cancel_everywhere(scenario, orders=1)
    assert "," not in failed.value.replay


def test_a_partial_replays_by_its_own_name() -> None:
    async def scenario(seconds: float, *, word: str) -> None:
        await trio.sleep(seconds)
        raise LookupError(word)

    with pytest.raises(ExplorationFailed) as failed:
        cancel_everywhere(partial(scenario, 1, word="x"))
    assert "To replay: cancel_everywhere(partial(scenario, 1, word='x'), replay=\"order=0\")" in str(failed.value)


def test_a_divergence_shows_what_both_had_and_where_the_tasks_are() -> None:
    runs = 0

    async def scenario() -> None:
        nonlocal runs
        runs += 1
        await trio.sleep(1)
        await trio.sleep(runs)

    with pytest.raises(Diverged) as failed:
        cancel_everywhere(scenario, orders=1)
    said = str(failed.value)
    assert "Both had been at\n    1: idle at t=0\n" in said
    assert "main at tests/runtime/kit/test_findings.py:" in said


def test_the_traceback_of_a_failure_has_no_frame_of_the_kit_or_of_trio() -> None:
    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 1)
            raise LookupError("always")

    with pytest.raises(ExplorationFailed) as failed:
        cancel_everywhere(scenario)
    errors: list[BaseException | None] = [failed.value.__cause__]
    group = errors[0]
    assert isinstance(group, BaseExceptionGroup)
    for each in (group, *group.exceptions):
        traceback = each.__traceback__
        while traceback is not None:
            assert traceback.tb_frame.f_code.co_name == "scenario"
            traceback = traceback.tb_next
