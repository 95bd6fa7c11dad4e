"""How long an answer may still take. Its clock stands still while turns of others come first."""

from __future__ import annotations

import trio


class StreamClock:
    """Goes from the beginning, for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._since: float | None = trio.current_time()
        """None while it stands still."""

    @property
    def is_standing(self) -> bool:
        """Whether no time passes."""
        return self._since is None

    @property
    def deadline(self) -> float:
        """When the time is up; if it stands still, as if it went on now."""
        return self._left + (trio.current_time() if self._since is None else self._since)

    def stand(self) -> None:
        """Let no time pass. Idempotent."""
        if self._since is not None:
            self._left -= trio.current_time() - self._since
            self._since = None

    def go(self) -> None:
        """Let time pass. Idempotent."""
        if self._since is None:
            self._since = trio.current_time()
