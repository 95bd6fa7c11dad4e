"""How long an answer may still take. Its clock stands still while turns of others come first, and not for ever."""

from __future__ import annotations

import trio

MAX_STANDING = 600.0
"""Seconds that a clock stands still at once. The turn of another that takes longer than that is stuck."""


class StreamClock:
    """Goes from the beginning, for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._since = trio.current_time()
        self.is_standing = False
        """Whether no time passes."""

    @property
    def deadline(self) -> float:
        """When the time is up; if it stands still, as if it went on now."""
        return self._left + (trio.current_time() if self.is_standing else self._since)

    @property
    def latest(self) -> float:
        """When the time is up even if it stands still for as long as it may."""
        return self._left + self._since + (MAX_STANDING if self.is_standing else 0.0)

    def stand(self) -> None:
        """Let no time pass. Idempotent."""
        if not self.is_standing:
            now = trio.current_time()
            self._left, self._since, self.is_standing = self._left - (now - self._since), now, True

    def go(self) -> None:
        """Let time pass. Idempotent."""
        if self.is_standing:
            self._since, self.is_standing = trio.current_time(), False
