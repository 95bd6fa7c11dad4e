"""Results of attacks, and the table of them: attack, bound, measured, verdict."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights.events import JsonValue

HEADINGS = ("attack", "bound", "measured", "verdict")


@frozen
class Result:
    attack: str
    bound: str
    measured: str
    failures: Sequence[str] = ()
    """Why it failed, one sentence each; none if the server held."""
    skipped: bool = False

    @property
    def verdict(self) -> str:
        return "skipped" if self.skipped else "FAILED" if self.failures else "ok"

    def to_json(self) -> dict[str, JsonValue]:
        return {
            "attack": self.attack,
            "bound": self.bound,
            "measured": self.measured,
            "verdict": self.verdict,
            "failures": list(self.failures),
        }


def skipped(attack: str, why: str) -> Result:
    return Result(attack, "", why, skipped=True)


def exit_code(results: Sequence[Result]) -> int:
    return 1 if any(result.failures for result in results) else 0


def print_results(results: Sequence[Result], command: str) -> None:
    """The table, then each failure with its reason and the command that repeats it alone."""
    rows = [(result.attack, result.bound, result.measured, result.verdict) for result in results]
    # A pipe gets plain text, whole lines whatever their length.
    if sys.stdout.isatty() and find_spec("rich") is not None:
        _print_rich(rows)
    else:
        _print_plain(rows)
    failed = [result for result in results if result.failures]
    for result in failed:
        print(f"\n{result.attack} FAILED")
        for why in result.failures:
            print(f"  {why}")
        print(f"  Again: {command} --only {result.attack}")
    counted = ", ".join(
        f"{sum(result.verdict == verdict for result in results)} {verdict}" for verdict in ("ok", "FAILED", "skipped")
    )
    print(f"\n{len(results)} attacks: {counted}.")


def _print_plain(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in [HEADINGS, *rows]) for column in range(len(HEADINGS))]
    for row in [HEADINGS, *rows]:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _print_rich(rows: Sequence[tuple[str, ...]]) -> None:
    # Here and not above: the suite works without it.
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(*HEADINGS, box=box.SIMPLE_HEAD, pad_edge=False)
    for row in rows:
        table.add_row(*map(escape, row), style={"FAILED": "red", "skipped": "dim"}.get(row[-1]))
    Console().print(table)
