"""The points of a run at which a cancel can strike, and the instrument that counts them and strikes there.

A point is the moment before a task's step, or a moment at which nothing was runnable (the clock is about to
jump, or a thread is awaited). Points are labelled by what the scenario does, never by identity or real time:
the same run has the same trace in every process. The instrument also sees to it that every run ends. A deadlock
or a runaway is recorded as the run's failure, and the run is taken down by ever stronger means.
"""

from __future__ import annotations

import math
import re
import threading
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING, cast

import outcome
import trio
import trio.testing
from attrs import define, frozen

from footlights.testing.determinism import PLUMBING, break_clock
from footlights.testing.quiesce import is_idle, threads_pending
from footlights.testing.verdicts import Deadlocked, Runaway

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

_POLL = 0.001
"""Real seconds between two looks at the sockets, when sockets are all a run waits for."""

_THROWS = 50
"""How often an error is thrown into the waits of a deadlocked run before the run is broken off."""


@frozen
class Point:
    """Where a cancel struck: the `index` in the trace, what was about to happen, and the virtual time."""

    index: int
    label: str
    time: float

    def __str__(self) -> str:
        return f"point {self.index} ({self.label}, t={self.time:g})"


@define
class _Tracked:
    label: str
    steps: int = 0


class Points(trio.abc.Instrument):
    """Counts the points of one run and calls the target at the chosen ones.

    `root` is the scope around everything the scenario does. `failure` is the first thing that went wrong
    outside the scenario's own code; trio swallows what an instrument raises, so it is kept here.
    """

    def __init__(self, strike_at: Collection[int], *, limit: int, patience: float) -> None:
        self.root = trio.CancelScope()
        self.trace: list[str] = []
        self.struck: list[Point] = []
        self.failure: BaseException | None = None
        self._strike_at = frozenset(strike_at)
        self._targets: Sequence[Callable[[], object]] = ()
        self._armed = False
        self._tasks: dict[trio.lowlevel.Task, _Tracked] = {}
        self._names: Counter[str] = Counter()
        self._limit = limit
        self._steps = 0
        self._patience = math.ceil(patience / _POLL)
        self._rests = 0
        self._throws = 0
        self._broken = False

    def arm(self, *targets: Callable[[], object]) -> None:
        self._targets = targets
        self._armed = True

    def disarm(self) -> None:
        self._armed = False

    def alive(self) -> dict[trio.lowlevel.Task, str]:
        """Every task but trio's own, in the order they were started, with its label."""
        return {task: tracked.label for task, tracked in self._tasks.items()}

    def fail(self, error: BaseException) -> None:
        self.failure = self.failure or error
        self.root.cancel(reason="the run has failed")

    # What trio calls

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        if task.name not in PLUMBING:
            self._tasks[task] = _Tracked(self._label(task.name))

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        self._tasks.pop(task, None)

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._rests = 0
        tracked = self._tasks.get(task)
        if tracked is not None:
            tracked.steps += 1
            self._count_step()
            self._reach(f"{tracked.label} step {tracked.steps}")

    def before_io_wait(self, timeout: float) -> None:
        if self._broken or not is_idle():
            return
        if not self._rests:
            self._reach("idle")
        self._rests += 1
        # The first rest may end by a jump of the clock, a ready socket or wait_all_tasks_blocked; none of
        # these can be asked for beforehand. A second one in a row means that nothing of the kind happened.
        if self._rests > 1 and is_idle() and not threads_pending():
            self._rest_again()

    # Points

    def _label(self, name: str) -> str:
        if not self._names:
            self._names["main"] = 1
            return "main"
        name = re.sub(r" at 0x[0-9a-fA-F]+", "", name.rpartition("<locals>.")[2])
        self._names[name] += 1
        return f"{name}#{self._names[name] - 1}"

    def _reach(self, label: str) -> None:
        if not self._armed:
            return
        index = len(self.trace)
        self.trace.append(label)
        if index in self._strike_at:
            self._strike(Point(index, label, trio.current_time()))

    def _strike(self, point: Point) -> None:
        target = self._targets[min(len(self.struck), len(self._targets) - 1)]
        self.struck.append(point)
        try:
            target()
        except BaseException as error:  # noqa: BLE001  # boundary: trio would only log it
            self.fail(error)

    # Runs that do not end by themselves

    def _count_step(self) -> None:
        self._steps += 1
        if self._steps == self._limit + 1:
            self.fail(Runaway(f"the scenario took more than {self._limit} steps"))
        elif self._steps > 2 * self._limit + 1:
            self._break()

    def _rest_again(self) -> None:
        statistics = trio.lowlevel.current_statistics()
        if statistics.seconds_to_next_deadline < math.inf:
            return
        if _waits_for_sockets(statistics.io_statistics) and self._rests < self._patience:
            threading.Event().wait(_POLL)
        elif not self._throws:
            self.fail(Deadlocked(f"nothing can ever happen again. Blocked:\n{self._blocked()}"))
            self._throws = 1
        elif self._throws < _THROWS:
            self._throw()
        else:
            self._break()

    def _blocked(self) -> str:
        return "\n".join(f"  {label} {_where(task)}" for task, label in self.alive().items())

    def _throw(self) -> None:
        """Wake what a cancel does not reach (a shield, a wait that has no abort) with the failure itself."""
        self._throws += 1
        for task in [task for task in self._tasks if not any(n.child_tasks for n in task.child_nurseries)]:
            trio.lowlevel.reschedule(task, outcome.Error(cast("BaseException", self.failure)))

    def _break(self) -> None:
        if not self._broken:
            self._broken = True
            _keep_forever(trio.lowlevel.current_root_task())
            clock = cast("trio.testing.MockClock", trio.lowlevel.current_clock())
            break_clock(clock, cast("BaseException", self.failure))


def _keep_forever(thing: object) -> None:
    """Let `thing` never be finalized, not even when the interpreter ends.

    The tasks of a broken run withstood everything; closing their coroutines would only run more of them. The
    frame of a daemon thread is the one place that nothing ever clears.
    """
    never = threading.Event()

    def keep(_: object) -> None:
        never.wait()

    threading.Thread(target=keep, args=(thing,), daemon=True).start()


def _waits_for_sockets(io_statistics: object) -> bool:
    waiting = [
        cast("int", getattr(io_statistics, name)) for name in dir(io_statistics) if name.startswith("tasks_waiting")
    ]
    return sum(waiting) > 1  # trio's own wakeup socket is always one of them


def _where(task: trio.lowlevel.Task) -> str:
    frames = [
        f"{PurePath(frame.f_code.co_filename).name}:{line} in {frame.f_code.co_name}"
        for frame, line in task.iter_await_frames()
        if not str(frame.f_globals.get("__name__")).startswith(("trio.", "footlights.testing."))
    ]
    return " > ".join(frames[-3:])
