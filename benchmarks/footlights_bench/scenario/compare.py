"""Comparison of two sets of runs of a scenario, by a permutation test over their laps.

Runs on an unchanged machine differ by more than the turns of one run show, so the runs are what is compared, each by
its own percentiles. If nothing has changed, every way to deal all runs into two sets of these sizes is as likely as the
one that happened: the share of the ways with a difference at least as large is the probability of a false alarm. All
percentiles are dealt together and the largest difference counts (maxT, Westfall and Young), so that many percentiles do
not make for many alarms. Latencies are compared by their logarithms, because noise multiplies.
"""

from __future__ import annotations

from itertools import combinations
from math import comb, exp, inf, isfinite, log, sqrt
from random import Random
from typing import TYPE_CHECKING, Any

from attrs import frozen

from footlights.errors import FootlightsError
from footlights_bench.lib.result_file import UnreadableResult, read_json
from footlights_bench.lib.tables import aligned
from footlights_bench.scenario.definition import Metric
from footlights_bench.scenario.histogram import Histogram
from footlights_bench.scenario.intervals import ranks
from footlights_bench.scenario.parts import Part, grown
from footlights_bench.scenario.report.text import ms
from footlights_bench.scenario.result import FORMAT
from footlights_bench.scenario.verdict import percentile_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from footlights_bench.scenario.result import Result

LEAST_RUNS = 4
"""In each set. With fewer, no difference is large enough to be more than chance."""
ALPHA = 0.05
MIN_EFFECT = 0.05
"""The smallest change that is worth a verdict."""
QUICK = "At least one of the runs was a quick run: a smoke test, not a measurement."
_COMPARED = (50.0, 90.0, 99.0)
_MOST_WAYS = 2_000
_NOISE_FLOOR = 0.01
"""Added to the noise of every percentile: three runs that happen to agree are no proof of a quiet machine."""
_FAILED = 1e6
"""Seconds that stand for a percentile among failed turns."""
_SHORTEST = 1e-5


class TooFewRuns(FootlightsError):
    """The sets of runs are too small for a verdict."""

    code = "too_few_runs"


@frozen
class Run:
    turns: int
    failed: int
    latencies: Mapping[Metric, Histogram]
    parts: Mapping[Part, Histogram]


@frozen
class Recorded:
    """A set of runs of one scenario."""

    name: str
    facts: Mapping[str, Any]
    """The machine, the system and the settings of the scenario."""
    runs: Sequence[Run]
    quick: bool = False
    invalid: bool = False
    """Whether the harness was the bottleneck in one of them."""

    @property
    def failed(self) -> int:
        return sum(run.failed for run in self.runs)


@frozen
class Change:
    """The change of one percentile. Times are means over the runs, in seconds; infinite if turns failed."""

    metric: Metric
    percent: float
    before: float
    after: float
    share: float
    """How much slower: 0.1 is ten percent."""
    chance: float
    """The probability of a change as large in any of the percentiles, if nothing has changed."""
    verdict: str


# -- reading


def read_set(path: Path) -> Recorded:
    """The runs in a file, or in all files of a folder. Raises `UnreadableResult`."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    sets = [_read(file) for file in files]
    if not sets:
        raise UnreadableResult(f"{path} has no results.")
    if {each.name for each in sets} != {sets[0].name}:
        raise UnreadableResult(f"{path} has results of different scenarios.")
    return Recorded(
        sets[0].name,
        sets[0].facts,
        [run for each in sets for run in each.runs],
        any(each.quick for each in sets),
        any(each.invalid for each in sets),
    )


def _read(file: Path) -> Recorded:
    read = read_json(file)
    try:
        if read["format"] != FORMAT:
            raise UnreadableResult(f"{file} was written by another version.")
        runs = [
            Run(
                int(lap["turns"]),
                int(lap["failed"]),
                {Metric(name): _histogram(each) for name, each in lap["latencies"].items()},
                {Part(name): _histogram(each) for name, each in lap["parts"].items()},
            )
            for lap in read["laps"]
        ]
        facts = _facts(read)
        return Recorded(
            str(read["scenario"]["name"]), facts, runs, bool(read["quick"]), bool(read["harness"]["invalid"])
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UnreadableResult(f"{file} is not the result of a scenario.") from None


def _histogram(read: Mapping[str, Any]) -> Histogram:
    return Histogram({int(bucket): int(n) for bucket, n in read["counts"].items()}, int(read["failed"]))


def _facts(read: Mapping[str, Any]) -> Mapping[str, Any]:
    described = {
        f"{part}.{setting}": value
        for part in ("load", "turn", "trouble")
        for setting, value in read["scenario"][part].items()
    }
    # "system" is the operating system of the machine.
    return {**read["machine"], "against": read["system"], **described}


def recorded(result: Result) -> Recorded:
    """The runs that have just been played."""
    runs = [Run(lap.turns, lap.failed, lap.latencies, lap.parts) for lap in result.laps]
    return Recorded(result.scenario.name, _facts(result.to_json()), runs, quick=result.quick, invalid=result.is_invalid)


# -- comparing


def changes(before: Recorded, after: Recorded, min_effect: float = MIN_EFFECT) -> list[Change]:
    """The changes of the percentiles that every run has turns enough for."""
    runs = [*before.runs, *after.runs]
    compared = [
        (metric, percent)
        for metric in Metric
        for percent in _COMPARED
        if all(metric in run.latencies and _has_enough(run.latencies[metric], percent) for run in runs)
    ]
    logs = [[_log(run.latencies[metric].percentile(percent)) for run in runs] for metric, percent in compared]
    first = len(before.runs)
    chances = _chances(logs, first) if min(first, len(after.runs)) >= LEAST_RUNS else None
    found: list[Change] = []
    for place, (metric, percent) in enumerate(compared):
        was, now = _mean(logs[place][:first]), _mean(logs[place][first:])
        share, chance = exp(now - was) - 1, 1.0 if chances is None else chances[place]
        verdict = _verdict(share, chance, min_effect) if chances is not None else "too few runs"
        found.append(Change(metric, percent, _seconds(was), _seconds(now), share, chance, verdict))
    return found


def _verdict(share: float, chance: float, min_effect: float) -> str:
    if chance > ALPHA or abs(share) < min_effect:
        return "no change"
    return "slower" if share > 0 else "faster"


def _chances(logs: Sequence[Sequence[float]], first: int) -> list[float]:
    """For each percentile the share of the ways to deal the runs in which the largest difference is as large."""
    total = len(logs[0]) if logs else 0
    observed = [_difference(each, range(first)) for each in logs]
    largest = [max((_difference(each, way) for each in logs), default=0.0) for way in _ways(total, first)]
    return [sum(each >= seen - 1e-9 for each in largest) / len(largest) for seen in observed]


def _ways(total: int, first: int) -> Iterator[Sequence[int]]:
    """Every way to choose the first set, or as many random ones as are enough, with the one that happened."""
    if comb(total, first) <= _MOST_WAYS:
        yield from combinations(range(total), first)
        return
    chance = Random(0)
    yield range(first)
    for _ in range(_MOST_WAYS - 1):
        yield chance.sample(range(total), first)


def _difference(values: Sequence[float], way: Iterable[int]) -> float:
    """How far the means of the two sets are apart, in units of the noise within them."""
    chosen = set(way)
    one = [values[place] for place in chosen]
    other = [value for place, value in enumerate(values) if place not in chosen]
    apart = abs(_mean(one) - _mean(other))
    squares = sum((each - _mean(one)) ** 2 for each in one) + sum((each - _mean(other)) ** 2 for each in other)
    return apart / (sqrt(squares / max(1, len(values) - 2)) + _NOISE_FLOOR)


def _has_enough(histogram: Histogram, percent: float) -> bool:
    """Whether the percentile has an interval; p99 takes 368 turns."""
    return None not in ranks(histogram.count, percent / 100)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _log(seconds: float) -> float:
    return log(min(max(seconds, _SHORTEST), _FAILED))


def _seconds(logarithm: float) -> float:
    return inf if logarithm >= log(_FAILED) - 1 else exp(logarithm)


# -- telling


@frozen
class Comparison:
    before: Recorded
    after: Recorded
    changes: Sequence[Change]

    @property
    def regressions(self) -> list[str]:
        """Why the second set must not pass."""
        slower = [f"{each.metric} {percentile_name(each.percent)}" for each in self.changes if each.verdict == "slower"]
        found = [f"slower: {', '.join(slower)}"] if slower else []
        if self.after.failed:
            found.append(f"{self.after.failed:,} turns failed")
        if self.after.invalid or self.before.invalid:
            found.append("the harness was the bottleneck in at least one of the runs")
        return found

    @property
    def grown_part(self) -> tuple[Part, float] | None:
        """The part of the wait that grew the most, and by how many milliseconds."""
        return grown(_parts(self.before), _parts(self.after))

    def check_size(self) -> None:
        """Raises `TooFewRuns` if there can be no verdict."""
        if min(len(self.before.runs), len(self.after.runs)) < LEAST_RUNS:
            raise TooFewRuns(
                f"A verdict takes at least {LEAST_RUNS} runs of each; there are {len(self.before.runs)} and"
                f" {len(self.after.runs)}. Play more with --repeat."
            )

    def text(self) -> str:
        rows = [("ms", "before", "after", "change", "by chance", ""), *map(_row, self.changes)]
        lines = aligned(rows)
        if self.before.name != self.after.name:
            lines.insert(0, f"These are different scenarios: {self.before.name} and {self.after.name}.")
        lines.append(f"{len(self.before.runs)} runs before, {len(self.after.runs)} after")
        if self.grown_part is not None:
            part, by = self.grown_part
            lines.append(f"the part that grew the most: {part}, by {ms(by)} ms")
        lines += [f"does not pass: {each}" for each in self.regressions]
        if self.before.quick or self.after.quick:
            lines.append(QUICK)
        return "\n".join([*lines, *differing_facts(self.before.facts, self.after.facts)])


def compared(before: Recorded, after: Recorded, min_effect: float = MIN_EFFECT) -> Comparison:
    return Comparison(before, after, changes(before, after, min_effect))


def _parts(those: Recorded) -> dict[Part, Histogram]:
    found: dict[Part, Histogram] = {}
    for run in those.runs:
        for part, histogram in run.parts.items():
            found.setdefault(part, Histogram()).add(histogram)
    return found


def differing_facts(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """A line for each fact that differs."""
    for fact in sorted(before.keys() | after.keys()):
        was, now = before.get(fact), after.get(fact)
        if was != now:
            yield f"{fact}: {was} before, {now} after"


def _row(change: Change) -> tuple[str, ...]:
    name = f"  {change.metric} {percentile_name(change.percent)}"
    before, after = (ms(each * 1e3 if isfinite(each) else None) for each in (change.before, change.after))
    share = f"{100 * change.share:+.1f} %" if isfinite(change.before) and isfinite(change.after) else ""
    chance = "" if change.verdict == "too few runs" else f"{100 * change.chance:.1f} %"
    return (name, before, after, share, chance, change.verdict)
