"""Plan of a scenario: when each turn is due, its player, and its cancel and cut, all derived from the seed.

The plan does not depend on the system. A turn is due whether or not the one before was answered.
"""

from __future__ import annotations

from math import inf, sqrt
from random import Random
from typing import TYPE_CHECKING

from attrs import frozen

from footlights_bench.scenario.definition import Arrivals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights_bench.scenario.definition import Load, Scenario


@frozen(kw_only=True)
class Arrival:
    """A planned turn. Times are in seconds after the start."""

    number: int
    player: int
    due: float
    said: str = ""
    cancel_due: float | None = None
    """When the player cancels the turn."""
    cut_due: float | None = None
    """When the player's connection is cut."""


def plan(scenario: Scenario) -> Iterator[Arrival]:
    """Every turn in order, generated one by one. The same scenario gives the same plan."""
    load, trouble, says = scenario.load, scenario.trouble, scenario.turn.says
    troubles, choices = Random(load.seed + 1), Random(load.seed + 2)
    texts, weights = [each.text for each in says], [each.weight for each in says]
    for number, due in enumerate(_moments(load)):
        cancels, cuts = troubles.random() < trouble.cancel_share, troubles.random() < trouble.cut_share
        yield Arrival(
            number=number,
            player=number % load.sessions,
            due=due,
            said=choices.choices(texts, weights)[0],
            cancel_due=due + trouble.cancel_after if cancels else None,
            cut_due=due + trouble.cut_after if cuts else None,
        )


def number_of_turns(load: Load) -> int:
    """The number of planned turns."""
    return sum(1 for _ in _moments(load))


def _moments(load: Load) -> Iterator[float]:
    chance = Random(load.seed)
    together = load.burst if load.arrivals is Arrivals.BURSTS else 1
    number, passed, due = 0, 0.0, 0.0
    while due < load.warm_up + load.duration:
        yield due
        number += 1
        passed = (
            passed + chance.expovariate(1.0) if load.arrivals is Arrivals.POISSON else number // together * together
        )
        due = _moment(load, passed)


def _moment(load: Load, turns: float) -> float:
    """When so many turns are due at these rates, which may change evenly during the measurement."""
    rate = load.turns_per_second
    after = turns - rate * load.warm_up
    if load.ramp_to is None or after <= 0:
        return turns / rate
    bend = (load.ramp_to - rate) / (2 * load.duration)
    root = rate * rate + 4 * bend * after
    return inf if root < 0 else load.warm_up + 2 * after / (rate + sqrt(root))
