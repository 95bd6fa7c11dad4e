"""`make bench-core`: latency, throughput and memory of the interaction plane, in process.

The suite measures how long the plain calls take and how soon a subscriber sees their events, how many events a second
reach a subscriber compared with a bare trio channel, and how much memory sessions and turns use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from suites.core.latency import measure_latency
from suites.core.memory import measure_memory
from suites.core.throughput import measure_throughput
from suites.lib.report import in_trio, run_suite

if TYPE_CHECKING:
    from pathlib import Path


@frozen(kw_only=True)
class CoreScale:
    crowd: int
    """Turns that run at once in the measurements of many turns."""
    samples: int
    """Timed calls of each kind, for each load."""
    laps: int
    """Repetitions, of which the median counts."""
    turns_per_lap: int
    """Turns of one lap when they run one at a time."""


FULL = CoreScale(crowd=1_000, samples=1_000, laps=5, turns_per_lap=100)
QUICK = CoreScale(crowd=20, samples=20, laps=2, turns_per_lap=2)


def run(*, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    scale = QUICK if quick else FULL
    parts = {
        "begin_turn and cancel": in_trio(measure_latency, scale),
        "events per second": in_trio(measure_throughput, scale),
        "memory": in_trio(measure_memory, scale),
    }
    return run_suite("core", parts, quick=quick, json_path=json_path, strict=strict)
