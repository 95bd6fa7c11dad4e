"""`footlights bench core`: the kernel in process, without any transport.

Three questions in one run: how long do the plain calls take and how soon are they seen, how many events a second
reach a subscriber compared with a bare trio channel, and what do sessions and turns weigh.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import trio

from footlights_bench.latency import measure_latency
from footlights_bench.machine import this_machine
from footlights_bench.memory import measure_memory
from footlights_bench.report import Report, print_table
from footlights_bench.scale import FULL, QUICK
from footlights_bench.throughput import measure_throughput

if TYPE_CHECKING:
    from pathlib import Path

    from footlights_bench.figures import Figure

_PARTS = {
    "begin_turn and cancel": measure_latency,
    "events per second": measure_throughput,
    "memory": measure_memory,
}


def run_core(*, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    """Measure, print the table, write the JSON if asked; return the exit code."""
    report = measure_core(quick=quick)
    print_table(report)
    if json_path is not None:
        text = json.dumps(report.to_json(), ensure_ascii=False, indent=2)
        json_path.write_text(text + "\n", encoding="utf-8")
    return report.exit_code(strict=strict)


def measure_core(*, quick: bool) -> Report:
    scale = QUICK if quick else FULL
    machine = this_machine()
    figures: list[Figure] = []
    for name, measure in _PARTS.items():
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        figures += trio.run(measure, scale)
    return Report("core", quick, machine, figures)
