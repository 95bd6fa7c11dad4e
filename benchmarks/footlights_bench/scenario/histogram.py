"""Histogram of latencies with a high dynamic range: microseconds to hours, with an error of at most a thousandth.

Buckets are log-linear: exact up to 2,047 µs, then 1,024 for each power of two. A value is never reported as less than
it was. A failed turn has no latency and counts as slower than every other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BITS = 11
_EXACT = 1 << _BITS


class Histogram:
    """Counts of latencies. Times are in seconds."""

    def __init__(self, counts: Mapping[int, int] | None = None, failed: int = 0) -> None:
        self._counts = dict(counts or {})
        self.failed = failed
        """Turns without a latency, because they failed."""

    def record(self, seconds: float, number: int = 1) -> None:
        bucket = _bucket(max(0, round(seconds * 1e6)))
        self._counts[bucket] = self._counts.get(bucket, 0) + number

    def add(self, other: Histogram) -> None:
        """Count what another histogram has counted."""
        self.failed += other.failed
        for bucket, number in other.counts.items():
            self._counts[bucket] = self._counts.get(bucket, 0) + number

    def fail(self) -> None:
        self.failed += 1

    def above(self, seconds: float) -> int:
        """The number of turns that took longer, including the failed ones."""
        return self.failed + sum(number for latency, number in self if latency > seconds)

    @property
    def count(self) -> int:
        """All turns, including the failed ones."""
        return sum(self._counts.values()) + self.failed

    @property
    def counts(self) -> Mapping[int, int]:
        """The number of turns by bucket, for `Histogram(counts)`."""
        return dict(sorted(self._counts.items()))

    def percentile(self, percent: float) -> float:
        """The latency that so many percent do not exceed; infinite if too many failed, NaN if there are no turns."""
        return self.ranked(self.rank(percent))

    def rank(self, percent: float) -> int:
        """The rank of a percentile among the sorted turns, from 1."""
        return max(1, math.ceil(self.count * percent / 100))

    def ranked(self, rank: int) -> float:
        """The latency of this rank."""
        if not self.count:
            return math.nan
        passed = 0
        for seconds, number in self:
            passed += number
            if passed >= rank:
                return seconds
        return math.inf

    def __iter__(self) -> Iterator[tuple[float, int]]:
        """Latencies and their counts in ascending order, without the failed turns."""
        return ((_highest(bucket) / 1e6, number) for bucket, number in sorted(self._counts.items()))


def _bucket(micros: int) -> int:
    shift = max(0, micros.bit_length() - _BITS)
    return shift << _BITS | micros >> shift


def _highest(bucket: int) -> int:
    """The largest value of a bucket, in microseconds."""
    shift, place = bucket >> _BITS, bucket & (_EXACT - 1)
    return ((place + 1) << shift) - 1
