"""The result of a benchmark, for people as a table and for programs as JSON."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from itertools import groupby
from typing import TYPE_CHECKING, TypeAlias

from attrs import asdict, evolve, frozen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from footlights.events import JsonValue
    from footlights_bench.lib.figures import Figure
    from footlights_bench.lib.machine import Machine

Row: TypeAlias = tuple[str, str, str, str, str]

_HEADINGS: Row = ("what", "value", "also", "aim", "met")
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
        """A missed aim is a failure only for those who ask: a busy machine misses some by itself."""
        return 1 if strict and self.missed else 0

    def to_json(self) -> dict[str, JsonValue]:
        return {**asdict(self), "figures": [{**asdict(figure), "met": figure.met} for figure in self.figures]}


def publish(report: Report, json_path: Path | None, *, strict: bool) -> int:
    """Write the JSON if asked, print the table; return the exit code. The run is over when this is called."""
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
    # A pipe gets plain text, whole lines whatever their length.
    if sys.stdout.isatty() and find_spec("rich") is not None:
        _print_rich(sections)
    else:
        _print_plain(sections)


def row(figure: Figure) -> Row:
    """As people read it."""
    others = ", ".join(f"{name} {_number(value, figure)}" for name, value in figure.spread.items())
    met = {None: "", True: "yes", False: "NO"}[figure.met]
    return (f"  {figure.name}", f"{_number(figure.value, figure)} {figure.unit}", others, _aim(figure), met)


def _aim(figure: Figure) -> str:
    if figure.aim is None:
        return ""
    return f"{_SIGNS[figure.aim.kind]} {_number(figure.aim.bound, figure)}"


def _number(value: float, figure: Figure) -> str:
    if figure.unit == "times":  # whole, unless they are spread over something
        return f"{value:,.2f}".removesuffix(".00")
    return f"{value:,.2f}" if figure.unit == "x" else f"{value:,.0f}"


def _print_plain(sections: dict[str, list[Row]]) -> None:
    rows = [_HEADINGS, *(row for section in sections.values() for row in section)]
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]

    def print_row(row: Row) -> None:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    print_row(_HEADINGS)
    for subject, section in sections.items():
        print(subject)
        for row in section:
            print_row(row)


def _print_rich(sections: dict[str, list[Row]]) -> None:
    # Here and not above: the harness works without it.
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    what, value, also, aim, met = _HEADINGS
    table.add_column(what, no_wrap=True)
    table.add_column(value, justify="right", no_wrap=True)
    table.add_column(also, style="dim")
    table.add_column(aim, justify="right", no_wrap=True)
    table.add_column(met)
    for subject, section in sections.items():
        table.add_row(f"[bold]{subject}[/bold]")
        for row in section:
            table.add_row(*row, style="red" if row[-1] == "NO" else None)
        table.add_section()
    Console().print(table)
