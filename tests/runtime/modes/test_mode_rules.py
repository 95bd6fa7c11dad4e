"""Hints and classifiers of a host."""

from __future__ import annotations

from typing import Any, cast

import pytest
from attrs import evolve, frozen

from footlights import Mode, RegistrationError
from footlights.modes import (
    Assistance,
    Candidate,
    Classification,
    Condition,
    Confirmation,
    ExecutionPolicy,
    Intent,
    IntentKind,
    ModeHints,
    conclude,
    decide,
    detect,
    heed,
)


def candidate(message: str, hints: ModeHints) -> Candidate:
    return decide(message, ExecutionPolicy.AUTO, hints).candidate


# -- a host's own hints


def test_a_message_like_an_example_of_the_host_is_judged_like_it() -> None:
    said = "The stars are bright over the harbour."
    assert candidate(said, ModeHints()) is Candidate.CHAT
    hints = ModeHints(work=["The stars are bright over the harbour tonight."])
    assert candidate(said, hints) is Candidate.EXECUTION
    assert "host.work" in detect(said, hints).rule_ids
    order = "Restart the mail server."
    assert candidate(order, ModeHints(chat=["Restart the mail server!"])) is Candidate.CHAT
    assert candidate("My brother has a dog.", hints) is Candidate.CHAT


def test_a_veto_of_the_host_forbids_everything() -> None:
    hints = ModeHints(veto=["off the record"])
    intent = detect("Off the record: restart the mail server.", hints)
    assert (intent.kind, intent.vetoes) == (IntentKind.CONVERSATIONAL, ("veto.host",))
    assert candidate("Restart the mail server.", hints) is Candidate.EXECUTION


def test_the_name_of_a_tool_makes_a_request_of_it_and_a_question_about_it_does_not() -> None:
    hints = ModeHints(tools={"roll_dice": "Roll some dice."})
    intent = detect("Roll_Dice for Nguyễn", hints)
    assert intent.kind is IntentKind.EXECUTION
    assert "host.tool" in intent.rule_ids
    assert candidate("How do I use roll_dice?", hints) is Candidate.CHAT


def test_the_words_of_a_tool_s_description_count_for_work() -> None:
    hints = ModeHints(tools={"row": "Row the ferry to the southern bank."})
    before, after = detect("The southern bank, ferry"), detect("The southern bank, ferry", hints)
    assert (after.score or 0) > (before.score or 0)
    assert "host.words" in after.rule_ids


@pytest.mark.parametrize("field", ["work", "chat", "veto"])
def test_an_example_without_words_is_refused(field: str) -> None:
    with pytest.raises(RegistrationError, match="words"):
        ModeHints(**cast("dict[str, Any]", {field: ["..."]}))


# -- a classifier


@frozen
class Opinion:
    answer: Classification | BaseException | None
    id: str = "tiny-classifier:1"

    def classify(self, message: str, intent: Intent) -> Classification | None:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


WORK = Classification(kind=IntentKind.EXECUTION, activities=("simulate",), conditions=(Condition.ARTIFACTS,))
WORDS = Classification(kind=IntentKind.CONVERSATIONAL)


@pytest.mark.shows("narration-35")
def test_a_classifiers_answer_decides_and_is_recorded_with_its_id() -> None:
    decision = decide("What is a cohort?", ExecutionPolicy.AUTO, classifier=Opinion(WORK))
    assert decision.mode is Mode.EXECUTION
    assert decision.conditions == (Condition.WORK_REQUESTED, Condition.ARTIFACTS)
    assert decision.intent.activities == ("simulate",)
    assert decision.intent.document["classifier"] == "tiny-classifier:1"
    assert decision.intent.document["assistance"] == "used"


def test_a_classifier_can_find_no_request_and_the_features_that_were_found_stay_recorded() -> None:
    decision = decide("Simulate 200 people.", ExecutionPolicy.AUTO, classifier=Opinion(WORDS))
    assert (decision.mode, decision.conditions, decision.intent.activities) == (Mode.CHAT, (), ())
    assert decision.intent.features


@pytest.mark.shows("narration-35")
@pytest.mark.parametrize(
    ("answer", "became"),
    [
        (None, Assistance.ABSTAINED),
        (ValueError("Simulate 200 people."), Assistance.FAILED),
        (SystemExit("Simulate 200 people."), Assistance.FAILED),
        (evolve(WORK, activities=("200 people",)), Assistance.FAILED),
        ("execution", Assistance.FAILED),
    ],
)
def test_without_a_usable_answer_the_rules_answer_stands(answer: Any, became: Assistance) -> None:
    message = "Simulate 200 people."
    decision = decide(message, ExecutionPolicy.AUTO, classifier=Opinion(answer))
    expected = evolve(detect(message), classifier="tiny-classifier:1", assistance=became)
    assert decision == conclude(expected, ExecutionPolicy.AUTO)


def test_a_classifier_cannot_lift_a_ban() -> None:
    decision = decide("Simulate 200 people, but no tools.", ExecutionPolicy.AUTO, classifier=Opinion(WORK))
    assert (decision.candidate, decision.intent.assistance) == (Candidate.CHAT, Assistance.OVERRULED)


def test_a_classifier_can_add_a_reason_to_ask_but_cannot_hide_a_deletion() -> None:
    doubt = evolve(WORK, confirmation=Confirmation.AMBIGUOUS)
    assert decide("200 people", ExecutionPolicy.AUTO, classifier=Opinion(doubt)).confirmation is Confirmation.AMBIGUOUS
    delete = decide("Delete the reports.", ExecutionPolicy.AUTO, classifier=Opinion(WORK))
    assert delete.confirmation is Confirmation.DESTRUCTIVE


def test_an_answer_can_be_given_in_strings_but_only_valid_ones() -> None:
    plain: Any = {"kind": "execution", "activities": ["simulate"], "conditions": ["artifacts"]}
    assert Classification(**plain) == WORK
    for wrong in ({"kind": "work"}, {"conditions": ["often"]}, {"confirmation": "maybe"}):
        with pytest.raises(ValueError, match="not a valid"):
            Classification(**{**plain, **wrong})


def test_a_host_can_give_an_answer_that_it_asked_for_beforehand() -> None:
    intent = heed(WORK, "model-of-mine", detect("200 people"))
    assert conclude(intent, ExecutionPolicy.AUTO).mode is Mode.EXECUTION


def test_a_classifier_s_id_must_be_valid_for_the_record() -> None:
    with pytest.raises(RegistrationError, match="classifier's id"):
        decide("hi", ExecutionPolicy.AUTO, classifier=Opinion(None, id="What she said"))
