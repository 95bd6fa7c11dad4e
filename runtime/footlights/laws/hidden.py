"""What a subscriber did not get: the room in which an event that it lacks may have been.

A dropped range excuses what it may have hidden, but one missing seq can only have hidden one event. So each
excuse takes a place, and when no place is left there is no excuse.
"""

from __future__ import annotations

from bisect import bisect_left


class Hidden:
    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._taken: dict[int, int] = {}
        """Each place that is taken, and where to look for a free one instead."""

    def add(self, start: int, end: int) -> None:
        """Add the places from `start` to `end`, both included, all beyond those that were added before."""
        if start <= end:
            self._starts.append(start)
            self._ends.append(end)

    def between(self, after: int, until: int) -> bool:
        """Whether any place lies beyond `after` and not beyond `until`, taken or not."""
        place = self._next(after + 1)
        return place <= until and self._exists(place)

    def take(self, after: int, places: int = 1) -> bool:
        """Take so many places beyond `after`; False if they are not there.

        Taking the lowest free place is never a mistake, because callers ask in the order of the stream:
        whoever asks later could use any higher place as well.
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
