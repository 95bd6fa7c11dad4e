"""Report: the figures of one benchmark run, printed as a table and written as JSON."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias, TypeVarTuple

import trio
from attrs import asdict, evolve, frozen

from footlights_bench.lib.machine import this_machine
from footlights_bench.lib.progress import say
from footlights_bench.lib.tables import Column, print_sections

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from footlights.events import JsonValue
    from footlights_bench.lib.machine import Machine
    from suites.lib.figures import Figure

Row: TypeAlias = tuple[str, str, str, str, str]
_Arguments = TypeVarTuple("_Arguments")

_COLUMNS = (
    Column("what"),
    Column("value", is_number=True),
    Column("also", is_dim=True),
    Column("aim", is_number=True),
    Column("met"),
)
_SIGNS = {"below": "<", "at most": "≤", "at least": "≥"}


@frozen
class Report:
    bench: str
    quick: bool
    machine: Machine
    figures: Sequence[Figure]

    @property
    def missed(self) -> list[Figure]:
        return [figure for figure in self.figures if figure.met is False]

    def exit_code(self, *, strict: bool) -> int:
        """1 for a missed aim only if `strict`: other load on the machine is enough to miss some."""
        return 1 if strict and self.missed else 0

    def to_json(self) -> dict[str, JsonValue]:
        return {**asdict(self), "figures": [{**asdict(figure), "met": figure.met} for figure in self.figures]}


def in_trio(
    measure: Callable[[*_Arguments], Awaitable[Sequence[Figure]]], *arguments: *_Arguments
) -> Callable[[], Sequence[Figure]]:
    """An asynchronous part of a suite, for `run_suite`: each part has a trio run of its own."""
    return lambda: trio.run(measure, *arguments)


def run_suite(
    bench: str,
    parts: Mapping[str, Callable[[], Sequence[Figure]]],
    *,
    quick: bool,
    json_path: Path | None,
    strict: bool,
) -> int:
    """Measure the parts in order, print the table and write the JSON; return the exit code."""
    machine = this_machine()
    figures: list[Figure] = []
    for name, measure in parts.items():
        say(f"measuring {name}")
        figures += measure()
    return publish(Report(bench, quick, machine, figures), json_path, strict=strict)


def publish(report: Report, json_path: Path | None, *, strict: bool) -> int:
    """Write the JSON, then print the table; return the exit code. Call this as soon as the run is over."""
    report = evolve(report, machine=report.machine.afterwards())
    if json_path is not None:
        text = json.dumps(report.to_json(), ensure_ascii=False, indent=2)
        json_path.write_text(text + "\n", encoding="utf-8")
    print_table(report)
    return report.exit_code(strict=strict)


def print_table(report: Report) -> None:
    sections = {
        subject: [row(figure) for figure in figures]
        for subject, figures in groupby(report.figures, lambda figure: figure.subject)
    }
    print_sections(_COLUMNS, sections, styles={"NO": "red"})


def row(figure: Figure) -> Row:
    """The figure as text: name, value, spread, aim, and whether the aim was met."""
    others = ", ".join(f"{name} {_number(value, figure)}" for name, value in figure.spread.items())
    aim = "" if figure.aim is None else f"{_SIGNS[figure.aim.kind]} {_number(figure.aim.bound, figure)}"
    met = {None: "", True: "yes", False: "NO"}[figure.met]
    return (f"  {figure.name}", f"{_number(figure.value, figure)} {figure.unit}", others, aim, met)


def _number(value: float, figure: Figure) -> str:
    if figure.unit == "times":  # counts are whole numbers, their averages are not
        return f"{value:,.2f}".removesuffix(".00")
    return f"{value:,.2f}" if figure.unit == "x" else f"{value:,.0f}"
