"""Result of a scenario: the latencies, the verdicts on the targets, and the data of the reports."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import asdict, frozen

from footlights_bench.scenario.histogram import Histogram
from footlights_bench.scenario.run import INTERRUPTED as STOPPED
from footlights_bench.scenario.self_check import MOST_CPU, MOST_OF_A_BOUND
from footlights_bench.scenario.verdict import Standing, Verdict, in_ms, judged, percentile_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from footlights_bench.lib.machine import Machine
    from footlights_bench.scenario.definition import Metric, Scenario, SystemKind
    from footlights_bench.scenario.parts import Part
    from footlights_bench.scenario.run import Observed, Sample
    from footlights_bench.scenario.self_check import Checked
    from footlights_bench.scenario.tally import TurnRecord

FORMAT = 2
PERCENTILES = (50.0, 90.0, 99.0, 99.9, 100.0)

PASSED, MISSED, INVALID, INTERRUPTED = 0, 1, 3, 130
"""Exit codes."""


@frozen(kw_only=True)
class Lap:
    """One run of several of the same scenario, as `compare` takes it."""

    at: str
    """The start of the run, in UTC."""
    turns: int
    failed: int
    latencies: Mapping[Metric, Histogram]
    parts: Mapping[Part, Histogram]


@frozen(kw_only=True)
class Result:
    scenario: Scenario
    kind: SystemKind
    system: str
    quick: bool
    machine: Machine
    laps: Sequence[Lap]
    latencies: Mapping[Metric, Histogram]
    parts: Mapping[Part, Histogram]
    baseline: Mapping[Metric, Histogram] | None
    outcomes: Mapping[str, int]
    troubles: Sequence[str]
    """What the first errors said."""
    failed: int
    in_warm_up: int
    good: Sequence[int]
    """Turns that met every bound, in ten equal parts of the measurement."""
    due: Sequence[int]
    """All turns, in the same parts."""
    gaps: int
    turned_away: int
    cuts: int
    lag: Histogram
    """How late the harness began turns."""
    checked: Sequence[Checked]
    """How the harness did, in each lap."""
    aborted: str | None
    """Why the run ended before its plan."""
    samples: Sequence[Sample]
    timelines: Sequence[TurnRecord]

    @cached_property
    def verdicts(self) -> Sequence[Verdict]:
        return [judged(self, target) for target in self.scenario.targets]

    @property
    def at(self) -> str:
        return self.laps[0].at

    @property
    def turns(self) -> int:
        return sum(self.outcomes.values())

    @property
    def seconds(self) -> float:
        """How long was measured, in all laps."""
        return self.scenario.load.duration * len(self.laps)

    @property
    def missed(self) -> Sequence[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.standing is Standing.MISSED]

    @property
    def undecided(self) -> Sequence[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.standing is Standing.UNDECIDED]

    @property
    def warnings(self) -> Sequence[str]:
        """Why the figures may be those of the harness."""
        return harness_troubles(self)

    @property
    def is_invalid(self) -> bool:
        """Whether the figures are those of the harness. In process nothing can tell the two apart."""
        return not self.quick and bool(self.warnings) and not self.checked[0].shares_loop

    def exit_code(self, *, allow_undecided: bool = False) -> int:
        if self.aborted == STOPPED:
            return INTERRUPTED
        if self.is_invalid:
            return INVALID
        failed = self.failed and not self.scenario.allows_failures
        undecided = self.undecided and not allow_undecided
        return MISSED if not self.quick and (self.missed or undecided or failed or self.aborted) else PASSED

    def to_json(self) -> dict[str, Any]:
        alone = self.baseline or {}
        scenario = self.scenario
        return {
            "format": FORMAT,
            "bench": "scenario",
            "scenario": {
                "name": scenario.name,
                "about": scenario.about,
                **{name: _plain(part) for name, part in scenario.applied(self.kind).items()},
                "targets": [asdict(target) for target in scenario.targets],
            },
            "system": self.system,
            "kind": self.kind.value,
            "quick": self.quick,
            "at": self.at,
            "aborted": self.aborted,
            "machine": asdict(self.machine),
            "turns": self.turns,
            "outcomes": dict(self.outcomes),
            "troubles": list(self.troubles),
            "failed": self.failed,
            "in_warm_up": self.in_warm_up,
            "goodput": {"due": list(self.due), "good": list(self.good)},
            "gaps": self.gaps,
            "turned_away": self.turned_away,
            "cuts": self.cuts,
            "latencies": _histograms_json(self.latencies),
            "parts": _histograms_json(self.parts),
            "baseline": _histograms_json(alone),
            "lag": _histogram_json(self.lag),
            "harness": {
                "invalid": self.is_invalid,
                "warnings": list(self.warnings),
                "laps": [
                    {
                        "cpu": round(each.cpu, 3),
                        "never_begun": each.never_begun,
                        "pauses": _histogram_json(each.pauses),
                        "lateness": _histogram_json(each.lateness),
                    }
                    for each in self.checked
                ],
            },
            "verdicts": [each.to_json() for each in self.verdicts],
            "laps": [
                {
                    "at": lap.at,
                    "turns": lap.turns,
                    "failed": lap.failed,
                    "latencies": _counts_json(lap.latencies),
                    "parts": _counts_json(lap.parts),
                }
                for lap in self.laps
            ],
            "samples": [asdict(sample) for sample in self.samples],
            "timelines": [asdict(turn, filter=lambda each, _: each.name != "latencies") for turn in self.timelines],
        }


def result_of(
    scenario: Scenario,
    kind: SystemKind,
    system: str,
    runs: Sequence[tuple[str, Observed]],
    machine: Machine,
    *,
    quick: bool,
) -> Result:
    """The result of one run or of several, each with its start. Plots show the last one."""
    all_seen = [seen for _, seen in runs]
    last = all_seen[-1]
    tallies = [seen.tally for seen in all_seen]
    outcomes: dict[str, int] = {}
    for tally in tallies:
        for outcome, number in tally.outcomes.items():
            outcomes[outcome] = outcomes.get(outcome, 0) + number
    return Result(
        scenario=scenario,
        kind=kind,
        system=system,
        quick=quick,
        machine=machine,
        laps=[
            Lap(
                at=at,
                turns=seen.tally.turns,
                failed=seen.tally.failed,
                latencies={metric: each for metric, each in seen.tally.histograms.items() if each.count},
                parts=seen.parts,
            )
            for at, seen in runs
        ],
        latencies=_merged([tally.histograms for tally in tallies]),
        parts=_merged([seen.parts for seen in all_seen]),
        baseline=last.baseline,
        outcomes=outcomes,
        troubles=list(dict.fromkeys(said for seen in all_seen for said in seen.troubles)),
        failed=sum(tally.failed for tally in tallies),
        in_warm_up=sum(tally.in_warm_up for tally in tallies),
        good=[sum(each) for each in zip(*(tally.good for tally in tallies), strict=True)],
        due=[sum(each) for each in zip(*(tally.due for tally in tallies), strict=True)],
        gaps=sum(seen.gaps for seen in all_seen),
        turned_away=sum(seen.turned_away for seen in all_seen),
        cuts=sum(seen.cuts for seen in all_seen),
        lag=_merged([{"lag": seen.lag} for seen in all_seen])["lag"],
        checked=[seen.checked for seen in all_seen if seen.checked is not None],
        aborted=last.aborted,
        samples=last.samples,
        timelines=last.tally.shown,
    )


def harness_troubles(result: Result) -> list[str]:
    """Why what was measured may be the harness and not the system."""
    found: list[str] = []
    cpu = max((each.cpu for each in result.checked), default=0.0)
    if cpu > MOST_CPU:
        found.append(
            f"the harness used {100 * cpu:.0f} % of a core, and {100 * MOST_CPU:.0f} % is the most that is safe"
        )
    never = sum(each.never_begun for each in result.checked)
    if never:
        found.append(f"{never:,} turns were never begun, because the harness came too late to them")
    late = _merged([{"late": each.lateness} for each in result.checked]).get("late", Histogram())
    for verdict in result.verdicts:
        percent, bound = verdict.target.percentile, verdict.bound
        if percent is not None and bound is not None and late.count:
            lateness = late.percentile(percent) * 1e3
            if lateness * MOST_OF_A_BOUND > bound:
                found.append(
                    f"the harness was {lateness:.3g} ms late at {percentile_name(percent)}, which is more than a tenth"
                    f" of the bound of {verdict.target.name}"
                )
    return found


Key = TypeVar("Key")


def _merged(all_parts: Sequence[Mapping[Key, Histogram]]) -> dict[Key, Histogram]:
    found: dict[Key, Histogram] = {}
    for parts in all_parts:
        for name, histogram in parts.items():
            found.setdefault(name, Histogram()).add(histogram)
    return found


def _plain(part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: [asdict(each) for each in value] if name == "says" else value for name, value in part.items()}


def _histograms_json(histograms: Mapping[Any, Histogram]) -> dict[str, Any]:
    return {str(name): _histogram_json(each) for name, each in histograms.items() if each.count}


def _histogram_json(histogram: Histogram) -> dict[str, Any]:
    return {
        "count": histogram.count,
        "failed": histogram.failed,
        "ms": {percentile_name(each): in_ms(histogram.percentile(each)) for each in PERCENTILES},
        "counts": {str(bucket): number for bucket, number in histogram.counts.items()},
    }


def _counts_json(histograms: Mapping[Any, Histogram]) -> dict[str, Any]:
    return {
        str(name): {"failed": each.failed, "counts": {str(bucket): n for bucket, n in each.counts.items()}}
        for name, each in histograms.items()
    }
