"""Result of a scenario: the latencies, the verdicts on the targets, and the data of the reports."""

from __future__ import annotations

from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

from attrs import asdict, frozen

from footlights_bench.scenario.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from footlights_bench.lib.machine import Machine
    from footlights_bench.scenario.definition import Metric, Scenario, Target
    from footlights_bench.scenario.run import Observed, Sample
    from footlights_bench.scenario.tally import TurnRecord

FORMAT = 1
PERCENTILES = (50.0, 90.0, 99.0, 99.9, 100.0)


@frozen
class Verdict:
    """A target and its measurement. A time of None is infinite."""

    target: Target
    turns: int
    """Turns that have this metric. Without any, the target is missed."""
    measured_ms: float | None
    bound_ms: float | None
    met: bool | None
    """None if the target was not judged."""


@frozen(kw_only=True)
class Result:
    scenario: Scenario
    system: str
    quick: bool
    at: str
    """The start of the run, in UTC."""
    machine: Machine
    latencies: Mapping[Metric, Histogram]
    baseline: Mapping[Metric, Histogram] | None
    outcomes: Mapping[str, int]
    failed: int
    in_warm_up: int
    gaps: int
    turned_away: int
    cuts: int
    lag: Histogram
    """How late the harness began turns."""
    samples: Sequence[Sample]
    timelines: Sequence[TurnRecord]

    @property
    def verdicts(self) -> Sequence[Verdict]:
        return [self._verdict(target) for target in self.scenario.targets]

    @property
    def turns(self) -> int:
        return sum(self.outcomes.values())

    @property
    def missed(self) -> Sequence[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.met is False]

    @property
    def exit_code(self) -> int:
        return 1 if self.missed else 0

    def to_json(self) -> dict[str, Any]:
        latencies = {metric.value: _histogram_json(each) for metric, each in self.latencies.items() if each.count}
        alone = self.baseline or {}
        return {
            "format": FORMAT,
            "bench": "scenario",
            "scenario": asdict(self.scenario),
            "system": self.system,
            "quick": self.quick,
            "at": self.at,
            "machine": asdict(self.machine),
            "turns": self.turns,
            "outcomes": dict(self.outcomes),
            "failed": self.failed,
            "in_warm_up": self.in_warm_up,
            "gaps": self.gaps,
            "turned_away": self.turned_away,
            "cuts": self.cuts,
            "latencies": latencies,
            "baseline": {metric.value: _histogram_json(each) for metric, each in alone.items() if each.count},
            "lag": _histogram_json(self.lag),
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "samples": [asdict(sample) for sample in self.samples],
            "timelines": [asdict(turn) for turn in self.timelines],
        }

    def _verdict(self, target: Target) -> Verdict:
        bound = target.at_most_ms
        if target.at_most_ratio is not None:
            alone = (self.baseline or {}).get(target.metric, Histogram())
            median = in_ms(alone.percentile(50))
            bound = None if median is None else median * target.at_most_ratio
        histogram = self.latencies[target.metric]
        measured = in_ms(histogram.percentile(target.percentile))
        is_met = measured is not None and bound is not None and measured <= bound
        return Verdict(target, histogram.count, measured, bound, None if self.quick else is_met)


def result_of(
    scenario: Scenario, system: str, observed: Observed, machine: Machine, began: datetime, *, quick: bool
) -> Result:
    tally = observed.tally
    return Result(
        scenario=scenario,
        system=system,
        quick=quick,
        at=began.astimezone(UTC).isoformat(timespec="seconds"),
        machine=machine,
        latencies=tally.histograms,
        baseline=observed.baseline,
        outcomes=tally.outcomes,
        failed=tally.failed,
        in_warm_up=tally.in_warm_up,
        gaps=observed.gaps,
        turned_away=observed.turned_away,
        cuts=observed.cuts,
        lag=observed.lag,
        samples=observed.samples,
        timelines=tally.shown,
    )


def in_ms(seconds: float) -> float | None:
    """None if not finite, which JSON cannot express."""
    return seconds * 1e3 if isfinite(seconds) else None


def _histogram_json(histogram: Histogram) -> dict[str, Any]:
    return {
        "count": histogram.count,
        "failed": histogram.failed,
        "ms": {percentile_name(each): in_ms(histogram.percentile(each)) for each in PERCENTILES},
        "counts": {str(bucket): number for bucket, number in histogram.counts.items()},
    }


def percentile_name(percent: float) -> str:
    return "max" if percent == 100 else f"p{percent:g}"
