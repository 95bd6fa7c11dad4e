"""Run limits: they end a run that is deadlocked or runs away.

A deadlock or a runaway is recorded as a failure, and the run is ended by increasingly strong means: the scope around
it is cancelled; then the failure is thrown into waits that a cancel does not reach; then the event loop is broken off.
Only code that never awaits can escape.
"""

from __future__ import annotations

import math
import threading
from pathlib import PurePath
from typing import TYPE_CHECKING, cast

import outcome
import trio
import trio.testing

from footlights_kit.quiesce import is_idle
from footlights_kit.trio_hooks import break_clock
from footlights_kit.verdicts import Deadlocked, Runaway

if TYPE_CHECKING:
    from footlights_kit.points import Points

_POLL = 0.001
"""Real seconds between two polls, when a run waits only for sockets."""

_MAX_THROWS = 50
"""Number of times that the failure is thrown into a deadlocked run before the loop is broken off."""


class Endings(trio.abc.Instrument):
    """Allows a run `max_steps` steps, and `patience` real seconds of waiting for sockets only."""

    def __init__(self, points: Points, *, max_steps: int, patience: float) -> None:
        self._points = points
        self._max_steps = max_steps
        self._patience = math.ceil(patience / _POLL)
        self._steps = 0
        self._rests = 0
        self._throws = 0
        self._broken = False

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._rests = 0
        self._steps += 1
        if self._steps == self._max_steps + 1:
            self._points.fail(Runaway(f"the scenario took more than {self._max_steps} steps (max_points)"))
        elif self._steps > 2 * self._max_steps:
            self._break()

    def before_io_wait(self, timeout: float) -> None:
        if self._broken or not is_idle():
            return
        # The first rest may be ended by a jump of the clock, a thread, a ready socket or wait_all_tasks_blocked, which
        # cannot all be queried beforehand. A second rest in a row means that none of these happened.
        self._rests += 1
        statistics = trio.lowlevel.current_statistics()
        if self._rests > 1 and statistics.seconds_to_next_deadline == math.inf:
            if _waits_for_sockets(statistics.io_statistics) and self._rests < self._patience:
                threading.Event().wait(_POLL)
            else:
                self._end_deadlock()

    def _end_deadlock(self) -> None:
        self._throws += 1
        if self._throws == 1:
            blocked = (f"\n  {label} {_where(task)}" for task, label in self._points.alive().items())
            self._points.fail(Deadlocked(f"nothing can ever happen again. Blocked:{''.join(blocked)}"))
        elif self._throws <= _MAX_THROWS:
            self._throw()
        else:
            self._break()

    def _throw(self) -> None:
        # Not into parents: an exception would make a parent leave its nursery without its children.
        for task in self._points.alive():
            if not any(nursery.child_tasks for nursery in task.child_nurseries):
                trio.lowlevel.reschedule(task, outcome.Error(self._failure))

    def _break(self) -> None:
        if not self._broken:
            self._broken = True
            self._points.disarm()
            _keep_forever(trio.lowlevel.current_root_task())
            break_clock(cast("trio.testing.MockClock", trio.lowlevel.current_clock()), self._failure)

    @property
    def _failure(self) -> BaseException:
        assert self._points.failure is not None
        return self._points.failure


def _keep_forever(thing: object) -> None:
    """Keep `thing` from being finalized, even at interpreter exit.

    The tasks of a broken run ignored every exception; closing their coroutines would only run more of their code. The
    frame of a daemon thread is the one place that is never cleared.
    """

    def keep(_: object) -> None:
        threading.Event().wait()

    threading.Thread(target=keep, args=(thing,), daemon=True).start()


def _waits_for_sockets(io_statistics: object) -> bool:
    counters = [name for name in dir(io_statistics) if name.startswith("tasks_waiting")]
    waiting = sum(cast("int", getattr(io_statistics, name)) for name in counters)
    return waiting > 1  # trio's own wakeup socket is always one of them


def _where(task: trio.lowlevel.Task) -> str:
    frames = [
        f"{PurePath(frame.f_code.co_filename).name}:{line} in {frame.f_code.co_name}"
        for frame, line in task.iter_await_frames()
        if not str(frame.f_globals.get("__name__")).startswith(("trio.", "footlights_kit."))
    ]
    return " > ".join(frames[-3:])
