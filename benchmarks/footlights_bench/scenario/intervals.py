"""Confidence intervals of percentiles and shares, by standard methods that need no other library.

A percentile has the interval between two order statistics: of n turns, the number that are faster than the true
percentile is binomial, so its quantiles are the ranks between which the percentile lies with the confidence. This
assumes nothing about the distribution of latencies. A share has the interval of Wilson. Pure.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, inf, lgamma, log, log1p, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from footlights_bench.scenario.histogram import Histogram

CONFIDENCE = 0.95
_TAIL = (1 - CONFIDENCE) / 2
_Z = NormalDist().inv_cdf(1 - _TAIL)
_EXACT_UP_TO = 20_000
"""Turns up to which ranks are those of the binomial distribution; beyond, its normal approximation is as good."""


@frozen
class Interval:
    """The ends are infinite where the turns say nothing about them."""

    low: float
    high: float


def of_percentile(histogram: Histogram, percent: float) -> Interval:
    """In seconds. The interval of the maximum is the maximum: what other turns would take cannot be known."""
    if percent == 100:
        return Interval(histogram.percentile(100), histogram.percentile(100))
    low, high = ranks(histogram.count, percent / 100)
    return Interval(0.0 if low is None else histogram.ranked(low), inf if high is None else histogram.ranked(high))


@lru_cache(maxsize=256)
def ranks(turns: int, share: float) -> tuple[int | None, int | None]:
    """The ranks, from 1, between which the percentile lies; None where there are too few turns for one."""
    if turns == 0:
        return None, None
    if turns <= _EXACT_UP_TO:
        low, high = _binomial_quantile(turns, share, _TAIL), _binomial_quantile(turns, share, 1 - _TAIL) + 1
    else:
        half = _Z * sqrt(turns * share * (1 - share))
        low, high = int(turns * share - half), int(turns * share + half) + 2
    return (low if low >= 1 else None), (high if high <= turns else None)


def of_share(number: int, turns: int) -> Interval:
    """Of Wilson. The share of no turns may be anything."""
    if not turns:
        return Interval(0.0, 1.0)
    share, weight = number / turns, _Z * _Z / turns
    middle = (share + weight / 2) / (1 + weight)
    half = _Z / (1 + weight) * sqrt(share * (1 - share) / turns + weight / (4 * turns))
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def _binomial_quantile(turns: int, share: float, tail: float) -> int:
    """The smallest number that so many successes do not exceed with a probability of at least `tail`."""
    passed = 0.0
    for number in range(turns + 1):
        passed += exp(
            lgamma(turns + 1)
            - lgamma(number + 1)
            - lgamma(turns - number + 1)
            + number * log(share)
            + (turns - number) * log1p(-share)
        )
        if passed >= tail:
            return number
    return turns
