"""How much of the machine others used while something was measured: what a load average cannot tell.

A load average counts what is measured, too. This is the time that all processors worked, without that of the processes
that this one started and that have ended.
"""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter

from attrs import frozen

_STATISTICS = Path("/proc/stat")


@frozen
class Worked:
    """By the processors of the machine, in seconds, since some moment in the past."""

    at: float
    everybody: float
    children: float


def worked(statistics: Path = _STATISTICS) -> Worked | None:
    """None where the system does not tell."""
    if not statistics.exists():
        return None
    _, user, nice, system, *_ = statistics.read_text(encoding="ascii").split("\n", 1)[0].split()
    everybody = (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")
    times = os.times()
    return Worked(perf_counter(), everybody, times.children_user + times.children_system)


def share_of_others(before: Worked | None, after: Worked | None) -> float | None:
    """From 0 to 1, of one processor for each that there is."""
    if before is None or after is None:
        return None
    by_others = (after.everybody - before.everybody) - (after.children - before.children)
    return max(0.0, by_others) / ((after.at - before.at) * (os.cpu_count() or 1))
