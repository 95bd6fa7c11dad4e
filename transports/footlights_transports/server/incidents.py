"""Incidents: refusals and failures that clients can cause at will, counted by kind.

A line in the log for each would let a client fill the disk. Failures of one kind write the first line at once and then
at most one per interval, with how many there were; /metrics has every count.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

import trio

from footlights.failures import describe

if TYPE_CHECKING:
    from collections.abc import Mapping

INTERVAL = 60.0
"""Seconds between two lines about failures of one kind."""

log = logging.getLogger("footlights.incidents")


class Incidents:
    """One for a access, shared by every server in front of it. A kind is a fixed word of ours, never a client's."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._unwritten: Counter[str] = Counter()
        self._written_at: dict[str, float] = {}

    @property
    def counts(self) -> Mapping[str, int]:
        """How many incidents of each kind there were."""
        return self._counts

    def refused(self, kind: str) -> None:
        """Count a refusal. Its client got an answer, so the log needs no line."""
        self._counts[kind] += 1

    def failed(self, kind: str, error: BaseException, level: int = logging.ERROR) -> None:
        """Count a failure, and log what failed and where, unless a line of this kind is younger than the interval."""
        self._counts[kind] += 1
        self._unwritten[kind] += 1
        now = trio.current_time()
        before = self._written_at.get(kind)
        if before is not None and now < before + INTERVAL:
            return
        self._written_at[kind] = now
        count = self._unwritten.pop(kind)
        if before is None or count == 1:
            log.log(level, "%s failed: %s", kind, describe(error))
        else:
            log.log(level, "%s failed %d times in %.0f s, last: %s", kind, count, now - before, describe(error))
