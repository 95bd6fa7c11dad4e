"""Tables on stdout: a rich table in a terminal, aligned plain text in a pipe."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@frozen
class Column:
    """A column of a table. The flags apply to a terminal only."""

    heading: str
    is_number: bool = False
    is_dim: bool = False


def print_sections(
    columns: Sequence[Column], sections: Mapping[str, Sequence[Sequence[str]]], *, styles: Mapping[str, str]
) -> None:
    """Print the rows of each section under its title, if it has one. `styles` are by the last cell of a row."""
    if sys.stdout.isatty():
        _print_rich(columns, sections, styles)
        return
    headings = [column.heading for column in columns]
    lines = aligned([headings, *(row for rows in sections.values() for row in rows)], align=str.ljust)
    print(lines.pop(0))
    for title, rows in sections.items():
        if title:
            print(title)
        for _ in rows:
            print(lines.pop(0))


def aligned(rows: Sequence[Sequence[str]], align: Callable[[str, int], str] = str.rjust) -> list[str]:
    """Rows as lines of equal columns. The first column is aligned to the left, the others by `align`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            align(cell, width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _print_rich(
    columns: Sequence[Column], sections: Mapping[str, Sequence[Sequence[str]]], styles: Mapping[str, str]
) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(
            column.heading,
            justify="right" if column.is_number else "left",
            no_wrap=column.is_number,
            style="dim" if column.is_dim else None,
        )
    for title, rows in sections.items():
        if title:
            table.add_row(f"[bold]{escape(title)}[/bold]")
        for row in rows:
            table.add_row(*map(escape, row), style=styles.get(row[-1]))
        table.add_section()
    Console().print(table)
