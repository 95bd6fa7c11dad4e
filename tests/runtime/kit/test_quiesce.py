"""Worker threads keep step with virtual time."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights_kit.quiesce import Gate, quiesced_threads
from footlights_kit.verdicts import ThreadStuck

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

A_FEW_MS = 0.004
"""Real duration of the threads below: the promise is about threads that take real time."""

LONG = 60.0
"""Real seconds that a test would hang for, were the promise not kept."""


@pytest.fixture
def quiet() -> Iterator[list[ThreadStuck]]:
    with quiesced_threads(timeout=LONG) as stuck:
        yield stuck


def run(scenario: Callable[[], Awaitable[object]]) -> object:
    return trio.run(scenario, clock=trio.testing.MockClock(autojump_threshold=0))


async def timed_out_before_the_thread() -> bool:
    """Whether a timeout of a virtual millisecond wins against a thread that takes real ones."""
    with trio.move_on_after(0.001) as scope:
        await trio.to_thread.run_sync(threading.Event().wait, A_FEW_MS)
    return scope.cancel_called


def test_without_quiescing_the_clock_does_not_wait_for_a_thread() -> None:
    assert run(timed_out_before_the_thread) is True


def test_the_clock_waits_for_a_thread(quiet: list[ThreadStuck]) -> None:
    assert run(timed_out_before_the_thread) is False


async def test_it_can_be_entered_inside_a_run(autojump_clock: trio.testing.MockClock) -> None:
    assert await timed_out_before_the_thread() is True
    with quiesced_threads():
        assert await timed_out_before_the_thread() is False


async def test_a_plain_fixture_is_enough(quiet: list[ThreadStuck], autojump_clock: trio.testing.MockClock) -> None:
    assert await timed_out_before_the_thread() is False
    assert trio.current_time() < 0.001


async def test_an_inner_use_takes_over_from_an_outer_one(
    quiet: list[ThreadStuck], autojump_clock: trio.testing.MockClock
) -> None:
    with quiesced_threads():
        assert await timed_out_before_the_thread() is False
    assert await timed_out_before_the_thread() is False


async def test_another_clock_is_left_alone(quiet: list[ThreadStuck]) -> None:
    ours, theirs = trio.socket.socketpair()
    release = threading.Event()

    def call_and_wait() -> bool:
        os.write(theirs.fileno(), b"x")
        return release.wait(LONG)

    async def answer() -> None:
        await ours.recv(1)
        release.set()

    with ours, theirs:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer)
            await trio.testing.wait_all_tasks_blocked()
            assert await trio.to_thread.run_sync(call_and_wait)
    assert quiet == []


def test_a_thread_may_call_the_loop_while_it_is_awaited(quiet: list[ThreadStuck]) -> None:
    async def scenario() -> None:
        def work() -> float:
            before = trio.from_thread.run_sync(trio.current_time)
            trio.from_thread.run(trio.sleep, 5)
            return trio.from_thread.run_sync(trio.current_time) - before

        assert await trio.to_thread.run_sync(work) == 5

    run(scenario)


def test_a_thread_may_call_the_loop_by_its_token(quiet: list[ThreadStuck]) -> None:
    async def scenario() -> list[str]:
        heard: list[str] = []
        token = trio.lowlevel.current_trio_token()

        def work() -> None:
            token.run_sync_soon(heard.append, "soon")
            trio.from_thread.run_sync(heard.append, "now", trio_token=token)

        with trio.fail_after(1):
            await trio.to_thread.run_sync(work)
        return heard

    assert run(scenario) == ["soon", "now"]


def test_what_a_call_raises_reaches_the_thread(quiet: list[ThreadStuck]) -> None:
    async def scenario() -> None:
        async def fails() -> None:
            await trio.sleep(1)
            raise LookupError("from the loop")

        with pytest.raises(LookupError, match="from the loop"):
            await trio.to_thread.run_sync(trio.from_thread.run, fails)

    run(scenario)


def test_threads_are_heard_in_the_order_they_were_started(quiet: list[ThreadStuck]) -> None:
    async def scenario() -> None:
        heard: list[str] = []
        second_is_ready = threading.Event()
        started: list[trio.Event] = [trio.Event(), trio.Event()]

        def first() -> None:
            second_is_ready.wait()
            trio.from_thread.run_sync(heard.append, "first")

        def second() -> None:
            second_is_ready.set()
            trio.from_thread.run_sync(heard.append, "second")

        async def call(work: Callable[[], None], mine: trio.Event) -> None:
            mine.set()
            # Such a call is run by the loop at once and not by the waiting task, whose turn is random here.
            await trio.to_thread.run_sync(work, abandon_on_cancel=True)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, first, started[0])
            await started[0].wait()
            await trio.lowlevel.checkpoint()
            nursery.start_soon(call, second, started[1])
        assert heard == ["first", "second"]

    for _ in range(5):
        run(scenario)


def test_what_threads_bring_arrives_together(quiet: list[ThreadStuck]) -> None:
    async def scenario() -> None:
        arrived: list[float] = []

        async def call(seconds: float) -> None:
            await trio.to_thread.run_sync(threading.Event().wait, seconds)
            arrived.append(trio.current_time())

        async with trio.open_nursery() as nursery:
            for number in range(3):
                nursery.start_soon(call, number * A_FEW_MS / 2)
            await trio.sleep(0.5)
            assert arrived == [0, 0, 0]

    run(scenario)


def test_a_stuck_thread_fails_the_call_that_waits_for_it() -> None:
    release = threading.Event()

    async def scenario() -> None:
        await trio.to_thread.run_sync(release.wait, LONG, thread_name="sleepy")

    with quiesced_threads(timeout=0.02) as stuck, pytest.raises(ThreadStuck, match="'sleepy'") as raised:
        run(scenario)
    release.set()
    assert stuck == [raised.value]


def test_a_stuck_thread_that_comes_back_after_all_is_ignored() -> None:
    release = threading.Event()

    async def scenario() -> None:
        with pytest.raises(ThreadStuck):
            await trio.to_thread.run_sync(release.wait, LONG)
        release.set()
        assert await trio.to_thread.run_sync(threading.Event().wait, A_FEW_MS) is False

    with quiesced_threads(timeout=0.02):
        run(scenario)


def call_the_loop(told: list[str]) -> None:
    """From a thread, which is told whether it came in time."""
    try:
        trio.from_thread.run_sync(told.append, "answered")
    except trio.RunFinishedError:
        told.append("refused")


def test_a_stuck_thread_that_calls_the_loop_after_all_gets_an_error() -> None:
    release, done = threading.Event(), threading.Event()
    told: list[str] = []

    def work() -> None:
        release.wait(LONG)
        call_the_loop(told)
        done.set()

    async def scenario() -> None:
        with pytest.raises(ThreadStuck):
            await trio.to_thread.run_sync(work)
        release.set()
        done.wait(LONG)

    with quiesced_threads(timeout=0.02):
        run(scenario)
    assert told == ["refused"]


def test_time_passes_for_a_thread_at_a_gate_and_stops_when_it_opens(quiet: list[ThreadStuck]) -> None:
    async def scenario() -> None:
        gate = Gate()

        def work() -> str:
            gate.wait()
            threading.Event().wait(A_FEW_MS)
            return "through"

        async def open_later() -> None:
            await trio.sleep(10)
            gate.open()
            await trio.sleep(0.001)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(open_later)
            assert await trio.to_thread.run_sync(work) == "through"
            assert trio.current_time() == 10

    run(scenario)


def test_an_open_gate_delays_no_thread(quiet: list[ThreadStuck]) -> None:
    async def scenario() -> None:
        gate = Gate()
        gate.open()
        with trio.fail_after(1):
            await trio.to_thread.run_sync(gate.wait)

    run(scenario)


async def test_a_gate_is_a_plain_event_elsewhere() -> None:
    gate = Gate()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, gate.wait)
        await trio.testing.wait_all_tasks_blocked()
        gate.open()


@pytest.mark.parametrize("asks", ["while the run ends", "after the run ended"])
def test_an_abandoned_thread_that_calls_too_late_gets_an_error(quiet: list[ThreadStuck], asks: str) -> None:
    told: list[str] = []
    started, ended, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        if asks == "after the run ended":
            ended.wait(LONG)
        call_the_loop(told)
        done.set()

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: trio.to_thread.run_sync(work, abandon_on_cancel=True))
            # The loop must not get idle before the end, or it would answer.
            while not started.is_set():
                await trio.lowlevel.checkpoint()
            for _ in range(100):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

    run(scenario)
    ended.set()
    assert done.wait(LONG)
    assert told == ["refused"]
