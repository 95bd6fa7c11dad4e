"""Token bucket: a rate limit that allows bursts. Pure: the caller passes the time."""

from __future__ import annotations

from math import ceil

_DIGITS = 6
"""Precision of `left`, so that refills in many small steps and in one step compare equal."""
_TOLERANCE = 4e-7
"""A shortage below this does not count."""


class TokenBucket:
    """A full bucket holds `capacity`; an empty one refills in `seconds`."""

    __slots__ = ("_capacity", "_left", "_per_second", "_since")

    def __init__(self, capacity: float, seconds: float, now: float) -> None:
        self._capacity = float(capacity)
        self._per_second = capacity / seconds
        self._left = self._capacity
        self._since = now

    def resize(self, capacity: float, seconds: float, now: float) -> None:
        """Change capacity and rate."""
        self.left(now)
        self._capacity = float(capacity)
        self._per_second = capacity / seconds
        self._left = min(self._left, self._capacity)

    def left(self, now: float) -> float:
        """The amount available now; negative after an overdraft."""
        self._left = min(self._capacity, self._left + max(now - self._since, 0.0) * self._per_second)
        self._since = max(now, self._since)
        return round(self._left, _DIGITS)

    def take(self, amount: float, now: float) -> bool:
        """Take the amount if it is available, and say whether it was."""
        if amount > self.left(now):
            return False
        self._left -= amount
        return True

    def settle(self, taken: float, used: float, now: float) -> None:
        """Correct an earlier `take` by the amount really used: refund the rest, or overdraw."""
        self.left(now)
        self._left = min(self._capacity, self._left + taken - used)

    def seconds_until(self, amount: float, now: float) -> int:
        """Whole seconds until the amount is available if nothing else is taken; at least 1."""
        self.left(now)
        missing = min(amount, self._capacity) - self._left - _TOLERANCE
        return max(1, ceil(missing / self._per_second))

    def seconds_in_debt(self, now: float) -> float:
        """Seconds until an overdraft is refilled if nothing else is taken; 0 without an overdraft."""
        return max(0.0, -self.left(now) / self._per_second)
