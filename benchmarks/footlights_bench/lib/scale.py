"""How much is measured: enough to trust the numbers, or just enough to see that the harness works."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping


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


@frozen(kw_only=True)
class AuthorityScale:
    batches_per_slice: Mapping[int, int]
    """By the number of commits in a batch."""
    laps: int
    """Slices of each kind whose median counts."""
    crowd: int
    """How many turns run at once where many do."""
    turns_alone: int
    """Turns that are timed where one runs at a time."""
    turns_each: int
    """Turns that each of many sessions plays."""
    longest_turn: float
    """In seconds, where turns end at uneven moments."""
    sizes: tuple[int, ...]
    """How many commits a ledger holds when it is measured, smallest first."""
    batches_at_each_size: int


AUTHORITY_FULL = AuthorityScale(
    batches_per_slice={1: 500, 64: 50, 256: 20},
    laps=9,
    crowd=500,
    turns_alone=500,
    turns_each=4,
    longest_turn=4.0,
    sizes=(1_000, 10_000, 100_000),
    batches_at_each_size=41,
)
AUTHORITY_QUICK = AuthorityScale(
    batches_per_slice={1: 4, 64: 1, 256: 1},
    laps=2,
    crowd=10,
    turns_alone=5,
    turns_each=2,
    longest_turn=0.01,
    sizes=(100, 1_000),
    batches_at_each_size=2,
)


@frozen(kw_only=True)
class WireScale:
    crowd: int
    """How many clients, or sessions of one client, where there are many."""
    turns_alone: int
    """Turns of one lap where one session plays."""
    laps: int
    """Repetitions whose median counts."""
    samples: int
    """Turns that are begun and cancelled, each timed."""
    audience: int
    """Clients that each begin a turn of their own, evenly over the time that one takes."""


WIRE_FULL = WireScale(crowd=200, turns_alone=50, laps=9, samples=500, audience=1_000)
WIRE_QUICK = WireScale(crowd=3, turns_alone=1, laps=1, samples=5, audience=3)
