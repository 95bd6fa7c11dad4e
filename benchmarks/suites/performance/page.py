"""Performance page: the tables between marks are generated, everything else is written by hand.

    <!-- measured: NAME -->
    tables
    <!-- end -->

Every missed aim must be explained by hand under a heading with its full name: where the time goes, what was tried, and
what the floor is.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

from suites.performance.suites import SUITES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from suites.performance.results import Line, Measured, Results, Taken
    from suites.performance.suites import Suite

BUSY = 0.1
"""A result says so if other programs used more of the machine than this share."""
EXPLAINED_BY = ("**Where the time goes.**", "**What was tried.**", "**The floor.**")
"""The parts that every explanation must have."""

_PART = re.compile(r"(<!-- measured: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_EXPLAINED = re.compile(r"^### `([^`\n]+)`\n(.*?)(?=^##|\Z)", re.DOTALL | re.MULTILINE)
_LOADS = ("load_average", "load_average_after")


def rendered(page: str, results: Results, suites: Sequence[Suite] = SUITES) -> str:
    """The page with the current tables. Raises `KeyError` for a mark with an unknown name, and `UnreadableResult`."""
    runs = results.runs()
    found = {suite.name: results.measured(suite) for suite in suites}
    parts = {name: _suite_part(measured, runs.get(name)) for name, measured in found.items()}
    known = [measured for measured in found.values() if measured is not None]
    parts["machine"] = _machines(known)
    parts["runs"] = _overview(known, runs)
    return _PART.sub(lambda part: f"{part[1]}\n{parts[part[2]]}\n\n{part[3]}", page)


def unshown(page: str, suites: Sequence[Suite] = SUITES) -> Sequence[str]:
    """The suites without a mark on the page."""
    shown = {part[2] for part in _PART.finditer(page)}
    return [suite.name for suite in suites if suite.name not in shown]


def unexplained(page: str, results: Results, suites: Sequence[Suite] = SUITES) -> Sequence[str]:
    """The full names of missed aims that the page does not explain."""
    known = explanations(page)
    measured = [each for suite in suites if (each := results.measured(suite)) is not None]
    return [name for each in measured for name in each.missed if not _is_whole(known.get(name, ""))]


def _is_whole(explanation: str) -> bool:
    return all(part in explanation for part in EXPLAINED_BY)


def explanations(page: str) -> Mapping[str, str]:
    """Explanations by the full name of the aim. Consecutive headings share the text below the last."""
    told: dict[str, str] = {}
    sharing: list[str] = []
    for heading in _EXPLAINED.finditer(page):
        name, text = heading[1], heading[2]
        sharing.append(name)
        if text.strip():
            told.update((each, text.strip()) for each in sharing)
            sharing = []
    return told


def _suite_part(measured: Measured | None, taken: Taken | None) -> str:
    return "\n\n".join([*_remarks(measured, taken), *_tables(measured)])


def _remarks(measured: Measured | None, taken: Taken | None) -> Iterator[str]:
    if measured is None:
        yield "Not measured."
    elif measured.quick:
        yield "**A quick run: it shows that everything works, and measures nothing.** No aim is judged."
    if measured is not None and taken is not None and (taken.others or 0) > BUSY:
        yield (
            f"**The machine was busy:** other programs used {taken.others:.0%} of its processors meanwhile, so take"
            " ratios for what they are and rates for less."
        )
    if taken is not None and taken.trouble is not None:
        yield f"The last attempt gave no result: {taken.trouble}."


def _tables(measured: Measured | None) -> Iterator[str]:
    if measured is not None:
        for subject, lines in groupby(measured.lines, lambda line: line.subject):
            yield _table((subject, "value", "also", "aim", "met"), [_row(line, measured) for line in lines])


def _row(line: Line, measured: Measured) -> tuple[str, ...]:
    judged = {None: "not judged" if measured.quick and line.aim else "", True: "yes", False: "**NO**"}
    return (line.name, line.value, line.also, line.aim, judged[line.met])


def _machines(known: Sequence[Measured]) -> str:
    """The machine; if the suites ran on several, each with its suites."""
    suites_by_facts: dict[str, list[str]] = {}
    for measured in known:
        facts = {name: value for name, value in measured.machine.items() if name not in _LOADS and value is not None}
        told = ", ".join(f"{name} {value}" for name, value in facts.items())
        suites_by_facts.setdefault(told, []).append(measured.suite)
    if len(suites_by_facts) < 2:
        return "\n".join(f"{facts}." for facts in suites_by_facts) or "Nothing was measured."
    return "\n".join(f"- {', '.join(suites)}: {facts}." for facts, suites in suites_by_facts.items())


def _overview(known: Sequence[Measured], runs: Mapping[str, Taken]) -> str:
    heading = ("suite", "measured (UTC)", "commit", "took", "load before", "after", "others", "aims met")
    return _table(heading, [_overview_row(each, runs[each.suite]) for each in known if each.suite in runs])


def _overview_row(measured: Measured, taken: Taken) -> tuple[str, ...]:
    quick = " (quick)" if measured.quick else ""
    commit = (taken.commit or "unknown") + (" and changes" if taken.changed else "")
    loads = [_or_unknown(measured.machine.get(name), ".2f") for name in _LOADS]
    when = taken.at.replace("T", " ")[:16]
    others = _or_unknown(taken.others, ".0%")
    return (measured.suite + quick, when, commit, f"{taken.seconds:,.0f} s", *loads, others, _met(measured))


def _met(measured: Measured) -> str:
    if measured.quick:
        return "not judged"
    return f"{measured.judged - len(measured.missed)} of {measured.judged}" if measured.judged else "none are set"


def _or_unknown(value: float | None, form: str) -> str:
    return "unknown" if value is None else format(value, form)


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(heading) - 1)]
    return "\n".join(f"| {' | '.join(map(_escaped, row))} |" for row in (heading, rule, *rows))


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")
