"""Watchdog of a stage: interrupts a turn that stalls or exceeds its time.

One watchdog serves all turns, so that a turn that ends in time costs two plain calls: `watch` and `unwatch`. Its task
wakes only when a turn may be overdue.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import count
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import trio
from trio.lowlevel import enable_ki_protection

from footlights.events import InterruptReason
from footlights.failure_texts import LOAD_TIMEOUT, STALL_TIMEOUT, TURN_TIMEOUT, known
from footlights.turn.lifecycle import TurnState

if TYPE_CHECKING:
    from footlights.limits import Limits
    from footlights.turn.turn import Turn

_MAX_STALE_CHECKS = 64
_LOADING = (TurnState.SELECTED, TurnState.LOADING)


class _Watched:
    """A watched turn. Entries of the heap outlive it, and must not keep the turn alive."""

    __slots__ = ("started", "turn")

    def __init__(self, turn: Turn, started: float) -> None:
        self.turn: Turn | None = turn
        self.started = started


class _Check(NamedTuple):
    """The time of the next check of a turn. The number orders checks of the same time."""

    at: float
    number: int
    watched: _Watched


class TurnWatchdog:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._watched: dict[Turn, _Watched] = {}
        self._checks: list[_Check] = []
        self._numbers = count()
        self._alarm = trio.CancelScope()

    def watch(self, turn: Turn) -> None:
        now = trio.current_time()
        watched = self._watched[turn] = _Watched(turn, now)
        self._schedule_check(turn, watched, now)

    def unwatch(self, turn: Turn) -> None:
        self._watched.pop(turn).turn = None
        if not self._watched:
            self._checks.clear()
            self._set_alarm()
        elif len(self._checks) > 2 * len(self._watched) + _MAX_STALE_CHECKS:
            self._checks = [check for check in self._checks if check.watched.turn is not None]
            heapify(self._checks)

    @enable_ki_protection
    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            with trio.CancelScope() as self._alarm:
                self._set_alarm()
                await trio.sleep_forever()
            self._check_due_turns()

    def _check_due_turns(self) -> None:
        now = trio.current_time()
        due: list[_Watched] = []
        while self._checks and self._checks[0].at <= now:
            due.append(heappop(self._checks).watched)
        for watched in due:
            turn = watched.turn
            if turn is None:
                continue
            if now >= watched.started + self._limits.turn_timeout:
                turn.stop(InterruptReason.TIMEOUT, error=known(TURN_TIMEOUT))
            elif now >= self._stall_deadline(turn, watched, now):
                code = LOAD_TIMEOUT if turn.state in _LOADING else STALL_TIMEOUT
                turn.stop(InterruptReason.STALLED, error=known(code))
            else:
                self._schedule_check(turn, watched, now)

    def _schedule_check(self, turn: Turn, watched: _Watched, now: float) -> None:
        turn_deadline = watched.started + self._limits.turn_timeout
        # The turn may begin to load or to speak before the next check, so that must come early enough for either.
        next_limit = now + min(self._limits.stall_timeout, self._limits.load_timeout)
        at = min(turn_deadline, self._stall_deadline(turn, watched, now), next_limit)
        check = _Check(at, next(self._numbers), watched)
        heappush(self._checks, check)
        if self._checks[0] is check:
            self._set_alarm()

    def _stall_deadline(self, turn: Turn, watched: _Watched, now: float) -> float:
        """The time until which the turn may be silent."""
        # The time that a turn waits for a slot does not count as silence.
        silent_since = now if turn.waits_in_line else max(watched.started, turn.last_activity)
        return silent_since + (self._limits.load_timeout if turn.state in _LOADING else self._limits.stall_timeout)

    def _set_alarm(self) -> None:
        self._alarm.deadline = self._checks[0].at if self._checks else inf
