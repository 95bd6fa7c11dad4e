"""Bounds of a flood: what the bystander and the server's memory may feel of it, relative to the quiet server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from footlights_bench.figures import percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMES_QUIET = 5
LEAST_BOUND_MS = 25.0
MEMORY_GROWTH = 1.10
WARM_UP = 0.3
"""The part of a flood in which buffers may grow to their size. From then on memory must be flat."""
LOG_BYTES = 65_536
_MEGABYTE = 1_000_000


def bound_ms(quiet_ms: float) -> float:
    return max(TIMES_QUIET * quiet_ms, LEAST_BOUND_MS)


@frozen
class Watched:
    """What was seen of one flood. Phases are those of the bystander's report."""

    quiet: dict[str, Any]
    flooded: dict[str, Any]
    resident: Sequence[int]
    """Bytes of the server's memory at equal intervals of the flood; empty if its process is not known."""
    logged: int | None
    """Bytes that the server logged meanwhile; None if that cannot be seen."""
    ended: str | None
    """How the server's process ended, if it did."""

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
            first, last = resident_growth(self.resident)
            parts.append(f"{first / _MEGABYTE:,.0f} → {last / _MEGABYTE:,.0f} MB")
        return ", ".join(parts)

    def failures(self) -> list[str]:
        found = [] if self.ended is None else [self.ended]
        found += [*self._late(), *self._harmed(), *self._grown()]
        if self.logged is not None and self.logged > LOG_BYTES:
            found.append(f"The server logged {self.logged:,} bytes; at most {LOG_BYTES:,} are allowed.")
        return found

    def _late(self) -> list[str]:
        quiet, flooded = _p99(self.quiet["pings"]), _p99(self.flooded["pings"])
        found: list[str] = []
        if flooded > bound_ms(quiet):
            late = _p99(self.flooded["late"])
            found.append(
                f"Others' ping p99 went from {quiet:,.1f} to {flooded:,.1f} ms (at worst "
                f"{max(self.flooded['pings'], default=0):,.0f} ms); {bound_ms(quiet):,.0f} ms are allowed. The bystander "
                f"itself woke up {late:,.1f} ms late (p99): if that is much, the machine is busy, and not the server."
            )
        quiet, flooded = _p50(self.quiet["http"]), _p50(self.flooded["http"])
        if flooded > bound_ms(quiet):
            found.append(
                f"Others' HTTP requests went from {quiet:,.1f} to {flooded:,.1f} ms (median); "
                f"{bound_ms(quiet):,.0f} ms are allowed."
            )
        return found

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
        first, last = resident_growth(self.resident)
        if last <= first * MEMORY_GROWTH:
            return []
        return [
            f"The server's memory grew from {first / _MEGABYTE:,.1f} to {last / _MEGABYTE:,.1f} MB after its warm-up, "
            f"by {(last / first - 1) * 100:.0f} %; 10 % are allowed."
        ]


def resident_growth(samples: Sequence[int]) -> tuple[int, int]:
    """The most in the warm-up, and the most after it."""
    warm = max(1, int(len(samples) * WARM_UP))
    return max(samples[:warm]), max(samples[warm:] or samples[:warm])


def _p99(samples: Sequence[float]) -> float:
    # No sample at all is as bad as it gets: the bystander could not even send.
    return percentile(samples, 99) if samples else float("inf")


def _p50(samples: Sequence[float]) -> float:
    return percentile(samples, 50) if samples else float("inf")
