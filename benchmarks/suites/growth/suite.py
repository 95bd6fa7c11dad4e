"""`make bench-growth`: whether more sessions or more turns make a turn slower or the process larger.

The suite measures the pauses of the garbage collector, the processor time of a turn while many sessions are open, and
time and memory over very many turns.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights_transports.server.gc_policy import GentleCollector
from suites.growth.cost import measure_cost
from suites.growth.long_run import measure_long_run
from suites.growth.pauses import measure_pauses
from suites.lib.report import in_trio, run_suite

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from suites.lib.figures import Figure


@frozen(kw_only=True)
class GrowthScale:
    sessions: tuple[int, ...]
    """Open sessions of each stage; the first stage is the reference for the others."""
    laps: int
    """Repetitions, of which the median counts."""
    turns_per_lap: int
    long_run: int
    """Turns of the long run; a multiple of ten."""
    streaming: int
    """Sessions that stream while pauses are measured."""
    open_besides: int
    """Sessions that are open and idle meanwhile, in the second of the two loads."""
    seconds: float
    """How long the sessions stream."""


FULL = GrowthScale(
    sessions=(10, 100, 1_000, 10_000),
    laps=31,
    turns_per_lap=100,
    long_run=1_000_000,
    streaming=1_000,
    open_besides=10_000,
    seconds=20.0,
)
QUICK = GrowthScale(
    sessions=(10, 30), laps=2, turns_per_lap=10, long_run=1_000, streaming=10, open_besides=20, seconds=0.1
)


def run(*, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    scale = QUICK if quick else FULL

    def collected(measure: Callable[[GrowthScale], Awaitable[list[Figure]]]) -> list[Figure]:
        # One process holds the sessions of all stages, and a full collection would go through all of them.
        with GentleCollector():
            return trio.run(measure, scale)

    parts: dict[str, Callable[[], Sequence[Figure]]] = {
        "pauses": in_trio(measure_pauses, scale),
        "turns among many sessions": partial(collected, measure_cost),
        "very many turns": partial(collected, measure_long_run),
    }
    return run_suite("growth", parts, quick=quick, json_path=json_path, strict=strict)
