"""Verdict on a target: met, missed or undecided, by the confidence interval of what was measured."""

from __future__ import annotations

from enum import StrEnum
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from attrs import asdict, frozen

from footlights_bench.scenario.definition import Share
from footlights_bench.scenario.histogram import Histogram
from footlights_bench.scenario.intervals import Interval, of_percentile, of_share

if TYPE_CHECKING:
    from footlights_bench.scenario.definition import Target
    from footlights_bench.scenario.result import Result


class Standing(StrEnum):
    """What a run says about a target."""

    MET = "met"
    """The whole interval is within the bound."""
    MISSED = "missed"
    """The whole interval is beyond the bound, or nothing was measured."""
    UNDECIDED = "undecided"
    """The bound is inside the interval: these turns are too few to say."""
    NOT_JUDGED = "not judged"
    """A quick run judges nothing."""


@frozen
class Verdict:
    """A target and its measurement: milliseconds, a share, or turns a second. Infinite if too many turns failed."""

    target: Target
    turns: int
    measured: float
    interval: Interval
    bound: float | None
    """None if there is no baseline to multiply."""
    standing: Standing

    @property
    def met(self) -> bool | None:
        return {Standing.MET: True, Standing.MISSED: False}.get(self.standing)

    def to_json(self) -> dict[str, Any]:
        return {
            "target": asdict(self.target),
            "turns": self.turns,
            "measured_ms": finite(self.measured),
            "interval": [finite(self.interval.low), finite(self.interval.high)],
            "bound_ms": self.bound,
            "met": self.met,
            "standing": self.standing.value,
        }


def judged(result: Result, target: Target) -> Verdict:
    match target.metric:
        case Share.FAILED_SHARE:
            failed = result.failed / result.turns if result.turns else inf
            sure = of_share(result.failed, result.turns)
            return _stands(result, target, result.turns, failed, sure, target.at_most_share)
        case Share.GOODPUT:
            good, rate = sum(result.good), result.turns / result.seconds
            sure = of_share(good, result.turns)
            sure = Interval(rate * sure.low, rate * sure.high)
            return _stands(result, target, result.turns, good / result.seconds, sure, target.at_least_per_second)
        case metric:
            assert target.percentile is not None
            bound = target.at_most_ms
            if target.at_most_ratio is not None:
                median = in_ms((result.baseline or {}).get(metric, Histogram()).percentile(50))
                bound = None if median is None else median * target.at_most_ratio
            histogram = result.latencies[metric]
            seconds = of_percentile(histogram, target.percentile)
            interval = Interval(seconds.low * 1e3, seconds.high * 1e3)
            return _stands(
                result, target, histogram.count, histogram.percentile(target.percentile) * 1e3, interval, bound
            )


def _stands(
    result: Result, target: Target, turns: int, measured: float, interval: Interval, bound: float | None
) -> Verdict:
    if result.quick:
        standing = Standing.NOT_JUDGED
    elif bound is None or not turns:
        standing = Standing.MISSED
    elif target.metric is Share.GOODPUT:
        standing = _standing(-interval.high, -interval.low, -bound)
    elif target.metric is Share.FAILED_SHARE and bound == 0:
        standing = Standing.MISSED if measured else Standing.MET  # no number of turns could exclude every failure
    else:
        standing = _standing(interval.low, interval.high, bound)
    return Verdict(target, turns, measured, interval, bound, standing)


def _standing(low: float, high: float, bound: float) -> Standing:
    return Standing.MET if high <= bound else Standing.MISSED if low > bound else Standing.UNDECIDED


def in_ms(seconds: float) -> float | None:
    """None if not finite, which JSON cannot express."""
    return finite(seconds * 1e3)


def finite(value: float) -> float | None:
    return value if isfinite(value) else None


def percentile_name(percent: float) -> str:
    return "max" if percent == 100 else f"p{percent:g}"
