"""Incidents: refusals and failures that clients can cause at will, counted by kind.

A log line for each would let a client fill the disk. The first failure of a kind is logged at once, later ones at most
once per interval, with their number; /metrics has every count.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

import trio

from footlights.failures import report

if TYPE_CHECKING:
    from collections.abc import Mapping

INTERVAL = 60.0
"""Seconds between two lines about failures of one kind."""

log = logging.getLogger("footlights.incidents")


class Incidents:
    """Counts of one access, shared by its servers. A kind is a fixed word, never text of a client."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._unwritten: Counter[str] = Counter()
        self._written_at: dict[str, float] = {}

    @property
    def counts(self) -> Mapping[str, int]:
        """Number of incidents of each kind."""
        return self._counts

    def refused(self, kind: str) -> None:
        """Count a refusal. It is not logged, because the client got an error response."""
        self._counts[kind] += 1

    def failed(self, kind: str, error: BaseException, level: int = logging.ERROR) -> None:
        """Count a failure, and log what failed and where, at most once per interval for each kind."""
        self._counts[kind] += 1
        self._unwritten[kind] += 1
        now = trio.current_time()
        before = self._written_at.get(kind)
        if before is not None and now < before + INTERVAL:
            return
        self._written_at[kind] = now
        count = self._unwritten.pop(kind)
        what = f"{kind} failed"
        if before is not None and count > 1:
            what += f" {count} times in {now - before:.0f} s, last"
        report(log, what, error, level)
