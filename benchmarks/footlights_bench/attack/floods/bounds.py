"""Bounds of a flood: latency of the bystander and memory of the server, relative to the quiet server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from footlights_bench.lib.percentiles import percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMES_QUIET = 5
LEAST_BOUND_MS = 25.0
LEAST_HTTP_BOUND_MS = 100.0
"""Higher: a request on a new connection waits for the event loop several times."""
MEMORY_GROWTH = 1.10
WARM_UP = 0.5
"""The part of a flood in which buffers may grow. After it, memory must be flat."""
MEMORY_IN_ALL = 2.0
"""The limit of the memory, in multiples of the memory of the quiet server."""
LOG_BYTES_PER_SECOND = 2_000


def bound_ms(quiet_ms: float, least: float = LEAST_BOUND_MS) -> float:
    return max(TIMES_QUIET * quiet_ms, least)


@frozen
class FloodReport:
    """The measurements of one flood. The phases are those of the bystander's report."""

    quiet: dict[str, Any]
    flooded: dict[str, Any]
    seconds: float
    quiet_resident: int | None
    """Resident bytes of the server before the flood; None if its process is not known."""
    resident: Sequence[int]
    """The same at equal intervals of the flood."""
    waited: float | None
    """The part of the flood in which the server was runnable without a processor; None if that cannot be seen."""
    logged: int | None
    """Bytes that the server logged during the flood; None if that cannot be seen."""
    ended: str | None
    """How the server's process ended; None if it runs."""

    @property
    def bound(self) -> str:
        parts = [f"p99 < {bound_ms(_p99(self.quiet['pings'])):,.0f} ms"]
        return ", ".join([*parts, *(["memory +10 %"] if self.resident else [])])

    @property
    def measured(self) -> str:
        parts = [
            f"p99 {_p99(self.quiet['pings']):,.1f} → {_p99(self.flooded['pings']):,.1f} ms",
            f"http {_p50(self.quiet['http']):,.1f} → {_p50(self.flooded['http']):,.1f} ms",
            f"{self.flooded['turns'].get('ok', 0)} turns",
        ]
        if self.resident:
            parts.append(f"{_megabytes(self.quiet_resident or 0)} → {' → '.join(map(_megabytes, self._growth))} MB")
        return ", ".join(parts)

    def failures(self) -> list[str]:
        found = [] if self.ended is None else [self.ended]
        found += [*self._late(), *self._harmed(), *self._grown()]
        allowed = round(LOG_BYTES_PER_SECOND * self.seconds)
        if self.logged is not None and self.logged > allowed:
            found.append(f"The server logged {self.logged:,} bytes; {allowed:,} are allowed.")
        return found

    def _late(self) -> list[str]:
        quiet, flooded = _p99(self.quiet["pings"]), _p99(self.flooded["pings"])
        found: list[str] = []
        if flooded > bound_ms(quiet):
            worst = max(self.flooded["pings"], default=flooded)
            found.append(
                f"Others' ping p99 went from {quiet:,.1f} to {flooded:,.1f} ms (at worst {worst:,.0f} ms); "
                f"{bound_ms(quiet):,.0f} ms are allowed. {self._machine()}"
            )
        quiet, flooded = _p50(self.quiet["http"]), _p50(self.flooded["http"])
        allowed = bound_ms(quiet, LEAST_HTTP_BOUND_MS)
        if flooded > allowed:
            found.append(
                f"Others' HTTP requests went from {quiet:,.1f} to {flooded:,.1f} ms (median); "
                f"{allowed:,.0f} ms are allowed."
            )
        return found

    def _machine(self) -> str:
        """How much of the latency the machine itself may have caused."""
        waited = "" if self.waited is None else f", and the server waited for a processor {self.waited:.0%} of the time"
        return f"The bystander itself woke up {_p99(self.flooded['late']):,.1f} ms late (p99){waited}."

    def _harmed(self) -> list[str]:
        found = [f"The bystander met this {times} times: {what}." for what, times in self.flooded["problems"].items()]
        turns: dict[str, int] = self.flooded["turns"]
        found += [f"{times} turns of the bystander got {what}." for what, times in turns.items() if what != "ok"]
        if not turns.get("ok"):
            found.append("No turn of the bystander was committed.")
        return found

    def _grown(self) -> list[str]:
        if not self.resident:
            return []
        first, last = self._growth
        found: list[str] = []
        if last > first * MEMORY_GROWTH:
            found.append(
                f"The server's memory grew from {_megabytes(first)} to {_megabytes(last)} MB after its warm-up, by "
                f"{(last / first - 1) * 100:.0f} %; 10 % are allowed."
            )
        if self.quiet_resident is not None and last > self.quiet_resident * MEMORY_IN_ALL:
            found.append(
                f"The server's memory grew from {_megabytes(self.quiet_resident)} MB when it was quiet to "
                f"{_megabytes(last)} MB; twice as much is allowed."
            )
        return found

    @property
    def _growth(self) -> tuple[int, int]:
        """The most memory in the warm-up, and the most after it."""
        warm = max(1, int(len(self.resident) * WARM_UP))
        return max(self.resident[:warm]), max(self.resident[warm:] or self.resident[:warm])


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f}"


def _p99(samples: Sequence[float]) -> float:
    # Without samples the bystander could not even send, which is the worst case.
    return percentile(samples, 99) if samples else float("inf")


def _p50(samples: Sequence[float]) -> float:
    return percentile(samples, 50) if samples else float("inf")
