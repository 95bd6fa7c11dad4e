"""Comparison of two runs of a scenario, with 95 % confidence intervals of the differences.

Each run is resampled many times (bootstrap, with a fixed seed), and the middle 95 % of the differences is the interval.
Only the rank of the percentile is drawn for a resample. It has a beta distribution, so the result is the same, and long
runs take no longer than short ones. A percentile has no interval if so few turns were measured that all of them may lie
on one side of it. A failed turn is slower than any other, also in a resample. Turns of one run are not independent, so
the interval is a lower bound of the true one: a difference inside it is no change, one outside it may be a change.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from math import ceil, inf, isfinite
from random import Random
from typing import TYPE_CHECKING, Any

from attrs import frozen

from footlights_bench.lib.result_file import UnreadableResult, read_json
from footlights_bench.lib.tables import aligned
from footlights_bench.scenario.definition import Metric
from footlights_bench.scenario.histogram import Histogram
from footlights_bench.scenario.report.text import ms
from footlights_bench.scenario.result import FORMAT, in_ms, percentile_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

RESAMPLES = 2_000
QUICK = "At least one of the runs was a quick run: a smoke test, not a measurement."
_COMPARED = (50.0, 90.0, 99.0)
_EDGE = 0.025


@frozen
class Recorded:
    """The parts of a run that are compared."""

    name: str
    facts: Mapping[str, Any]
    """The machine, the system, the settings of the scenario, and the number of failed turns."""
    latencies: Mapping[Metric, Histogram]
    quick: bool = False


@frozen
class Change:
    """The change of one percentile from the first run to the second, in milliseconds. A time of None is infinite.

    The ends of the interval are infinite if turns failed in only one of the runs.
    """

    metric: Metric
    percent: float
    before: float | None
    after: float | None
    low: float
    high: float
    too_few: bool = False
    """Whether there are too few turns for an interval."""

    @property
    def verdict(self) -> str:
        if self.too_few:
            return "too few turns"
        return "slower" if self.low > 0 else "faster" if self.high < 0 else "no change"


def read_result(file: Path) -> Recorded:
    """Raises `UnreadableResult`."""
    read = read_json(file)
    try:
        if read["format"] != FORMAT:
            raise UnreadableResult(f"{file} was written by another version.")
        latencies = {
            Metric(name): Histogram({int(bucket): int(n) for bucket, n in each["counts"].items()}, int(each["failed"]))
            for name, each in read["latencies"].items()
        }
        return Recorded(
            name=str(read["scenario"]["name"]), facts=_facts(read), latencies=latencies, quick=bool(read["quick"])
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UnreadableResult(f"{file} is not the result of a scenario.") from None


def _facts(read: Mapping[str, Any]) -> Mapping[str, Any]:
    described = {
        f"{part}.{setting}": value
        for part in ("load", "turn", "trouble")
        for setting, value in read["scenario"][part].items()
    }
    failed = f"{read['failed']} of {read['turns']} turns"
    # "system" is the operating system of the machine.
    return {**read["machine"], "against": read["system"], **described, "failed": failed}


def changes(before: Recorded, after: Recorded) -> Iterator[Change]:
    """The changes of all percentiles that both runs have, in order."""
    for metric in Metric:
        if metric in before.latencies and metric in after.latencies:
            for percent in _COMPARED:
                yield change(metric, percent, before.latencies[metric], after.latencies[metric])


def change(metric: Metric, percent: float, before: Histogram, after: Histogram) -> Change:
    was, now = in_ms(before.percentile(percent)), in_ms(after.percentile(percent))
    if _are_too_few(min(before.count, after.count), percent):
        return Change(metric, percent, was, now, -inf, inf, too_few=True)
    chance = Random(0)
    were, are = _resampled(before, percent, chance), _resampled(after, percent, chance)
    differences = sorted(map(_difference_ms, were, are))
    low, high = differences[int(RESAMPLES * _EDGE)], differences[int(RESAMPLES * (1 - _EDGE))]
    return Change(metric, percent, was, now, low, high)


def _difference_ms(then: float, now: float) -> float:
    """Two failures do not differ, although inf - inf is NaN."""
    return 0.0 if then == now else 1e3 * (now - then)


def _are_too_few(turns: int, percent: float) -> bool:
    """Whether all turns may lie on one side of the true percentile, with a probability of more than 2.5 %."""
    share = percent / 100
    return max(share**turns, (1 - share) ** turns) > _EDGE


def comparison(before: Recorded, after: Recorded) -> str:
    """The comparison as text."""
    rows = [("ms", "before", "after", "difference (95 %)", ""), *map(_row, changes(before, after))]
    lines = aligned(rows)
    if before.name != after.name:
        lines.insert(0, f"These are different scenarios: {before.name} and {after.name}.")
    if before.quick or after.quick:
        lines.append(QUICK)
    return "\n".join([*lines, *differing_facts(before.facts, after.facts)])


def differing_facts(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """A line for each fact that differs."""
    for fact in sorted(before.keys() | after.keys()):
        was, now = before.get(fact), after.get(fact)
        if was != now:
            yield f"{fact}: {was} before, {now} after"


def _resampled(histogram: Histogram, percent: float, chance: Random) -> list[float]:
    """The percentile of each resample, in seconds."""
    passed = list(accumulate(number for _, number in histogram))
    latencies = [*(seconds for seconds, _ in histogram), inf]
    count, rank = histogram.count, histogram.rank(percent)
    return [
        latencies[bisect_left(passed, ceil(count * chance.betavariate(rank, count - rank + 1)))]
        for _ in range(RESAMPLES)
    ]


def _row(change: Change) -> tuple[str, ...]:
    name = f"  {change.metric} {percentile_name(change.percent)}"
    interval = "" if change.too_few else f"{_signed(change.low)} to {_signed(change.high)}"
    return (name, ms(change.before), ms(change.after), interval, change.verdict)


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{ms(abs(value)) if isfinite(value) else '∞'}"
