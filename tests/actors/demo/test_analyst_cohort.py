"""A simulated cohort: the same in every process, possible in every number, and kept only as what it is."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from math import sqrt
from statistics import fmean, variance
from typing import TYPE_CHECKING, Any, cast

import pytest
from attrs import asdict, evolve
from hypothesis import given
from hypothesis import strategies as st

from footlights import Intent, IntentType, ToolError
from footlights.authority import JsonWorld, JudgeRequest, RuleBook, judge
from footlights_actors.demo.analyst.cohort import ArmCount, Chance, Cohort, CohortPlan, simulate
from footlights_actors.demo.analyst.report import report, sentence
from footlights_actors.demo.analyst.rules import ANALYST_RULES, artifact_of, intent_to_keep
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from footlights.authority import CommitRecord
    from footlights.events import JsonValue

GOLDEN = "blake3:55397d1ec3b43d5e200e17efe9ec318fcb380be588725de2300764a161406365"
"""Of the plan that says nothing. A change of it is another model, and needs another name in the report."""

PROGRAM = """
from footlights_actors.demo.analyst.cohort import CohortPlan, simulate
from footlights_actors.demo.analyst.rules import artifact_of
print(artifact_of(simulate(CohortPlan())).ref)
"""

plans = st.builds(
    CohortPlan,
    people=st.integers(8, 60),
    weeks=st.integers(1, 20),
    onboarding=st.booleans(),
    reminders=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)


# -- determinism


def test_chance_is_splitmix64() -> None:
    chance = Chance(1234567)
    # The numbers that every implementation of it gives for this seed.
    assert [chance.next() for _ in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_every_process_comes_to_the_artifact_that_is_known(hash_seed: str) -> None:
    sources = os.pathsep.join(str(ROOT / name) for name in ("runtime", "actors"))
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": sources}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=True)
    assert done.stdout.decode().strip() == GOLDEN


def test_another_seed_gives_other_people() -> None:
    assert simulate(CohortPlan(seed=1)).arms != simulate(CohortPlan(seed=2)).arms


@given(plan=plans)
def test_a_longer_study_begins_like_the_shorter_one(plan: CohortPlan) -> None:
    longer = simulate(evolve(plan, weeks=plan.weeks + 3))
    for short, long in zip(simulate(plan).arms, longer.arms, strict=True):
        assert long.adherent[: plan.weeks] == short.adherent


# -- what it shows


@given(plan=plans)
def test_every_simulation_is_a_cohort_of_its_plan(plan: CohortPlan) -> None:
    cohort = simulate(plan)
    assert tuple(arm.arm for arm in cohort.arms) == plan.arms
    assert sum(arm.people for arm in cohort.arms) == plan.people
    for arm in cohort.arms:
        assert len(arm.adherent) == plan.weeks
        assert all(0 <= adherent <= arm.people for adherent in arm.adherent)
        # For a given sum the squares are least when all are alike, and most when each is nothing or everything.
        kept = sum(arm.adherent)
        assert kept**2 <= arm.squares * arm.people
        assert arm.squares <= kept * plan.weeks
    assert max(arm.people for arm in cohort.arms) - min(arm.people for arm in cohort.arms) <= 1


@pytest.mark.parametrize(
    ("onboarding", "reminders", "arms"),
    [
        (True, True, ("control", "onboarding", "reminders", "both")),
        (True, False, ("control", "onboarding")),
        (False, True, ("control", "reminders")),
        (False, False, ("control",)),
    ],
)
def test_each_kind_of_help_has_a_group_of_its_own(onboarding: bool, reminders: bool, arms: tuple[str, ...]) -> None:
    assert CohortPlan(onboarding=onboarding, reminders=reminders).arms == arms


def test_help_helps_and_adherence_falls() -> None:
    control, onboarding, reminders, both = simulate(CohortPlan(people=2_000, weeks=12)).arms
    for arm in (onboarding, reminders, both):
        assert sum(arm.adherent) > sum(control.adherent)
        assert arm.adherent[-1] < arm.adherent[0]
    assert sum(both.adherent) > max(sum(onboarding.adherent), sum(reminders.adherent))
    assert onboarding.adherent[0] > reminders.adherent[0], "onboarding works early"
    assert onboarding.adherent[-1] < reminders.adherent[-1], "and wears off"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"people": 7}, "people must be from 8 to 2000."),
        ({"people": 2_001}, "people"),
        ({"weeks": 0}, "weeks"),
        ({"weeks": 53}, "weeks"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**32}, "seed"),
    ],
)
def test_a_study_that_cannot_be_run_is_refused_in_words_for_the_model(wrong: dict[str, int], why: str) -> None:
    with pytest.raises(ToolError, match=why):
        CohortPlan(**wrong)  # type: ignore[arg-type]


# -- the report


def cohort_of(control: list[list[int]], helped: list[list[int]]) -> Cohort:
    """One in which each person, a row, kept to it in the weeks that are 1."""
    weeks = len(control[0])
    plan = CohortPlan(people=len(control) + len(helped), weeks=weeks, reminders=False)
    counts = [
        ArmCount(
            name, len(rows), [sum(column) for column in zip(*rows, strict=True)], sum(sum(row) ** 2 for row in rows)
        )
        for name, rows in (("control", control), ("onboarding", helped))
    ]
    return Cohort(plan, tuple(counts))


CONTROL = [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0]]
HELPED = [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 0]]


def test_a_report_has_the_table_and_the_effect() -> None:
    told: dict[str, Any] = report(cohort_of(CONTROL, HELPED))
    assert told["arms"][0] == {
        "arm": "control",
        "people": 4,
        "adherent_by_week": [3, 2, 1, 0],
        "adherence_percent": 37.5,
    }
    [effect] = told["effects"]
    assert (effect["arm"], effect["percentage_points"]) == ("onboarding", 25.0)


@pytest.mark.parametrize(("control", "helped"), [(CONTROL, HELPED), (HELPED, CONTROL)])
def test_the_effect_size_is_cohens_d(control: list[list[int]], helped: list[list[int]]) -> None:
    before, after = [sum(row) for row in control], [sum(row) for row in helped]
    expected = (fmean(after) - fmean(before)) / sqrt((variance(before) + variance(after)) / 2)
    told: dict[str, Any] = report(cohort_of(control, helped))
    assert told["effects"][0]["cohens_d"] == round(expected, 2)


def test_without_any_difference_there_is_no_effect_size() -> None:
    told: dict[str, Any] = report(cohort_of([[1, 0]] * 4, [[1, 1]] * 4))
    assert told["effects"] == [{"arm": "onboarding", "percentage_points": 50.0, "cohens_d": None}]


def test_a_sentence_says_the_gist() -> None:
    assert sentence(cohort_of(CONTROL, HELPED)) == (
        "8 simulated people over 4 weeks: adherence 37.5 % without help and 62.5 % with onboarding, "
        "25.0 points apart (Cohen's d 0.77)."
    )
    alone = simulate(CohortPlan(people=8, weeks=2, onboarding=False, reminders=False))
    percent = round(Fraction(sum(alone.arms[0].adherent) * 1000, 16)) / 10
    assert sentence(alone) == f"8 simulated people over 2 weeks: adherence {percent} % without help."


# -- what is kept


def judged(*intents: Intent) -> CommitRecord:
    return judge(JudgeRequest("s", "t", None, intents), JsonWorld({}), RuleBook(ANALYST_RULES), None).record


def test_a_simulation_is_kept_as_the_artifact_that_the_tool_named_and_changes_nothing() -> None:
    cohort = simulate(CohortPlan())
    record = judged(intent_to_keep(cohort, "call-1"))
    assert [artifact.ref for artifact in record.artifacts] == [artifact_of(cohort).ref] == [GOLDEN]
    assert record.changes == ()


def test_the_same_simulation_twice_is_one_artifact() -> None:
    first, second = simulate(CohortPlan(people=8)), simulate(CohortPlan(people=9))
    record = judged(*(intent_to_keep(each, "call-1") for each in (first, second, first)))
    assert [artifact.ref for artifact in record.artifacts] == [artifact_of(first).ref, artifact_of(second).ref]


def test_what_asks_for_something_else_is_none_of_its_business() -> None:
    record = judged(Intent(IntentType.DECISION, "somebody"), Intent(IntentType.TOOL_RESULT, "call-1", {"act": "rent"}))
    assert (record.outcome.value, record.artifacts) == ("ok", ())


def changed(path: tuple[str | int, ...], value: JsonValue) -> Intent:
    """An intent to keep a small simulation, with one thing in it changed."""
    honest = intent_to_keep(SMALL, "call-1")
    place: Any = honest.payload
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return honest


SMALL = simulate(CohortPlan(people=8, weeks=4, reminders=False))
ARM = ("cohort", "arms", 0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("cohort",), "as you wish"),
        (("cohort",), {}),
        (("said",), "more"),
        (("cohort", "plan", "people"), 9),
        (("cohort", "plan", "people"), 4),
        (("cohort", "plan", "weeks"), 5),
        (("cohort", "plan", "weeks"), True),
        (("cohort", "plan", "reminders"), True),
        (("cohort", "plan", "seed"), 9),
        (("cohort", "arms"), []),
        ((*ARM, "arm"), "whatever somebody said"),
        ((*ARM, "people"), 5),
        ((*ARM, "adherent"), list(SMALL.arms[0].adherent[:3])),
        ((*ARM, "adherent"), list(SMALL.arms[1].adherent)),
        ((*ARM, "adherent"), [*SMALL.arms[0].adherent[:3], "1"]),
        ((*ARM, "squares"), SMALL.arms[0].squares + 1),
    ],
)
def test_what_did_not_come_from_the_simulation_of_its_plan_is_refused(
    path: tuple[str | int, ...], value: JsonValue
) -> None:
    assert [issue.code for issue in judged(changed(path, value)).issues] == ["not_a_simulation"]


def test_counts_that_could_have_come_from_a_simulation_are_refused_if_they_did_not() -> None:
    record = judged(intent_to_keep(cohort_of(CONTROL, HELPED), "call-1"))
    assert ([issue.code for issue in record.issues], record.artifacts) == (["not_a_simulation"], ())


def test_what_came_from_it_is_not() -> None:
    assert judged(changed((*ARM, "adherent"), list(SMALL.arms[0].adherent))).issues == ()


@given(plan=plans)
def test_an_intent_holds_all_that_the_report_needs(plan: CohortPlan) -> None:
    cohort = simulate(plan)
    payload = cast("dict[str, Any]", intent_to_keep(cohort, "call-1").payload)
    assert payload["cohort"]["plan"] == asdict(plan)
    [artifact] = judged(intent_to_keep(cohort, "call-1")).artifacts
    assert artifact.ref == artifact_of(cohort).ref
