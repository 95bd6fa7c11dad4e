"""`footlights bench compare`: the changes between two results of a scenario or of another benchmark.

Results of scenarios hold every latency, so their differences have confidence intervals. Results of the other benchmarks
hold figures without samples, so only the ratios are shown, and whether the laps of the two runs overlap.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from footlights_bench.lib.figure_file import UnreadableResult, read_figures, read_json
from footlights_bench.lib.report import row
from footlights_bench.lib.tables import aligned
from footlights_bench.scenario.compare import QUICK, comparison, differing_facts, read_result

if TYPE_CHECKING:
    from pathlib import Path

    from footlights_bench.lib.figure_file import RecordedFigures
    from footlights_bench.lib.figures import Figure

_NO_INTERVALS = (
    "These results hold no samples, so there are no confidence intervals. `apart` means that all laps of one run are"
    " above all laps of the other. Repeat both runs before you believe a small change."
)


def compared(before: Path, after: Path) -> str:
    """The comparison as text. Raises `UnreadableResult`."""
    scenarios = [read_json(file).get("bench") == "scenario" for file in (before, after)]
    if all(scenarios):
        return comparison(read_result(before), read_result(after))
    if any(scenarios):
        raise UnreadableResult(f"{before} and {after} are results of different kinds: one is of a scenario.")
    return figures_compared(read_figures(before), read_figures(after))


def figures_compared(before: RecordedFigures, after: RecordedFigures) -> str:
    """The comparison as text."""
    old = {(figure.subject, figure.name): figure for figure in before.figures}
    rows: list[tuple[str, ...]] = [("", "before", "after", "ratio", "laps", "aim")]
    for subject, figures in groupby(after.figures, lambda figure: figure.subject):
        rows.append((subject, "", "", "", "", ""))
        rows += [_row(old.pop((subject, figure.name), None), figure) for figure in figures]
    lines = aligned(rows)
    if before.bench != after.bench:
        lines.insert(0, f"These are different benchmarks: {before.bench} and {after.bench}.")
    lines += [f"only before: {subject}: {name}" for subject, name in old]
    if before.quick or after.quick:
        lines.append(QUICK)
    return "\n".join([*lines, *differing_facts(before.machine, after.machine), _NO_INTERVALS])


def _row(before: Figure | None, after: Figure) -> tuple[str, ...]:
    now = row(after)
    if before is None:
        return (now[0], "", now[1], "", "", "only after")
    ratio = f"{after.value / before.value:.2f}x" if before.value else ""
    return (now[0], row(before)[1], now[1], ratio, _laps(before, after), _aim(before, after))


def _laps(before: Figure, after: Figure) -> str:
    if not all({"min", "max"} <= each.spread.keys() for each in (before, after)):
        return ""
    is_apart = before.spread["max"] < after.spread["min"] or after.spread["max"] < before.spread["min"]
    return "apart" if is_apart else "overlap"


def _aim(before: Figure, after: Figure) -> str:
    if after.met is None:
        return ""
    is_news = before.met is not None and before.met is not after.met
    return ("now " if is_news else "") + ("met" if after.met else "MISSED")
