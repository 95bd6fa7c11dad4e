"""Every run ends: with a verdict, with nothing left behind, and without hanging the tests."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights_kit.explore import cancel_everywhere
from footlights_kit.points import RunLimits
from footlights_kit.quiesce import Gate
from footlights_kit.trial import Case, perform
from footlights_kit.verdicts import Deadlocked, ExplorationFailed, Runaway, TasksLeaked, ThreadStuck

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from footlights_kit.trial import Trial

LONG = 60.0
"""Real seconds that a test would hang for, were the promise not kept."""


def cause_of(scenario: Callable[[], Awaitable[object]], **options: float) -> BaseException:
    with pytest.raises(ExplorationFailed) as failed:
        cancel_everywhere(scenario, **options)  # type: ignore[arg-type]  # all options used here are numbers
    assert failed.value.__cause__ is not None
    return failed.value.__cause__


def test_a_deadlock_names_the_blocked_tasks_and_where() -> None:
    async def scenario() -> None:
        async def never_sent(receive: trio.MemoryReceiveChannel[int]) -> None:
            await receive.receive()

        send, receive = trio.open_memory_channel[int](0)
        async with send, trio.open_nursery() as nursery:
            nursery.start_soon(never_sent, receive)

    cause = cause_of(scenario)
    assert isinstance(cause, Deadlocked)
    assert "never_sent#0 at tests/runtime/kit/test_explore_endings.py:40 in never_sent: await receive.receive()" in str(
        cause
    )


def test_a_deadlock_that_only_a_cancel_causes_is_found() -> None:
    async def scenario() -> None:
        done = trio.Event()
        try:
            await trio.sleep(1)
            done.set()
        finally:
            with trio.CancelScope(shield=True):
                await done.wait()

    assert isinstance(cause_of(scenario), Deadlocked)


def test_a_deadlock_behind_shields_is_taken_down() -> None:
    async def scenario() -> None:
        async def shielded() -> None:
            with trio.CancelScope(shield=True):
                await trio.Event().wait()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(shielded)
            nursery.start_soon(shielded)
            await shielded()

    cause = cause_of(scenario)
    assert isinstance(cause, Deadlocked)
    assert "shielded#1" in str(cause)
    assert not hasattr(cause, "__notes__")


def test_a_deadlock_is_taken_down_from_the_leaves_so_that_no_parent_leaves_its_children() -> None:
    ended: list[str] = []

    async def scenario() -> None:
        async def shielded(name: str) -> None:
            try:
                with trio.CancelScope(shield=True):
                    await trio.Event().wait()
            finally:
                ended.append(name)

        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(shielded, "child")
        finally:
            ended.append("parent")

    assert isinstance(cause_of(scenario), Deadlocked)
    assert ended == ["child", "parent"]


def test_a_deadlock_that_swallows_every_error_is_broken_off() -> None:
    async def scenario() -> None:
        while True:
            try:
                with trio.CancelScope(shield=True):
                    await trio.Event().wait()
            except BaseException:  # noqa: BLE001  # the worst scenario there is
                continue

    assert isinstance(cause_of(scenario), Deadlocked)


def test_waiting_for_a_socket_without_a_writer_is_a_deadlock() -> None:
    async def scenario() -> None:
        ours, theirs = trio.socket.socketpair()
        with ours, theirs:
            await ours.recv(1)

    assert isinstance(cause_of(scenario, thread_timeout=0.02), Deadlocked)


def test_waiting_for_a_socket_that_is_written_to_is_none() -> None:
    async def scenario() -> None:
        ours, theirs = trio.socket.socketpair()
        with ours, theirs:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(theirs.send, b"x")
                assert await ours.recv(1) == b"x"

    assert cancel_everywhere(scenario).points > 0


def test_waiting_until_all_tasks_are_blocked_is_no_deadlock() -> None:
    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()

    assert cancel_everywhere(scenario).points > 0


def test_a_scope_that_times_out_behind_a_shield_is_no_deadlock_yet() -> None:
    async def scenario() -> None:
        with trio.move_on_after(1), trio.CancelScope(shield=True):
            await trio.sleep(2)

    assert cancel_everywhere(scenario).points > 0


def test_an_endless_scenario_is_stopped() -> None:
    async def scenario() -> None:
        while True:  # noqa: ASYNC110  # endless on purpose
            await trio.sleep(1)

    assert isinstance(cause_of(scenario, max_points=100), Runaway)


def test_an_endless_scenario_behind_a_shield_is_broken_off() -> None:
    async def scenario() -> None:
        while True:
            with trio.CancelScope(shield=True):
                await trio.lowlevel.checkpoint()

    assert isinstance(cause_of(scenario, max_points=100), Runaway)


def test_what_else_went_wrong_is_noted() -> None:
    async def scenario() -> None:
        async def fails() -> None:
            raise LookupError("the real reason")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fails)
            with trio.CancelScope(shield=True):
                await trio.Event().wait()

    with pytest.raises(ExplorationFailed, match="the real reason") as failed:
        cancel_everywhere(scenario)
    assert isinstance(failed.value.__cause__, Deadlocked)


def test_a_system_task_left_behind_is_a_leak() -> None:
    async def scenario() -> None:
        trio.lowlevel.spawn_system_task(trio.sleep, 5, name="left behind")
        await trio.lowlevel.checkpoint()

    cause = cause_of(scenario)
    assert isinstance(cause, TasksLeaked)
    assert "left behind#0" in str(cause)


def test_a_system_task_that_is_about_to_end_is_none() -> None:
    async def scenario() -> None:
        trio.lowlevel.spawn_system_task(trio.lowlevel.checkpoint)
        await trio.lowlevel.cancel_shielded_checkpoint()

    assert cancel_everywhere(scenario).points > 0


def test_a_thread_that_never_comes_back_is_named() -> None:
    release = threading.Event()

    async def scenario() -> None:
        await trio.to_thread.run_sync(release.wait, thread_name="sleepy")

    try:
        cause = cause_of(scenario, thread_timeout=0.02)
    finally:
        release.set()
    assert isinstance(cause, ThreadStuck)
    assert "'sleepy'" in str(cause)


def test_a_stuck_thread_is_a_failure_even_if_the_scenario_swallows_it() -> None:
    release = threading.Event()

    async def scenario() -> None:
        try:
            await trio.to_thread.run_sync(release.wait)
        except ThreadStuck:
            await trio.lowlevel.checkpoint()

    try:
        cause = cause_of(scenario, thread_timeout=0.02)
    finally:
        release.set()
    assert isinstance(cause, ThreadStuck)


def test_an_abandoned_thread_does_not_hold_up_the_end() -> None:
    release = threading.Event()
    struck: list[str] = []

    async def scenario(trial: Trial) -> None:
        with trio.CancelScope() as scope:
            trial.aim(scope.cancel)
            await trio.to_thread.run_sync(release.wait, LONG, abandon_on_cancel=True)
        struck.append(trial.canceled_at[0].label)

    try:
        cancel_everywhere(scenario, replay="order=0 points=1", thread_timeout=LONG)
    finally:
        release.set()
    assert struck == ["idle at t=0"]


def test_a_thread_that_hangs_at_a_gate_lets_virtual_time_pass() -> None:
    gates: list[Gate] = []

    async def scenario() -> None:
        gates.append(Gate())
        with trio.move_on_after(0.25):
            await trio.to_thread.run_sync(gates[-1].wait, abandon_on_cancel=True)
        await trio.sleep(1)

    try:
        assert cancel_everywhere(scenario, thread_timeout=LONG).points > 0
    finally:
        for gate in gates:
            gate.open()


def test_threads_do_not_disturb_the_trace() -> None:
    async def scenario() -> None:
        def there_and_back() -> None:
            trio.from_thread.run(trio.sleep, 0.1)
            trio.from_thread.run_sync(trio.current_time)

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(trio.to_thread.run_sync, there_and_back)

    assert cancel_everywhere(scenario).points > 0  # or it would have diverged


def test_every_wait_for_a_thread_is_a_point() -> None:
    async def scenario() -> None:
        await trio.to_thread.run_sync(int)
        await trio.to_thread.run_sync(int)

    run = perform(scenario, Case(0), RunLimits(max_points=100))
    assert list(map(str, run.trace)).count("idle at t=0") == 2


class Knot:
    """Garbage that only the collector can find."""

    def __init__(self) -> None:
        self.itself = self


def test_the_garbage_of_a_run_is_collected_after_it_and_never_during_it() -> None:
    alive: weakref.WeakSet[Knot] = weakref.WeakSet()
    seen: list[tuple[int, int]] = []

    async def scenario() -> None:
        before = len(alive)
        for _ in range(2000):  # more than it takes to set off a collection
            alive.add(Knot())
        seen.append((before, len(alive)))
        await trio.lowlevel.checkpoint()

    explored = cancel_everywhere(scenario)
    assert seen == [(0, 2000)] * len(seen)
    assert len(seen) == explored.runs


def tampered_with() -> tuple[object, ...]:
    scheduler, threads = sys.modules["trio._core._run"], sys.modules["trio._threads"]
    return (
        scheduler.__dict__["_r"],
        scheduler.__dict__["_ALLOW_DETERMINISTIC_SCHEDULING"],
        threads.__dict__["start_thread_soon"],
        threads.__dict__["_send_message_to_trio"],
        gc.isenabled(),
    )


def test_everything_is_put_back_after_success_and_after_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    # pytest-trio turns this on itself where Hypothesis is installed.
    monkeypatch.setattr("trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING", False)
    during: list[tuple[object, ...]] = []

    async def good() -> None:
        during.append(tampered_with())
        await trio.sleep(1)

    async def bad() -> None:
        await trio.sleep(1)
        raise LookupError

    async def interrupted() -> None:
        await trio.sleep(1)
        raise KeyboardInterrupt

    before = tampered_with()
    cancel_everywhere(good)
    assert tampered_with() == before
    assert not any(new == old for new, old in zip(during[0], before, strict=True))
    cause_of(bad)
    assert tampered_with() == before
    with pytest.raises(KeyboardInterrupt):
        cancel_everywhere(interrupted)
    assert tampered_with() == before
