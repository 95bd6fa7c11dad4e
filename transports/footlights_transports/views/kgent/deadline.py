"""Pausable deadline of an answer: its time does not run while other turns of the session come first."""

from __future__ import annotations

import trio

MAX_PAUSE = 600.0
"""Seconds that one pause may last. An earlier turn that takes longer than that is stuck."""


class PausableDeadline:
    """Runs from its creation, for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._since = trio.current_time()
        self.is_paused = False

    @property
    def at(self) -> float:
        """When the time is up; during a pause, as if it were resumed now."""
        return self._left + (trio.current_time() if self.is_paused else self._since)

    @property
    def latest(self) -> float:
        """When the time is up even if the current pause lasts as long as it may."""
        return self._left + self._since + (MAX_PAUSE if self.is_paused else 0.0)

    def pause(self) -> None:
        """Idempotent."""
        if not self.is_paused:
            now = trio.current_time()
            self._left, self._since, self.is_paused = self._left - (now - self._since), now, True

    def resume(self) -> None:
        """Idempotent."""
        if self.is_paused:
            self._since, self.is_paused = trio.current_time(), False
