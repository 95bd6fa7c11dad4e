"""Report of a cohort: a table, and the effect of each kind of help. It depends only on the counts.

Numbers are computed exactly and rounded once, so the same counts give the same report everywhere.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING

from attrs import asdict

if TYPE_CHECKING:
    from footlights.events import JsonValue
    from footlights_actors.demo.analyst.cohort import ArmCount, Cohort

_IN_WORDS = {"onboarding": "with onboarding", "reminders": "with reminders", "both": "with onboarding and reminders"}


def report(cohort: Cohort) -> dict[str, JsonValue]:
    """The report as JSON."""
    control, weeks = cohort.arms[0], cohort.plan.weeks
    arms: list[JsonValue] = [
        {
            "arm": each.arm,
            "people": each.people,
            "adherent_by_week": list(each.adherent),
            "adherence_percent": _percent(each, weeks),
        }
        for each in cohort.arms
    ]
    effects: list[JsonValue] = [
        {"arm": each.arm, "percentage_points": _points(each, control, weeks), "cohens_d": _cohens_d(each, control)}
        for each in cohort.arms[1:]
    ]
    return {"model": "invented-habits-1", "plan": asdict(cohort.plan), "arms": arms, "effects": effects}


def sentence(cohort: Cohort) -> str:
    """The result in one sentence."""
    plan, control, last = cohort.plan, cohort.arms[0], cohort.arms[-1]
    begin = f"{plan.people} simulated people over {plan.weeks} weeks: adherence {_percent(control, plan.weeks)} %"
    if last is control:
        return f"{begin} without help."
    return (
        f"{begin} without help and {_percent(last, plan.weeks)} % {_IN_WORDS[last.arm]}, "
        f"{_points(last, control, plan.weeks)} points apart (Cohen's d {_cohens_d(last, control)})."
    )


def _mean(count: ArmCount) -> Fraction:
    """The mean number of adherent weeks."""
    return Fraction(sum(count.adherent), count.people)


def _percent(count: ArmCount, weeks: int) -> float:
    return _rounded(_mean(count) * 100 / weeks, 10)


def _points(count: ArmCount, control: ArmCount, weeks: int) -> float:
    return _rounded((_mean(count) - _mean(control)) * 100 / weeks, 10)


def _cohens_d(count: ArmCount, control: ArmCount) -> float | None:
    """The difference in standard deviations; None if the variance is zero."""
    deviations = sum(each.squares - _mean(each) ** 2 * each.people for each in (count, control))
    pooled = deviations / (count.people + control.people - 2)
    if not pooled:
        return None
    difference = _mean(count) - _mean(control)
    # An integer square root is the same on every machine.
    size = Fraction(isqrt(int(difference**2 / pooled * 10**8)), 10**4)
    return _rounded(size if difference >= 0 else -size, 100)


def _rounded(value: Fraction, parts: int) -> float:
    return round(value * parts) / parts
