"""How far `bench growth` grows."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class GrowthScale:
    sessions: tuple[int, ...]
    """How many are open, in one stage after the other; the first is what the others are compared with."""
    laps: int
    """Repetitions whose median counts."""
    turns_per_lap: int
    long_run: int
    """Turns of the one long run; a multiple of ten."""
    streaming: int
    """Sessions that stream while pauses are measured."""
    open_besides: int
    """Sessions that are open and silent meanwhile, in the second of the two loads."""
    seconds: float
    """How long they stream."""


GROWTH_FULL = GrowthScale(
    sessions=(10, 100, 1_000, 10_000),
    laps=31,
    turns_per_lap=100,
    long_run=1_000_000,
    streaming=1_000,
    open_besides=10_000,
    seconds=20.0,
)
GROWTH_QUICK = GrowthScale(
    sessions=(10, 30), laps=2, turns_per_lap=10, long_run=1_000, streaming=10, open_besides=20, seconds=0.1
)
