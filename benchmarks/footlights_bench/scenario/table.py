"""The result of a scenario as plain text, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights_bench.scenario.result import PERCENTILES, in_ms, percentile_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from footlights_bench.scenario.result import Result, Verdict


def table(result: Result) -> str:
    scenario, load = result.scenario, result.scenario.load
    played = f"{load.sessions:,} players, {load.turns_per_second:g} turns/s ({load.arrivals}), {load.duration:g} s"
    turns = f"{result.turns:,} turns, {result.failed:,} failed{why(result)}"
    lines = [
        f"{scenario.name}: {played}",
        f"against {result.system}: {turns}, {result.in_warm_up:,} before to warm up",
        lateness(result),
        "",
        *aligned([("ms after it was due", "turns", *map(percentile_name, PERCENTILES)), *_latencies(result)]),
    ]
    if result.verdicts:
        rows = [("target", "bound", "measured", "met"), *map(_verdict, result.verdicts)]
        lines += ["", *aligned(rows)]
    return "\n".join(lines)


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(row: Sequence[str]) -> str:
        first, *others = (
            cell.ljust(width) if not place else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join([first, *others]).rstrip()

    return [line(row) for row in rows]


def ms(value: float | None) -> str:
    """Milliseconds, with as many digits as matter."""
    if value is None:
        return "failed"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}" if value >= 1 else f"{value:.2f}"


def bound(verdict: Verdict) -> str:
    ratio = verdict.target.at_most_ratio
    how = "" if ratio is None else f" ({ratio:g}x alone)"
    return f"≤ {'no baseline' if verdict.bound_ms is None else ms(verdict.bound_ms)}{how}"


def lateness(result: Result) -> str:
    """Of the harness. If it is large, the machine is too slow to make this load, or shares its loop with the stage."""
    late = [ms(in_ms(result.lag.percentile(percent))) for percent in (50, 99, 100)]
    return "the harness began turns {} ms late (p50), {} (p99), {} (max)".format(*late)


def measured(verdict: Verdict) -> str:
    return ms(verdict.measured_ms) if verdict.turns else "nothing"


def target_name(verdict: Verdict) -> str:
    target = verdict.target
    return f"{target.name}: {target.metric} {percentile_name(target.percentile)}"


def said(met: bool | None) -> str:
    return {None: "not judged", True: "yes", False: "NO"}[met]


def why(result: Result) -> str:
    """Of turns that failed: the reasons, and how many had each."""
    failures = {reason: n for reason, n in result.outcomes.items() if reason not in ("final", "canceled")}
    return f" ({', '.join(f'{reason} {n:,}' for reason, n in sorted(failures.items()))})" if failures else ""


def _latencies(result: Result) -> Iterator[tuple[str, ...]]:
    for metric, histogram in result.latencies.items():
        if histogram.count:
            yield (
                f"  {metric}",
                f"{histogram.count:,}",
                *(ms(in_ms(histogram.percentile(percent))) for percent in PERCENTILES),
            )


def _verdict(verdict: Verdict) -> tuple[str, ...]:
    return (f"  {target_name(verdict)}", bound(verdict), measured(verdict), said(verdict.met))
