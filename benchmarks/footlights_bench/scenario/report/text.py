"""Text of a result: the table for a terminal, and the cells that the page shares with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights_bench.lib.tables import aligned
from footlights_bench.scenario.result import PERCENTILES, in_ms, percentile_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights_bench.scenario.result import Result, Verdict

MET = {None: "not judged", True: "yes", False: "NO"}
LATENCY_HEADINGS = ("ms after it was due", "turns", *map(percentile_name, PERCENTILES))


def table(result: Result) -> str:
    scenario, load = result.scenario, result.scenario.load
    played = f"{load.sessions:,} players, {load.turns_per_second:g} turns/s ({load.arrivals}), {load.duration:g} s"
    turns = f"{result.turns:,} turns, {result.failed:,} failed{failures(result)}"
    lines = [
        f"{scenario.name}: {played}",
        f"against {result.system}: {turns}, {result.in_warm_up:,} before to warm up",
        lateness(result),
        "",
        *_aligned(LATENCY_HEADINGS, latency_rows(result)),
    ]
    if result.verdicts:
        lines += ["", *_aligned(("target", "bound", "measured", "met"), verdict_rows(result))]
    return "\n".join(lines)


def _aligned(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return aligned([headings, *([f"  {name}", *cells] for name, *cells in rows)])


def latency_rows(result: Result) -> list[tuple[str, ...]]:
    return [
        (metric, f"{each.count:,}", *(ms(in_ms(each.percentile(percent))) for percent in PERCENTILES))
        for metric, each in result.latencies.items()
        if each.count
    ]


def verdict_rows(result: Result) -> list[tuple[str, ...]]:
    return [
        (
            f"{each.target.name}: {each.target.metric} {percentile_name(each.target.percentile)}",
            _bound(each),
            ms(each.measured_ms) if each.turns else "nothing",
            MET[each.met],
        )
        for each in result.verdicts
    ]


def _bound(verdict: Verdict) -> str:
    ratio = verdict.target.at_most_ratio
    how = "" if ratio is None else f" ({ratio:g}x alone)"
    return f"≤ {'no baseline' if verdict.bound_ms is None else ms(verdict.bound_ms)}{how}"


def ms(value: float | None) -> str:
    """Milliseconds with three significant digits; None is a failure."""
    if value is None:
        return "failed"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.2f}"


def lateness(result: Result) -> str:
    """How late the harness began turns. A large value means that the machine is too slow for this load."""
    late = [ms(in_ms(result.lag.percentile(percent))) for percent in (50, 99, 100)]
    return "the harness began turns {} ms late (p50), {} (p99), {} (max)".format(*late)


def failures(result: Result) -> str:
    """The reasons of failed turns in parentheses, with their numbers; empty if none failed."""
    found = {reason: n for reason, n in result.outcomes.items() if reason not in ("final", "canceled")}
    return f" ({', '.join(f'{reason} {n:,}' for reason, n in sorted(found.items()))})" if found else ""
