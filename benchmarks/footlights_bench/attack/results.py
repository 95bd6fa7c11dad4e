"""Results of attacks, and their table: attack, bound, measured, verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from footlights_bench.lib.tables import Column, print_sections

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights.events import JsonValue

_COLUMNS = tuple(map(Column, ("attack", "bound", "measured", "verdict")))


@frozen
class Result:
    attack: str
    bound: str
    measured: str
    failures: Sequence[str] = ()
    """Why the attack succeeded, one sentence each; empty if the server held."""
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
    """Print the table, then each failure with its reasons and the command that repeats it."""
    rows = [(result.attack, result.bound, result.measured, result.verdict) for result in results]
    print_sections(_COLUMNS, {"": rows}, styles={"FAILED": "red", "skipped": "dim"})
    for result in results:
        if result.failures:
            print(f"\n{result.attack} FAILED")
            for why in result.failures:
                print(f"  {why}")
            print(f"  Again: {command} --only {result.attack}")
    counted = ", ".join(
        f"{sum(result.verdict == verdict for result in results)} {verdict}" for verdict in ("ok", "FAILED", "skipped")
    )
    print(f"\n{len(results)} attacks: {counted}.")
