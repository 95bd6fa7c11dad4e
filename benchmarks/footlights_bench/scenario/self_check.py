"""Self-check of a run: whether the harness itself was the bottleneck.

It notes how much of a core it used, when its own event loop stood still, and how late each turn was because of that: a
harness that is slow or stopped would blame the server for its own delays.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights_bench.scenario.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_CPU = 0.7
"""The share of a core above which what was measured may be the harness."""
MOST_OF_A_BOUND = 10
"""A target is not judged if the harness was later than its bound divided by this, at the same percentile."""
_BEAT = 0.01
_LEAST_PAUSE = 0.002
_NEAR = 0.005
"""Seconds after a pause in which an event may be late because of it."""
_KEPT = 4_096


@frozen(kw_only=True)
class Checked:
    """How the harness did."""

    cpu: float
    """The share of a core that it used during the measurement."""
    pauses: Histogram
    """How late its loop ran what was due."""
    lateness: Histogram
    """How late each turn was because of the harness: begun late, or seen late after a pause."""
    never_begun: int
    """Turns that were due when it was too late to begin them. They are not counted as turns."""
    shares_loop: bool
    """Whether the system runs in the loop of the harness. Then the two cannot be told apart, and nothing is invalid."""


class SelfCheck:
    """Watches the loop that it runs in, from `begin` to `end`."""

    def __init__(self, cpu_seconds: Callable[[], float] = time.process_time) -> None:
        self._cpu_seconds = cpu_seconds
        self._cpu_at_start = 0.0
        self._started = 0.0
        self._starts: list[float] = []
        self._ends: list[float] = []
        self.cpu = 0.0
        self.pauses = Histogram()
        self.lateness = Histogram()
        self.never_begun = 0
        self.paused = 0.0
        """Seconds of all pauses so far."""

    def begin(self) -> None:
        """Begin the measurement: what was before belongs to the warm-up."""
        self._cpu_at_start, self._started = self._cpu_seconds(), trio.current_time()

    def end(self) -> None:
        passed = trio.current_time() - self._started
        self.cpu = (self._cpu_seconds() - self._cpu_at_start) / passed if passed > 0 else 0.0

    async def watch(self) -> None:
        """Notice pauses, until cancelled."""
        while True:
            due = trio.current_time() + _BEAT
            await trio.sleep_until(due)
            now = trio.current_time()
            self.pauses.record(now - due)
            if now - due >= _LEAST_PAUSE:
                self._note(due - _BEAT, now)

    def _note(self, start: float, end: float) -> None:
        self.paused += end - start
        self._starts.append(start)
        self._ends.append(end)
        if len(self._ends) > 2 * _KEPT:
            del self._starts[:_KEPT]
            del self._ends[:_KEPT]

    def lateness_at(self, moment: float | None) -> float:
        """How long the loop had stood still when something was seen at this moment."""
        if moment is None:
            return 0.0
        place = bisect_left(self._ends, moment - _NEAR)
        if place < len(self._ends) and self._starts[place] <= moment:
            return max(0.0, moment - self._starts[place] - _BEAT)
        return 0.0

    def checked(self, *, shares_loop: bool) -> Checked:
        return Checked(
            cpu=self.cpu,
            pauses=self.pauses,
            lateness=self.lateness,
            never_begun=self.never_begun,
            shares_loop=shares_loop,
        )
