"""Incidents: refusals and failures that clients can cause at will, counted by kind.

A log line for each would let a client fill the disk. The first failure of a kind is logged at once, later ones at most
once per interval, with their number; /metrics has every count. Refusals that a setting would allow are logged likewise.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

import trio

from footlights.errors import FootlightsError
from footlights.failures import report
from footlights_transports.errors import WIRE_CODES

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

    def refused(self, kind: str, why: str | None = None) -> None:
        """Count a refusal. The client got an error response, so it is logged only with `why`.

        `why` names what to do, in fixed words.
        """
        self._counts[kind] += 1
        if why is not None and (due := self._due(f"{kind}: {why}")):
            count, seconds = due
            log.warning("%s: %s%s", kind, why, f" ({count} times in {seconds:.0f} s)" if count > 1 else "")

    def met(self, kind: str, error: BaseException) -> None:
        """Count a refusal by its code; or a failure, if clients are told no more than that."""
        code = error.code if isinstance(error, FootlightsError) else FootlightsError.code
        if code in WIRE_CODES and code != FootlightsError.code:
            self.refused(f"{kind}_{code}")
        else:
            self.failed(kind, error)

    def failed(self, kind: str, error: BaseException, level: int = logging.ERROR) -> None:
        """Count a failure, and log what failed and where, at most once per interval for each kind."""
        self._counts[kind] += 1
        if due := self._due(kind):
            count, seconds = due
            times = f" {count} times in {seconds:.0f} s, last" if count > 1 else ""
            report(log, f"{kind} failed{times}", error, level)

    def _due(self, line: str) -> tuple[int, float] | None:
        """How many incidents a line is about, and in how many seconds; None if it has been written lately."""
        self._unwritten[line] += 1
        now = trio.current_time()
        before = self._written_at.get(line, now)
        if line in self._written_at and now < before + INTERVAL:
            return None
        self._written_at[line] = now
        return self._unwritten.pop(line), now - before
