"""Gap places: the sequence numbers that a subscriber did not get. Each accounts for at most one missing event.

A dropped range excuses the events that it may have hidden, but one missing seq can have hidden only one event. So each
excuse uses up a place, and without a free place there is no excuse.
"""

from __future__ import annotations

from bisect import bisect_left


class Hidden:
    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._taken: dict[int, int] = {}
        """Each place that is taken, and the place where to search on (a union-find path)."""

    def add(self, start: int, end: int) -> None:
        """Add the places from `start` to `end`, both included. They must lie beyond all earlier ones."""
        if start <= end:
            self._starts.append(start)
            self._ends.append(end)

    def between(self, after: int, until: int) -> bool:
        """Whether any place lies beyond `after` and not beyond `until`, taken or not."""
        place = self._next(after + 1)
        return place <= until and self._exists(place)

    def take(self, after: int, places: int = 1) -> bool:
        """Take this many places beyond `after`; False if there are not enough.

        Taking the lowest free place is always correct, because callers ask in the order of the stream: a later caller
        could use any higher place as well.
        """
        return all(self._take_one(after) for _ in range(places))

    def _take_one(self, after: int) -> bool:
        passed: list[int] = []
        place = self._next(after + 1)
        while place in self._taken:
            passed.append(place)
            place = self._next(self._taken[place])
        self._taken.update(dict.fromkeys(passed, place))
        if not self._exists(place):
            return False
        self._taken[place] = place + 1
        return True

    def _exists(self, place: int) -> bool:
        return bool(self._ends) and place <= self._ends[-1]

    def _next(self, seq: int) -> int:
        """The lowest place from `seq` on, or a seq beyond the last place if there is none."""
        at = bisect_left(self._ends, seq)
        return max(seq, self._starts[at]) if at < len(self._ends) else seq
