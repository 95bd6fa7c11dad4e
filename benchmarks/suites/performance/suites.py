"""Suites that `make performance` runs, in order, and their commands."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from footlights.errors import FootlightsError
from footlights_actors.models.local.weights import find

if TYPE_CHECKING:
    from collections.abc import Sequence

BENCHMARKS = Path(__file__).parents[2]
_WEIGHTS = "smollm2"


class Kind(StrEnum):
    """The program that writes the result, and so the format of the result."""

    BENCH = "bench"
    SCENARIO = "scenario"
    RACE = "race"


@frozen
class Suite:
    name: str
    kind: Kind
    seconds: float
    """Expected duration of the first run. Later runs take the duration of the last one."""
    quick_seconds: float
    is_long: bool = False
    """Whether the suite runs only on request. Otherwise its last result stays."""

    def command(self, result: Path, *, quick: bool) -> Sequence[str]:
        """The command that writes the result to a file. It does not fail because of a missed aim."""
        how = {
            Kind.BENCH: ("suites", self.name),
            Kind.SCENARIO: ("footlights_transports", "bench", "scenario", self.name),
            Kind.RACE: ("peers.race",),
        }
        also = ("--quick",) if quick else ()
        return (sys.executable, "-m", *how[self.kind], "--json", str(result), *also)


SUITES: Sequence[Suite] = (
    Suite("core", Kind.BENCH, 120, 3),
    Suite("authority", Kind.BENCH, 180, 4),
    Suite("models", Kind.BENCH, 150, 15),
    Suite("wire", Kind.BENCH, 240, 6),
    Suite("embed", Kind.BENCH, 120, 4),
    Suite("start", Kind.BENCH, 60, 10),
    Suite("growth", Kind.BENCH, 1_000, 10, is_long=True),
    Suite("counts", Kind.BENCH, 15, 10),
    Suite("peers", Kind.RACE, 240, 60),
    Suite("tavern", Kind.SCENARIO, 38, 3),
    Suite("raid", Kind.SCENARIO, 60, 4),
    Suite("cold-start", Kind.SCENARIO, 10, 3),
    Suite("cancel-storm", Kind.SCENARIO, 50, 4),
    Suite("slow-clients", Kind.SCENARIO, 65, 4),
)


def why_not_here(suite: Suite) -> str | None:
    """Why a suite cannot run on this machine; None if it can."""
    if suite.name != "models":
        return None
    try:
        find(_WEIGHTS)
    except FootlightsError:
        return f"the weights are missing; get them with `footlights models fetch {_WEIGHTS}`"
    return None
