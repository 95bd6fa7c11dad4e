"""`footlights bench wire`: our servers over loopback, against a bare trio-websocket loop and a bare Hypercorn.

Events a second to one client and to many, and how soon a client sees that its turn was accepted, and that it was
cancelled. The clients of the first are a process of their own that only counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights_bench.lib.machine import this_machine
from footlights_bench.lib.progress import say
from footlights_bench.lib.report import Report, publish
from footlights_bench.lib.scale import WIRE_FULL, WIRE_QUICK
from footlights_bench.wire.latency import measure_latency
from footlights_bench.wire.sse import measure_sse
from footlights_bench.wire.throughput import measure_throughput
from footlights_transports.server.collecting import GentleCollector

if TYPE_CHECKING:
    from pathlib import Path

    from footlights_bench.lib.figures import Figure

_PARTS = {
    "events per second over WebSocket": measure_throughput,
    "events per second over SSE": measure_sse,
    "accept and cancel": measure_latency,
}


def run_wire(*, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    """Measure, print the table, write the JSON if asked; return the exit code."""
    return publish(measure_wire(quick=quick), json_path, strict=strict)


def measure_wire(*, quick: bool) -> Report:
    scale = WIRE_QUICK if quick else WIRE_FULL
    machine = this_machine()
    figures: list[Figure] = []
    with GentleCollector():  # as `footlights serve` does it; for those that we are compared with, too
        for name, measure in _PARTS.items():
            say(f"measuring {name}")
            figures += trio.run(measure, scale)
    return Report("wire", quick, machine, figures)
