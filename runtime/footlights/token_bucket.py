"""Token bucket: an amount that may be used at once and comes back evenly with time. Pure: the caller says when."""

from __future__ import annotations

from math import ceil

_DIGITS = 6
"""Less than that is no difference."""
_HAIR = 4e-7
"""If no more than that is missing, there is enough."""


class TokenBucket:
    """`capacity` is what there is after a long silence; all of it comes back in `seconds`."""

    __slots__ = ("_capacity", "_left", "_per_second", "_since")

    def __init__(self, capacity: float, seconds: float, now: float) -> None:
        self._capacity = float(capacity)
        self._per_second = capacity / seconds
        self._left = self._capacity
        self._since = now

    def resize(self, capacity: float, seconds: float, now: float) -> None:
        """Go by another capacity and rate from now on."""
        self.left(now)
        self._capacity = float(capacity)
        self._per_second = capacity / seconds
        self._left = min(self._left, self._capacity)

    def left(self, now: float) -> float:
        """What may be used now; less than nothing if more was used than there was."""
        self._left = min(self._capacity, self._left + max(now - self._since, 0.0) * self._per_second)
        self._since = max(now, self._since)
        # What came back in many small steps is a hair less than what came back in one.
        return round(self._left, _DIGITS)

    def take(self, amount: float, now: float) -> bool:
        """Use it, if there is so much."""
        if amount > self.left(now):
            return False
        self._left -= amount
        return True

    def settle(self, taken: float, used: float, now: float) -> None:
        """What was taken was not what was used in the end: give back the rest, or owe it."""
        self.left(now)
        self._left = min(self._capacity, self._left + taken - used)

    def seconds_until(self, amount: float, now: float) -> int:
        """In how many whole seconds there will be so much, if nothing is used meanwhile; at least 1."""
        self.left(now)
        missing = min(amount, self._capacity) - self._left - _HAIR
        return max(1, ceil(missing / self._per_second))

    def seconds_in_debt(self, now: float) -> float:
        """In how many seconds nothing is owed, if nothing is used meanwhile; 0 if nothing is owed now."""
        return max(0.0, -self.left(now) / self._per_second)
