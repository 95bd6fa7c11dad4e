"""How much is measured: enough to trust the numbers, or just enough to see that the harness works."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class Scale:
    crowd: int
    """How many turns run at once where many do."""
    samples: int
    """Calls of each kind that are timed, for each load."""
    laps: int
    """Repetitions whose median counts."""
    turns_per_lap: int
    """Turns of one lap when they run one at a time."""


FULL = Scale(crowd=1_000, samples=1_000, laps=5, turns_per_lap=100)
QUICK = Scale(crowd=20, samples=20, laps=2, turns_per_lap=2)
