"""`make bench-authority`: durable commits on this machine's disk, in process.

The suite measures durable commits a second compared with raw SQLite that writes the same rows, the latency from
`turn_final` to `commit_final`, turns with one tool a second, and whether a ledger that grows stays as fast to write, to
audit and to replay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from suites.authority.commits import measure_commits
from suites.authority.growth import measure_growth
from suites.authority.latency import measure_waits
from suites.authority.lateness import measure_lateness
from suites.authority.tool_turns import measure_tool_turns
from suites.lib.report import in_trio, run_suite

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@frozen(kw_only=True)
class AuthorityScale:
    batches_per_slice: Mapping[int, int]
    """By the number of commits in a batch."""
    laps: int
    """Slices of each kind, of which the median counts."""
    crowd: int
    """Turns that run at once in the measurements of many turns."""
    turns_alone: int
    """Timed turns when one runs at a time."""
    turns_each: int
    """Turns that each of many sessions plays."""
    longest_turn: float
    """In seconds, for turns that end at random moments."""
    sizes: tuple[int, ...]
    """Commits in a ledger when it is measured, smallest first."""
    batches_at_each_size: int


FULL = AuthorityScale(
    batches_per_slice={1: 500, 64: 50, 256: 20},
    laps=9,
    crowd=500,
    turns_alone=500,
    turns_each=4,
    longest_turn=4.0,
    sizes=(1_000, 10_000, 100_000),
    batches_at_each_size=41,
)
QUICK = AuthorityScale(
    batches_per_slice={1: 4, 64: 1, 256: 1},
    laps=2,
    crowd=10,
    turns_alone=5,
    turns_each=2,
    longest_turn=0.01,
    sizes=(100, 1_000),
    batches_at_each_size=2,
)


def run(*, quick: bool, json_path: Path | None, strict: bool = False) -> int:
    scale = QUICK if quick else FULL
    parts = {
        "commits per second": in_trio(measure_commits, scale),
        "turn_final to commit_final": in_trio(measure_waits, scale),
        "turns with one tool": in_trio(measure_tool_turns, scale),
        "lateness": in_trio(measure_lateness, scale),
        "growth": in_trio(measure_growth, scale),
    }
    return run_suite("authority", parts, quick=quick, json_path=json_path, strict=strict)
