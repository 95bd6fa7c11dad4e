"""Run limits: they end a run that is deadlocked, runs away, or goes on for too long after its last cancel.

Each is recorded as a failure, and the run is ended by increasingly strong means: the scope around it is cancelled; then
the failure is thrown into waits that a cancel does not reach; then the event loop is broken off, between two steps, so
that no task can catch it. Only a step that never awaits can escape.
"""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING, cast

import outcome
import trio
import trio.testing

from footlights_kit.points import described
from footlights_kit.real_things import await_files, files_outside
from footlights_kit.trio_hooks import break_clock
from footlights_kit.verdicts import Deadlocked, GraceExceeded

if TYPE_CHECKING:
    from footlights_kit.places import Waiting
    from footlights_kit.points import Points

_POLL = 0.001
"""Real seconds between two polls, when a run waits only for sockets."""

_STEPS_TO_END = 1000
"""Steps that a run may take after it was cancelled because it had taken too many."""

_MORE_PATIENCE = 1.0
"""Real seconds that a run waits, in all, for what is outside once that was waited for in vain."""

_SLICE = 0.1
"""Real seconds for each of these waits. A process that is killed ends within it."""

_MAX_THROWS = 50
"""Number of times that the failure is thrown into a deadlocked run before the loop is broken off."""


class Endings(trio.abc.Instrument):
    """Holds a run to its limits. What is outside of this process is waited for as long as a thread would be."""

    def __init__(self, points: Points) -> None:
        self._points = points
        self._patience = points.limits.thread_timeout
        self.in_vain = points.limits.in_vain
        self._patience_outside = _MORE_PATIENCE if self.in_vain else self._patience
        self._steps = 0
        self._rests = 0
        self._throws = 0
        self._before_jump: tuple[Waiting, ...] = ()
        self._broken = False
        self.awaited_outside = False

    def before_io_wait(self, timeout: float) -> None:
        points = self._points
        if self._broken:
            return
        if points.steps > points.limits.max_points + _STEPS_TO_END:
            self._break()
            return
        self._check_grace()
        rest = points.rest
        if rest is None:
            return
        # The first rest may be ended by a jump of the clock, a thread, a ready socket or wait_all_tasks_blocked, which
        # cannot all be queried beforehand. A second rest in a row means that none of these happened.
        self._rests = self._rests + 1 if self._steps == points.steps else 1
        self._steps = points.steps
        waits_for_files = _waits_for_files(rest.io_statistics)
        if waits_for_files and self._await_outside():
            return
        next_deadline = rest.seconds_to_next_deadline
        if self._rests > 1 and next_deadline == math.inf:
            if waits_for_files and self._rests * _POLL < self._patience:
                threading.Event().wait(_POLL)
            else:
                self._end_deadlock()
        elif points.is_armed and trio.current_time() + next_deadline > self._last_moment:
            self._before_jump = points.waiting()

    def _await_outside(self) -> bool:
        files = files_outside()
        if not files:
            return False
        self.awaited_outside = True
        began = time.monotonic()
        is_ready = await_files(files, min(self._patience_outside, _SLICE) if self.in_vain else self._patience_outside)
        self._patience_outside = max(0.0, self._patience_outside - (time.monotonic() - began))
        if not is_ready and not self.in_vain:
            self.in_vain, self._patience_outside = True, _MORE_PATIENCE
        return is_ready

    @property
    def _last_moment(self) -> float:
        strikes = self._points.strikes
        return strikes[-1].point.time + self._points.limits.grace if strikes else math.inf

    def _check_grace(self) -> None:
        # Where the tasks were is known before the jump only, and that there is one is known afterwards.
        if self._before_jump and self._points.is_armed and trio.current_time() > self._last_moment:
            grace = self._points.limits.grace
            self._points.fail(
                GraceExceeded(f"more than {grace:g} virtual seconds after the cancel:{described(self._before_jump)}")
            )
        self._before_jump = ()

    def _end_deadlock(self) -> None:
        self._throws += 1
        if self._throws == 1:
            blocked = described(self._points.waiting())
            self._points.fail(Deadlocked(f"nothing can ever happen again. Blocked:{blocked}"))
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


def _waits_for_files(io_statistics: object) -> bool:
    counters = ("tasks_waiting_read", "tasks_waiting_write", "tasks_waiting")  # the last one is kqueue's
    waiting = sum(cast("int", getattr(io_statistics, name, 0)) for name in counters)
    return waiting > 1  # trio's own wakeup socket is always one of them
