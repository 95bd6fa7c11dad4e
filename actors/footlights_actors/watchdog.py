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
from footlights.turn.lifecycle import TurnState

if TYPE_CHECKING:
    from footlights.limits import Limits
    from footlights.turn.turn import Turn

_FEW_GONE = 64


class _Watched:
    """A watched turn. Entries of the heap outlive it, and must not keep the turn alive."""

    __slots__ = ("started", "turn")

    def __init__(self, turn: Turn, started: float) -> None:
        self.turn: Turn | None = turn
        self.started = started


class _Look(NamedTuple):
    """The time of the next check of a turn. The number orders checks of the same time."""

    at: float
    number: int
    watched: _Watched


class TurnWatchdog:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._watched: dict[Turn, _Watched] = {}
        self._looks: list[_Look] = []
        self._numbers = count()
        self._alarm = trio.CancelScope()

    def watch(self, turn: Turn) -> None:
        now = trio.current_time()
        watched = self._watched[turn] = _Watched(turn, now)
        self._look_again(turn, watched, now)

    def unwatch(self, turn: Turn) -> None:
        self._watched.pop(turn).turn = None
        if not self._watched:
            self._looks.clear()
            self._set_alarm()
        elif len(self._looks) > 2 * len(self._watched) + _FEW_GONE:
            self._looks = [look for look in self._looks if look.watched.turn is not None]
            heapify(self._looks)

    @enable_ki_protection
    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            with trio.CancelScope() as self._alarm:
                self._set_alarm()
                await trio.sleep_forever()
            self._look_at_those_due()

    def _look_at_those_due(self) -> None:
        now = trio.current_time()
        due: list[_Watched] = []
        while self._looks and self._looks[0].at <= now:
            due.append(heappop(self._looks).watched)
        for watched in due:
            turn = watched.turn
            if turn is None:
                continue
            if now >= watched.started + self._limits.turn_timeout:
                turn.stop(InterruptReason.TIMEOUT)
            elif now >= self._silent_too_long(turn, watched, now):
                turn.stop(InterruptReason.STALLED)
            else:
                self._look_again(turn, watched, now)

    def _look_again(self, turn: Turn, watched: _Watched, now: float) -> None:
        time_is_up = watched.started + self._limits.turn_timeout
        # The turn may begin to load or to speak before the next check, so that must come early enough for either.
        soon = now + min(self._limits.stall_timeout, self._limits.load_timeout)
        at = min(time_is_up, self._silent_too_long(turn, watched, now), soon)
        look = _Look(at, next(self._numbers), watched)
        heappush(self._looks, look)
        if self._looks[0] is look:
            self._set_alarm()

    def _silent_too_long(self, turn: Turn, watched: _Watched, now: float) -> float:
        """The time until which the turn may be silent."""
        # The time that a turn waits for a slot does not count as silence.
        silent_since = now if turn.waits_in_line else max(watched.started, turn.last_activity)
        is_loading = turn.state in (TurnState.SELECTED, TurnState.LOADING)
        return silent_since + (self._limits.load_timeout if is_loading else self._limits.stall_timeout)

    def _set_alarm(self) -> None:
        self._alarm.deadline = self._looks[0].at if self._looks else inf
