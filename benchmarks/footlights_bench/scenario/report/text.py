"""Text of a result: the table for a terminal, and the cells that the page shares with it."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from footlights_bench.lib.tables import aligned
from footlights_bench.scenario.definition import Metric, Share
from footlights_bench.scenario.result import PERCENTILES
from footlights_bench.scenario.verdict import Standing, in_ms, percentile_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights_bench.scenario.histogram import Histogram
    from footlights_bench.scenario.result import Result
    from footlights_bench.scenario.verdict import Verdict

MET = {Standing.MET: "yes", Standing.MISSED: "NO"}
LATENCY_HEADINGS = ("ms after it was due", "turns", *map(percentile_name, PERCENTILES))
TARGET_HEADINGS = ("target", "bound", "measured", "95 % sure", "met")
PART_HEADINGS = ("part of the wait, ms", "p50", "p99")
GOOD_HEADINGS = ("of the run", "turns due", "good")


def table(result: Result) -> str:
    lines = [
        f"{result.scenario.name}: {played(result)}",
        f"against {result.system}: {turns(result)}",
        lateness(result),
        "",
        *_aligned(LATENCY_HEADINGS, latency_rows(result)),
    ]
    if result.parts:
        lines += ["", *_aligned(PART_HEADINGS, part_rows(result))]
    if result.verdicts:
        lines += ["", *_aligned(TARGET_HEADINGS, verdict_rows(result))]
    if result.scenario.load.ramp_to is not None:
        lines += ["", *_aligned(GOOD_HEADINGS, good_rows(result))]
    return "\n".join([*lines, *_closing(result)])


def _closing(result: Result) -> list[str]:
    lines = list(result.troubles)
    if result.aborted:
        lines.append(f"The run ended before its plan: {result.aborted}.")
    if result.failed and not result.scenario.allows_failures:
        lines.append("Turns failed, so the run does not pass. A target for failed_share may allow some.")
    if result.undecided:
        names = ", ".join(each.target.name for each in result.undecided)
        lines.append(f"Too few turns to decide: {names}. Play longer, or --repeat; --allow-undecided lets it pass.")
    if result.is_invalid:
        lines.append("INVALID: these may be figures of the harness, not of the server.")
    lines += [f"{'' if result.is_invalid else 'beware: '}{each}" for each in result.warnings]
    return ["", *lines] if lines else []


def played(result: Result) -> str:
    load = result.scenario.load
    rate = f"{load.turns_per_second:g}" + ("" if load.ramp_to is None else f" to {load.ramp_to:g}")
    laps = "" if len(result.laps) == 1 else f", {len(result.laps)} times"
    batch = ", events in batches" if load.batch else ""
    return f"{load.sessions:,} players, {rate} turns/s ({load.arrivals}), {load.duration:g} s{laps}{batch}"


def turns(result: Result) -> str:
    return (
        f"{result.turns:,} turns, {result.failed:,} failed{failures(result)}, {result.in_warm_up:,} before to warm up"
    )


def _aligned(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return aligned([headings, *([f"  {name}", *cells] for name, *cells in rows)])


def latency_rows(result: Result) -> list[tuple[str, ...]]:
    return [
        (metric, f"{each.count:,}", *(ms(in_ms(each.percentile(percent))) for percent in PERCENTILES))
        for metric, each in result.latencies.items()
        if each.count
    ]


def part_rows(result: Result) -> list[tuple[str, ...]]:
    return [
        (part, *(ms(in_ms(each.percentile(percent))) for percent in (50, 99))) for part, each in result.parts.items()
    ]


def good_rows(result: Result) -> list[tuple[str, ...]]:
    """Turns that were due and turns that met every bound, a second, in equal parts of the measurement."""
    seconds = result.seconds / len(result.due)
    step = 100 // len(result.due)
    return [
        (f"{place * step} to {(place + 1) * step} %", f"{due / seconds:.3g}/s", f"{good / seconds:.3g}/s")
        for place, (due, good) in enumerate(zip(result.due, result.good, strict=True))
    ]


def verdict_rows(result: Result) -> list[tuple[str, ...]]:
    return [(target_name(each), bound(each), measured(each), interval(each), met(each)) for each in result.verdicts]


def target_name(verdict: Verdict) -> str:
    target = verdict.target
    percent = "" if target.percentile is None else f" {percentile_name(target.percentile)}"
    return f"{target.name}: {target.metric}{percent}"


def met(verdict: Verdict) -> str:
    return MET.get(verdict.standing, verdict.standing.value)


def bound(verdict: Verdict) -> str:
    ratio = verdict.target.at_most_ratio
    how = "" if ratio is None else f" ({ratio:g}x alone)"
    sign = "≥" if verdict.target.metric is Share.GOODPUT else "≤"
    return f"{sign} {'no baseline' if verdict.bound is None else amount(verdict, verdict.bound)}{how}"


def measured(verdict: Verdict) -> str:
    return amount(verdict, verdict.measured) if verdict.turns else "nothing"


def interval(verdict: Verdict) -> str:
    low, high = verdict.interval.low, verdict.interval.high
    if not verdict.turns:
        return ""
    return f"{amount(verdict, low)} to {amount(verdict, high) if isfinite(high) else '∞'}"


def amount(verdict: Verdict, value: float) -> str:
    match verdict.target.metric:
        case Share.FAILED_SHARE:
            return f"{100 * value:.2g} %"
        case Share.GOODPUT:
            return f"{value:.3g}/s"
        case Metric():
            return ms(value if isfinite(value) else None)


def ms(value: float | None) -> str:
    """Milliseconds with three significant digits; None is a failure."""
    if value is None:
        return "failed"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.2f}"


def lateness(result: Result) -> str:
    """How the harness did. Large values mean that the machine is too slow for this load."""
    late = "began turns {} ms late (p50), {} (p99), {} (max)".format(*_three(result.lag))
    cpu = max((each.cpu for each in result.checked), default=0.0)
    stood = max((each.pauses.percentile(100) for each in result.checked if each.pauses.count), default=0.0)
    return f"the harness {late}, used {100 * cpu:.0f} % of a core, and stood still for up to {ms(stood * 1e3)} ms"


def _three(histogram: Histogram) -> list[str]:
    return [ms(in_ms(histogram.percentile(percent))) for percent in (50, 99, 100)]


def failures(result: Result) -> str:
    """The reasons of failed turns in parentheses, with their numbers; empty if none failed."""
    found = {reason: n for reason, n in result.outcomes.items() if reason not in ("final", "canceled")}
    return f" ({', '.join(f'{reason} {n:,}' for reason, n in sorted(found.items()))})" if found else ""
