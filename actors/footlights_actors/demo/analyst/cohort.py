"""Cohort simulation: how many invented people keep a habit, week by week, with and without help.

The same plan gives the same numbers in any process, under any Python: all arithmetic uses integers, and the random
numbers are SplitMix64 (Steele, Lea and Flood, 2014), one stream for each person. So a person is the same in a longer
study, or in a study with other arms. The probabilities are invented: this shows how such a study is run, and is no
evidence about real people.
"""

from __future__ import annotations

from functools import lru_cache

from attrs import field, frozen

from footlights.errors import ToolError

PEOPLE = (8, 2_000)
WEEKS = (1, 52)
SEEDS = (0, 2**32 - 1)

_MASK = 2**64 - 1
_ALL = 10_000
"""Denominator of the probabilities."""


@frozen(kw_only=True)
class CohortPlan:
    """The parameters of a study. Raises `ToolError` for an invalid number."""

    people: int = 200
    weeks: int = 12
    onboarding: bool = True
    """Whether there is an arm with onboarding."""
    reminders: bool = True
    """Whether there is an arm with weekly reminders."""
    seed: int = 1

    def __attrs_post_init__(self) -> None:
        for name, (least, most) in (("people", PEOPLE), ("weeks", WEEKS), ("seed", SEEDS)):
            if not least <= getattr(self, name) <= most:
                raise ToolError(f"{name} must be from {least} to {most}.")

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms, to which people are assigned in turn."""
        kinds = [("onboarding", self.onboarding), ("reminders", self.reminders)]
        given = [name for name, is_given in kinds if is_given]
        return ("control", *given, *(["both"] if len(given) == len(kinds) else []))


@frozen
class ArmCount:
    """The counts of one arm."""

    arm: str
    people: int
    adherent: tuple[int, ...] = field(converter=tuple[int, ...])
    """The number of adherent people in each week."""
    squares: int
    """The sum of squares of each person's adherent weeks, for the variance."""


@frozen
class Cohort:
    """A plan and its counts."""

    plan: CohortPlan
    arms: tuple[ArmCount, ...]


@lru_cache(maxsize=64)
def simulate(plan: CohortPlan) -> Cohort:
    """Run the study. The largest takes a tenth of a second, so recent results are cached for the rule."""
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
        # Both numbers are drawn in every week, so that the stream stays aligned.
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
    """SplitMix64: pseudo-random integers from a seed."""

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
        """An integer from 0 to `limit` - 1."""
        return (self.next() * limit) >> 64
