"""`footlights bench authority`: what becomes true, in process, on this machine's disk.

Three questions in one run: how many durable commits a second, compared with raw SQLite that writes the same rows;
how long from `turn_final` to `commit_final`; and whether a ledger stays as fast when it grows, also to examine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights_bench.authority.commits import measure_commits
from footlights_bench.authority.growth import measure_growth
from footlights_bench.authority.latency import measure_waits
from footlights_bench.lib.machine import this_machine
from footlights_bench.lib.progress import say
from footlights_bench.lib.report import Report, publish
from footlights_bench.lib.scale import AUTHORITY_FULL, AUTHORITY_QUICK

if TYPE_CHECKING:
    from pathlib import Path

    from footlights_bench.lib.figures import Figure

_PARTS = {
    "commits per second": measure_commits,
    "turn_final to commit_final": measure_waits,
    "growth": measure_growth,
}


def run_authority(*, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    """Measure, print the table, write the JSON if asked; return the exit code."""
    return publish(measure_authority(quick=quick), json_path, strict=strict)


def measure_authority(*, quick: bool) -> Report:
    scale = AUTHORITY_QUICK if quick else AUTHORITY_FULL
    machine = this_machine()
    figures: list[Figure] = []
    for name, measure in _PARTS.items():
        say(f"measuring {name}")
        figures += trio.run(measure, scale)
    return Report("authority", quick, machine, figures)
