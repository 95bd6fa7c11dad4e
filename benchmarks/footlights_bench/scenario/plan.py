"""Plan of a scenario: when each turn is due, its player, and its cancel and cut, all derived from the seed.

The plan does not depend on the system. A turn is due whether or not the one before was answered.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from attrs import frozen

from footlights_bench.scenario.definition import Arrivals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights_bench.scenario.definition import Load, Scenario, Trouble


@frozen(kw_only=True)
class Arrival:
    """A planned turn. Times are in seconds after the start."""

    number: int
    player: int
    due: float
    cancel_due: float | None = None
    """When the player cancels the turn."""
    cut_due: float | None = None
    """When the player's connection is cut."""


def plan(scenario: Scenario) -> Iterator[Arrival]:
    """Every turn in order, generated one by one. The same scenario gives the same plan."""
    load, trouble = scenario.load, scenario.trouble
    troubles = Random(load.seed + 1)
    return (
        _arrival(number, number % load.sessions, due, trouble, troubles) for number, due in enumerate(_moments(load))
    )


def number_of_turns(load: Load) -> int:
    """The number of planned turns."""
    return sum(1 for _ in _moments(load))


def _moments(load: Load) -> Iterator[float]:
    chance = Random(load.seed)
    end = load.warm_up + load.duration
    number, due = 0, 0.0
    while due < end:
        yield due
        number += 1
        if load.arrivals is Arrivals.POISSON:
            due += chance.expovariate(load.turns_per_second)
        else:
            together = load.burst if load.arrivals is Arrivals.BURSTS else 1
            due = number // together * together / load.turns_per_second


def _arrival(number: int, player: int, due: float, trouble: Trouble, chance: Random) -> Arrival:
    cancels, cuts = chance.random() < trouble.cancel_share, chance.random() < trouble.cut_share
    return Arrival(
        number=number,
        player=player,
        due=due,
        cancel_due=due + trouble.cancel_after if cancels else None,
        cut_due=due + trouble.cut_after if cuts else None,
    )
