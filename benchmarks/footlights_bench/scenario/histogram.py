"""Latencies in a histogram of high dynamic range: microseconds to hours, each to within a thousandth of itself.

Buckets are log-linear: exact up to 2,047 µs, and then 1,024 for each power of two. What is read out is never less than
what was measured, to the microsecond. A turn that failed has no latency; it counts as slower than every other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BITS = 11
_EXACT = 1 << _BITS


class Histogram:
    """How often which latency was measured. Times are seconds."""

    def __init__(self, counts: Mapping[int, int] | None = None, failed: int = 0) -> None:
        self._counts = dict(counts or {})
        self.failed = failed
        """Turns that never got there."""

    def record(self, seconds: float) -> None:
        bucket = _bucket(max(0, round(seconds * 1e6)))
        self._counts[bucket] = self._counts.get(bucket, 0) + 1

    def fail(self) -> None:
        self.failed += 1

    @property
    def count(self) -> int:
        """All, with those that failed."""
        return sum(self._counts.values()) + self.failed

    @property
    def counts(self) -> Mapping[int, int]:
        """How many are in which bucket; for `Histogram(counts)`."""
        return dict(sorted(self._counts.items()))

    def percentile(self, percent: float) -> float:
        """What so many percent do not exceed; infinite if too many failed, and NaN of nothing."""
        return self.ranked(self.rank(percent))

    def rank(self, percent: float) -> int:
        """The place, from 1, at which that percentile stands when they are put in order."""
        return max(1, math.ceil(self.count * percent / 100))

    def ranked(self, rank: int) -> float:
        """What stands at that place."""
        if not self.count:
            return math.nan
        passed = 0
        for seconds, number in self:
            passed += number
            if passed >= rank:
                return seconds
        return math.inf

    def __iter__(self) -> Iterator[tuple[float, int]]:
        """Latencies and how often they were measured, in order; those that failed are left out."""
        return ((_highest(bucket) / 1e6, number) for bucket, number in sorted(self._counts.items()))


def _bucket(micros: int) -> int:
    shift = max(0, micros.bit_length() - _BITS)
    return shift << _BITS | micros >> shift


def _highest(bucket: int) -> int:
    """The most that belongs into a bucket."""
    shift, place = bucket >> _BITS, bucket & (_EXACT - 1)
    return ((place + 1) << shift) - 1
