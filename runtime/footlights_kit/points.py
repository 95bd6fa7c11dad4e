"""Points of a run at which a cancel can strike, and the instrument that counts them and cancels there.

A point is the moment before a step of a task, or a moment at which no task is runnable (the clock is about to jump, or
a thread is awaited). Labels of points depend on the scenario only, never on object identity or real time: the same run
has the same trace in every process.

The instrument runs before every step of every run, so it makes no text: a trace consists of tuples, which are compared
with the recorded run as they come, and a point becomes text only in a failure.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import trio
from attrs import Factory, define, frozen

from footlights_kit.deliveries import Deliveries
from footlights_kit.places import Waiting
from footlights_kit.quiesce import at_rest
from footlights_kit.trio_hooks import PLUMBING
from footlights_kit.verdicts import Runaway

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence


class Moment(NamedTuple):
    """One entry of a trace: the task about to be stepped, which of its steps it is, and the virtual time."""

    task: str
    """The label of the task, or "idle"."""
    step: int
    time: float

    def __str__(self) -> str:
        step = f" step {self.step}" if self.step else ""
        return f"{self.task}{step} at t={self.time:.9g}"


@frozen
class Point:
    """A point at which a cancel struck: its index in the trace, the step about to happen, and the virtual time."""

    index: int
    moment: Moment

    @property
    def label(self) -> str:
        return str(self.moment)

    @property
    def time(self) -> float:
        return self.moment.time

    def __str__(self) -> str:
        return f"point {self.index} ({self.moment})"


@define
class Strike:
    """A cancel at a point, and where the tasks were that it reached."""

    point: Point
    reached: tuple[Waiting, ...] | None = None
    """None if the run was not made in detail."""


@define
class _Tracked:
    label: str
    steps: int = 0


@frozen
class Divergence:
    """The first point at which a run was not what an earlier run was, and where its tasks were then."""

    index: int
    waiting: tuple[Waiting, ...]


@frozen
class RunLimits:
    """What ends every run of an exploration, and the findings that are allowed."""

    max_points: int = 20_000
    grace: float = 30.0
    thread_timeout: float = 60.0
    allow: tuple[type[BaseException], ...] = ()
    in_vain: bool = False
    """Whether an earlier run waited for what is outside in vain: this one waits for a moment only."""


@define(eq=False)
class Points(trio.abc.Instrument):
    """Counts the points of one run and calls the target at the chosen ones.

    `root` is the scope around the whole scenario. `failure` is the first error outside the scenario's own code; it is
    kept here because trio swallows exceptions of an instrument.
    """

    limits: RunLimits = Factory(RunLimits)
    strike_at: Collection[int] = ()
    expected: Sequence[Moment] = ()
    on_point: Callable[[Sequence[Waiting]], object] | None = None
    """Called at each point, with the task about to be stepped, or with all when none is."""
    counts_steps: bool = True
    """False if something else than a step of a task makes a point."""
    root: trio.CancelScope = Factory(trio.CancelScope)
    trace: list[Moment] = Factory(list[Moment])
    strikes: list[Strike] = Factory(list[Strike])
    deliveries: Deliveries = Factory(Deliveries)
    failure: BaseException | None = None
    divergence: Divergence | None = None
    is_armed: bool = False
    rest: trio.lowlevel.RunStatistics | None = None
    """Before each wait of the loop: its statistics, if it is idle."""
    steps: int = 0
    _targets: tuple[Callable[[], object], ...] = ()
    _now: float = 0.0
    _idle_since: float | None = None
    _tasks: dict[trio.lowlevel.Task, _Tracked] = Factory(dict[trio.lowlevel.Task, _Tracked])
    _names: Counter[str] = Factory(Counter[str])

    def arm(self, *targets: Callable[[], object]) -> None:
        """Start counting. The first cancel calls the first target, and so on; the last target repeats."""
        self._targets = targets
        self.is_armed = True

    def disarm(self) -> None:
        self.is_armed = False

    def alive(self) -> dict[trio.lowlevel.Task, str]:
        """Every task except trio's own, in the order of their start, with its label."""
        return {task: tracked.label for task, tracked in self._tasks.items()}

    def waiting(self) -> tuple[Waiting, ...]:
        """Where each of these tasks is."""
        return tuple(Waiting.of(task, label) for task, label in self.alive().items())

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
        self.steps += 1
        if self.steps > self.limits.max_points and self.failure is None:
            self.fail(self._runaway(task))
        tracked = self._tasks.get(task)
        if tracked is None:
            return
        tracked.steps += 1
        if self.is_armed and self.counts_steps:
            self._reach_step(task, Moment(tracked.label, tracked.steps, self._now))
        if self.deliveries.watched:
            self.deliveries.before_step(task, tracked.label)

    def before_io_wait(self, timeout: float) -> None:
        # The clock stands still while tasks are stepped: it jumps between two rounds.
        now = self._now = trio.current_time()
        # While the loop rests it gets here more than once; how often depends on real time.
        self.rest = at_rest()
        if self.is_armed and self.counts_steps and self._idle_since != now and self.rest is not None:
            self._idle_since = now
            self._reach_step(None, Moment("idle", 0, now))

    def _label(self, name: str) -> str:
        if not self._names:
            self._names["main"] = 1
            return "main"
        name = re.sub(r" at 0x[0-9a-fA-F]+", "", name.rpartition("<locals>.")[2])
        self._names[name] += 1
        return f"{name}#{self._names[name] - 1}"

    def reach_elsewhere(self, waiting: Waiting, step: int) -> bool:
        """Reach a point that is no step of a task. Returns whether it is to be struck."""
        point = self._reach(Moment(waiting.task, step, self._now), lambda: (waiting,))
        if point is not None:
            self.strikes.append(Strike(point, (waiting,)))
        return point is not None

    def _reach_step(self, task: trio.lowlevel.Task | None, moment: Moment) -> None:
        point = self._reach(moment, self.waiting if task is None else lambda: (Waiting.of(task, moment.task),))
        if point is not None:
            self._strike(point)

    def _reach(self, moment: Moment, waiting: Callable[[], Sequence[Waiting]]) -> Point | None:
        index = len(self.trace)
        self.trace.append(moment)
        if index < len(self.expected) and self.expected[index] != moment and self.divergence is None:
            self.divergence = Divergence(index, self.waiting())
        if self.on_point is not None:
            self.on_point(waiting())
        return Point(index, moment) if index in self.strike_at else None

    def _strike(self, point: Point) -> None:
        target = self._targets[min(len(self.strikes), len(self._targets) - 1)]
        strike = Strike(point)
        self.strikes.append(strike)
        try:
            with self.deliveries.noting(self._tasks) as reached:
                target()
        except BaseException as error:  # noqa: BLE001 - a boundary: trio would only log it
            self.fail(error)
        else:
            if self.deliveries.in_detail:
                strike.reached = tuple(Waiting.of(task, self._tasks[task].label) for task in reached)

    def _runaway(self, last: trio.lowlevel.Task) -> Runaway:
        more = f"the scenario took more than {self.limits.max_points} steps (max_points)"
        if last not in self._tasks:
            # The generators that are left over are finished in a task of trio's own.
            return Runaway(f"{more}, the last of them {Waiting.of(last, 'in what is left of it')}")
        task, tracked = max(self._tasks.items(), key=lambda each: each[1].steps)
        return Runaway(f"{more}, {tracked.steps} of them {Waiting.of(task, tracked.label)}")


def described(waiting: Iterable[Waiting]) -> str:
    """One indented line for each."""
    return "".join(f"\n  {each}" for each in waiting)
