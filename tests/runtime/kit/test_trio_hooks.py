"""A seed decides everything, in every process; and a trio that does not fit is noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import trio
import trio.testing

from footlights_kit.points import RunLimits
from footlights_kit.selfcheck import check_hooks
from footlights_kit.trial import Case, perform
from footlights_kit.trio_hooks import scheduled_by
from footlights_kit.verdicts import HooksMoved


async def crowd() -> None:
    """Everything in trio that keeps tasks or scopes in sets: an event, a shared deadline, a nursery's cancel."""
    start = trio.Event()

    async def member(number: int) -> None:
        await start.wait()
        with trio.move_on_at(1):
            await trio.sleep_forever()
        await trio.to_thread.run_sync(int)
        await trio.sleep(number)

    async with trio.open_nursery() as nursery:
        for number in range(6):
            nursery.start_soon(member, number)
        await trio.sleep(0.5)
        start.set()
        await trio.sleep(3)
        nursery.cancel_scope.cancel()


def trace_of(order: int, *points: int) -> list[str]:
    run = perform(crowd, Case(order, points), RunLimits(max_points=5000))
    assert run.error is None
    return list(map(str, run.trace))


def test_the_same_order_gives_the_same_trace() -> None:
    first = trace_of(3, 40)
    assert len(first) > 40
    assert all(trace_of(3, 40) == first for _ in range(5))


def test_another_order_gives_another_trace() -> None:
    assert len({tuple(trace_of(order)) for order in range(4)}) == 4


def test_a_trace_is_the_same_in_every_process() -> None:
    program = "import test_trio_hooks as it; print('\\n'.join(it.trace_of(1, 30)))"
    traces = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parent)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "random")
    }
    assert traces == {"\n".join(trace_of(1, 30)) + "\n"}


def test_tasks_are_labelled_by_name_and_number_never_by_address() -> None:
    class Callable:
        async def __call__(self) -> None:
            await trio.lowlevel.checkpoint()

    async def scenario() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Callable())
            nursery.start_soon(Callable())

    run = perform(scenario, Case(0), RunLimits(max_points=100))
    labels = {str(label).split(" step ")[0] for label in run.trace}
    assert len([label for label in labels if label.endswith(("#0", "#1"))]) == 2
    assert not any("0x" in label for label in labels)


def test_the_hooks_fit_this_trio() -> None:
    check_hooks.__wrapped__()


def test_a_missing_hook_is_named_with_the_version_of_trio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING")
    gone = rf"trio {trio.__version__}: .*_ALLOW_DETERMINISTIC_SCHEDULING is gone"
    with pytest.raises(HooksMoved, match=gone), scheduled_by(0):
        pytest.fail("entered")


def test_a_scheduler_that_ignores_the_seed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footlights_kit.trio_hooks._Order.shuffle", lambda *_: None)
    with pytest.raises(HooksMoved, match="does not depend on the seed"):
        check_hooks.__wrapped__()


def test_a_scheduler_that_is_not_decided_by_the_seed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def whimsical(_: object, batch: list[object]) -> None:
        if os.urandom(1)[0] % 2:
            batch.reverse()

    monkeypatch.setattr(
        "footlights_kit.trio_hooks._Order.shuffle", lambda _, batch: batch.reverse() if os.urandom(1)[0] % 2 else None
    )
    with pytest.raises(HooksMoved, match="does not determine"):
        check_hooks.__wrapped__()


def test_threads_that_go_another_way_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def elsewhere(*_: object) -> None:
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr("trio.to_thread.run_sync", elsewhere)
    with pytest.raises(HooksMoved, match="thread"):
        check_hooks.__wrapped__()


def test_a_clock_that_cannot_be_broken_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trio.testing.MockClock, "current_time", lambda _: 0.0)
    with pytest.raises(HooksMoved, match="MockClock"):
        check_hooks.__wrapped__()


def test_other_plumbing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footlights_kit.selfcheck.PLUMBING", frozenset({"<init>"}))
    with pytest.raises(HooksMoved, match="run_sync_soon"):
        check_hooks.__wrapped__()
