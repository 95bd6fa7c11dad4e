"""A cohort of made-up people: how many keep to a habit, week by week, with and without help.

The same plan gives the same numbers in any process, under any Python: everything is counted in whole numbers, and
chance is SplitMix64 (Steele, Lea and Flood, 2014), one stream for each person. So a person is the same person in a
longer study, or in a study with other arms. The chances are invented: this shows how such a study is run, and says
nothing about real people.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from attrs import field, frozen

from footlights.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable

PEOPLE = (8, 2_000)
WEEKS = (1, 52)
SEEDS = (0, 2**32 - 1)

_MASK = 2**64 - 1
_ALL = 10_000
"""Chances are parts of this many."""


@frozen(kw_only=True)
class CohortPlan:
    """Who is studied, and for how long. Raises `ToolError` for a study that cannot be run."""

    people: int = 200
    weeks: int = 12
    onboarding: bool = True
    """Whether some are shown how to begin."""
    reminders: bool = True
    """Whether some are reminded each week."""
    seed: int = 1

    def __attrs_post_init__(self) -> None:
        for name, (least, most) in (("people", PEOPLE), ("weeks", WEEKS), ("seed", SEEDS)):
            if not least <= getattr(self, name) <= most:
                raise ToolError(f"{name} must be from {least} to {most}.")

    @property
    def arms(self) -> tuple[str, ...]:
        """The groups that people are put into, one after the other."""
        kinds = [("onboarding", self.onboarding), ("reminders", self.reminders)]
        given = [name for name, is_given in kinds if is_given]
        return ("control", *given, *(["both"] if len(given) == len(kinds) else []))


def _numbers(given: Iterable[int]) -> tuple[int, ...]:
    return tuple(given)


@frozen
class ArmCount:
    """What became of one group."""

    arm: str
    people: int
    adherent: tuple[int, ...] = field(converter=_numbers)
    """How many kept to it, in each week."""
    squares: int
    """The weeks that each of them kept to it, squared and added up: how much they differ."""


@frozen
class Cohort:
    """A plan, and what became of it."""

    plan: CohortPlan
    arms: tuple[ArmCount, ...]


@lru_cache(maxsize=64)
def simulate(plan: CohortPlan) -> Cohort:
    """Run the study. The largest takes a tenth of a second, so the last ones are remembered for the rule."""
    adherent = {arm: [0] * plan.weeks for arm in plan.arms}
    squares = dict.fromkeys(plan.arms, 0)
    people = dict.fromkeys(plan.arms, 0)
    seeds = Chance(plan.seed)
    for number in range(plan.people):
        arm = plan.arms[number % len(plan.arms)]
        weeks_kept = _weeks_kept(Chance(seeds.next()), arm, plan.weeks)
        for week in weeks_kept:
            adherent[arm][week - 1] += 1
        squares[arm] += len(weeks_kept) ** 2
        people[arm] += 1
    return Cohort(plan, tuple(ArmCount(arm, people[arm], adherent[arm], squares[arm]) for arm in plan.arms))


def _weeks_kept(chance: Chance, arm: str, weeks: int) -> list[int]:
    habit = 3_000 + chance.below(3_001) + chance.below(3_001)
    kept: list[int] = []
    for week in range(1, weeks + 1):
        # Both are drawn in every week, so that what came before does not shift what comes after.
        leaves, keeps = chance.below(_ALL), chance.below(_ALL)
        if leaves < _chance_to_leave(arm, week):
            break
        if keeps < habit + _boost(arm, week) - 120 * (week - 1):
            kept.append(week)
    return kept


def _chance_to_leave(arm: str, week: int) -> int:
    is_new = arm in ("onboarding", "both") and week <= 4
    return (150 if is_new else 300) - (75 if arm in ("reminders", "both") else 0)


def _boost(arm: str, week: int) -> int:
    shown = max(0, 1_500 - 150 * (week - 1)) if arm in ("onboarding", "both") else 0
    reminded = (900 if week <= 8 else 450) if arm in ("reminders", "both") else 0  # people stop noticing
    return shown + reminded


class Chance:
    """SplitMix64: whole numbers that look like chance, and are the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def next(self) -> int:
        """The next 64 bits."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return mixed ^ (mixed >> 31)

    def below(self, limit: int) -> int:
        """From 0 up to and without `limit`."""
        return (self.next() * limit) >> 64
