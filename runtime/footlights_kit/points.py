"""Points of a run at which a cancel can strike, and the instrument that counts them and cancels there.

A point is the moment before a step of a task, or a moment at which no task is runnable (the clock is about to jump, or
a thread is awaited). Labels of points depend on the scenario only, never on object identity or real time: the same run
has the same trace in every process.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import trio
from attrs import define, frozen

from footlights_kit.quiesce import is_idle
from footlights_kit.trio_hooks import PLUMBING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


@frozen
class Point:
    """A moment of a run: its index in the trace, the step about to happen, and the virtual time."""

    index: int
    label: str
    time: float

    def __str__(self) -> str:
        return f"point {self.index} ({self.label})"


@define
class _Tracked:
    label: str
    steps: int = 0


class Points(trio.abc.Instrument):
    """Counts the points of one run and calls the target at the chosen ones.

    `root` is the scope around the whole scenario. `failure` is the first error outside the scenario's own code; it is
    kept here because trio swallows exceptions of an instrument.
    """

    def __init__(self, strike_at: Collection[int]) -> None:
        self.root = trio.CancelScope()
        self.trace: list[str] = []
        self.struck: list[Point] = []
        self.failure: BaseException | None = None
        self._strike_at = frozenset(strike_at)
        self._targets: tuple[Callable[[], object], ...] = ()
        self._armed = False
        self._idle_since: float | None = None
        self._tasks: dict[trio.lowlevel.Task, _Tracked] = {}
        self._names: Counter[str] = Counter()

    def arm(self, *targets: Callable[[], object]) -> None:
        """Start counting. The first cancel calls the first target, and so on; the last target repeats."""
        self._targets = targets
        self._armed = True

    def disarm(self) -> None:
        self._armed = False

    def alive(self) -> dict[trio.lowlevel.Task, str]:
        """Every task except trio's own, in the order of their start, with its label."""
        return {task: tracked.label for task, tracked in self._tasks.items()}

    def fail(self, error: BaseException) -> None:
        """Record the first failure and end the scenario."""
        if self.failure is None:
            self.failure = error
        self.root.cancel(reason="the run has failed")

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        if task.name not in PLUMBING:
            self._tasks[task] = _Tracked(self._label(task.name))

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        self._tasks.pop(task, None)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._idle_since = None
        tracked = self._tasks.get(task)
        if tracked is not None:
            tracked.steps += 1
            self._reach(f"{tracked.label} step {tracked.steps}")

    def before_io_wait(self, timeout: float) -> None:
        # While the loop rests it gets here more than once; how often depends on real time.
        if self._armed and is_idle() and self._idle_since != trio.current_time():
            self._idle_since = trio.current_time()
            self._reach("idle")

    def _label(self, name: str) -> str:
        if not self._names:
            self._names["main"] = 1
            return "main"
        name = re.sub(r" at 0x[0-9a-fA-F]+", "", name.rpartition("<locals>.")[2])
        self._names[name] += 1
        return f"{name}#{self._names[name] - 1}"

    def _reach(self, what: str) -> None:
        if not self._armed:
            return
        now = trio.current_time()
        point = Point(len(self.trace), f"{what} at t={now:.9g}", now)
        self.trace.append(point.label)
        if point.index in self._strike_at:
            self._strike(point)

    def _strike(self, point: Point) -> None:
        target = self._targets[min(len(self.struck), len(self._targets) - 1)]
        self.struck.append(point)
        try:
            target()
        except BaseException as error:  # noqa: BLE001 - a boundary: trio would only log it
            self.fail(error)
