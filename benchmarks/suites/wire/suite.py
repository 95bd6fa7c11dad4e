"""`make bench-wire`: our servers over loopback, against a bare trio-websocket loop and a bare Hypercorn.

The suite measures events per second to one client and to many, and how soon a client sees that its turn was accepted
or cancelled. The clients of the throughput run in a process of their own, which only counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from footlights_transports.server.gc_policy import GentleCollector
from suites.lib.report import in_trio, run_suite
from suites.wire.latency import measure_latency
from suites.wire.throughput import measure_sse, measure_throughput

if TYPE_CHECKING:
    from pathlib import Path


@frozen(kw_only=True)
class WireScale:
    crowd: int
    """Clients, or sessions of one client, in the measurements of many."""
    turns_alone: int
    """Turns of one lap with one session."""
    laps: int
    """Repetitions, of which the median counts."""
    samples: int
    """Timed turns that are begun and cancelled."""
    audience: int
    """Clients that each begin a turn, evenly over some seconds."""


FULL = WireScale(crowd=200, turns_alone=50, laps=9, samples=500, audience=1_000)
QUICK = WireScale(crowd=3, turns_alone=1, laps=1, samples=5, audience=3)


def run(*, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    scale = QUICK if quick else FULL
    parts = {
        "events per second over WebSocket": in_trio(measure_throughput, scale),
        "events per second over SSE": in_trio(measure_sse, scale),
        "accept and cancel": in_trio(measure_latency, scale),
    }
    with GentleCollector():  # as in `footlights serve`; the bare servers have it too
        return run_suite("wire", parts, quick=quick, json_path=json_path, strict=strict)
