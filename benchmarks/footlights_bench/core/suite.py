"""`footlights bench core`: the kernel in process, without any transport.

Three questions in one run: how long do the plain calls take and how soon are they seen, how many events a second
reach a subscriber compared with a bare trio channel, and what do sessions and turns weigh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights_bench.core.latency import measure_latency
from footlights_bench.core.memory import measure_memory
from footlights_bench.core.throughput import measure_throughput
from footlights_bench.lib.machine import this_machine
from footlights_bench.lib.progress import say
from footlights_bench.lib.report import Report, publish
from footlights_bench.lib.scale import FULL, QUICK

if TYPE_CHECKING:
    from pathlib import Path

    from footlights_bench.lib.figures import Figure

_PARTS = {
    "begin_turn and cancel": measure_latency,
    "events per second": measure_throughput,
    "memory": measure_memory,
}


def run_core(*, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    """Measure, print the table, write the JSON if asked; return the exit code."""
    return publish(measure_core(quick=quick), json_path, strict=strict)


def measure_core(*, quick: bool) -> Report:
    scale = QUICK if quick else FULL
    machine = this_machine()
    figures: list[Figure] = []
    for name, measure in _PARTS.items():
        say(f"measuring {name}")
        figures += trio.run(measure, scale)
    return Report("core", quick, machine, figures)
