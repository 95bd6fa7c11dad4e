"""Everything that `make performance` measures, in its order, and how each is started."""

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
    """What wrote the result, and so what it holds."""

    BENCH = "bench"
    SCENARIO = "scenario"
    RACE = "race"


@frozen
class Suite:
    name: str
    kind: Kind
    seconds: float
    """How long it took when this was written. Of a second run, the first one is the better guess."""
    quick_seconds: float
    is_long: bool = False
    """Measured only by those who ask for it; for the others its last result stays."""

    def command(self, result: Path, *, quick: bool) -> Sequence[str]:
        """Writes its result to that file, and does not fail only because an aim was missed."""
        how = {
            Kind.BENCH: ("footlights_transports", "bench", self.name),
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
    """Why a suite cannot be measured on this machine, if it cannot."""
    if suite.name != "models":
        return None
    try:
        find(_WEIGHTS)
    except FootlightsError:
        return f"there are no weights here; `footlights models fetch {_WEIGHTS}` gets them"
    return None
