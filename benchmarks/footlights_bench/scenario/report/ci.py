"""Reports for a CI: JUnit's XML, one test case a target, and Markdown for the summary of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from footlights_bench.scenario.report.text import (
    LATENCY_HEADINGS,
    PART_HEADINGS,
    TARGET_HEADINGS,
    bound,
    interval,
    latency_rows,
    measured,
    part_rows,
    played,
    target_name,
    turns,
    verdict_rows,
)
from footlights_bench.scenario.verdict import Standing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights_bench.scenario.result import Result

RUN = "the run"


def junit(result: Result) -> str:
    suite = ElementTree.Element(
        "testsuite", name=f"footlights bench scenario {result.scenario.name}", timestamp=result.at
    )
    _case(suite, result, RUN, _flaw_of_run(result), "failure")
    for verdict in result.verdicts:
        told = f"{bound(verdict)} wanted, {measured(verdict)} measured ({interval(verdict)})"
        kind = "skipped" if verdict.standing is Standing.NOT_JUDGED else "failure"
        flaw = None if verdict.standing is Standing.MET else f"{verdict.standing}: {told}"
        _case(suite, result, target_name(verdict), flaw, kind)
    suite.set("tests", str(1 + len(result.verdicts)))
    suite.set("failures", str(len(suite.findall("*/failure"))))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, result: Result, name: str, flaw: str | None, kind: str) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=result.scenario.name, name=name)
    if flaw is not None:
        ElementTree.SubElement(case, kind, message=flaw)


def _flaw_of_run(result: Result) -> str | None:
    if result.is_invalid:
        return "invalid: " + "; ".join(result.warnings)
    if result.aborted:
        return f"ended before its plan: {result.aborted}"
    return turns(result) if result.failed and not result.scenario.allows_failures else None


def markdown(result: Result, comparison: str) -> str:
    flaw = _flaw_of_run(result)
    parts = [f"### {result.scenario.name}", f"{played(result)}. {turns(result)}."]
    if flaw is not None:
        parts.append(f"**{flaw}**")
    if result.verdicts:
        parts.append(_table(TARGET_HEADINGS, verdict_rows(result)))
    parts += [_table(LATENCY_HEADINGS, latency_rows(result)), _table(PART_HEADINGS, part_rows(result))]
    if comparison:
        parts.append(f"```text\n{comparison}\n```")
    return "\n\n".join(parts) + "\n\n"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
