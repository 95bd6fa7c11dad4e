"""Rules and classifiers of a host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve, frozen

from footlights import Mode, RegistrationError
from footlights.modes import (
    STANDARD_RULES,
    Activity,
    Assistance,
    Candidate,
    Classification,
    Condition,
    Confirmation,
    ExecutionPolicy,
    Intent,
    IntentKind,
    IntentRule,
    IntentRules,
    VetoRule,
    conclude,
    decide,
    detect,
    heed,
    tool_hint,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def candidate(message: str, rules: IntentRules = STANDARD_RULES) -> Candidate:
    return decide(message, ExecutionPolicy.AUTO, rules).candidate


# -- a host's own rules


def test_a_host_can_add_rules_in_any_language() -> None:
    german = IntentRule(
        id="de.suche",
        activity=Activity.SEARCH,
        conditions=(Condition.TOOLS_NEEDED,),
        verbs=["Durchsuche", "schlag nach"],
        doing=["starte"],
        things=["Straßensuche"],
    )
    rules = STANDARD_RULES.adding(german)
    for message in ("Durchsuche die Berichte.", "schlag nach, was Öl kostet", "STARTE EINE STRASSENSUCHE"):
        assert detect(message, rules).rule_ids == ("de.suche",)
        assert candidate(message) is Candidate.CHAT
    assert candidate("Simulate 200 people.", rules) is Candidate.EXECUTION


def test_a_tools_hint_makes_its_name_and_its_words_a_request() -> None:
    rules = STANDARD_RULES.adding(tool_hint("Roll_Dice", verbs=["roll"], things=["d20"]))
    for message in ("Use roll_dice, please.", "Could you roll for Nguyễn?", "Try a d20."):
        intent = detect(message, rules)
        assert (intent.rule_ids, intent.activities) == (("tool.roll_dice",), ("tool",))
        assert intent.conditions == (Condition.TOOLS_NEEDED,)
        assert candidate(message) is Candidate.CHAT
    assert candidate("How do I use roll_dice?", rules) is Candidate.CHAT


def test_two_rules_that_find_the_same_words_are_both_recorded() -> None:
    twin = evolve(_rule(verbs=["simulate"]), id="mine.simulate")
    assert set(detect("Simulate 200 people", STANDARD_RULES.adding(twin)).rule_ids) == {
        "simulate.verb",
        "mine.simulate",
    }


def _rule(**given: object) -> IntentRule:
    usual: dict[str, object] = {"id": "mine", "activity": "mine", "conditions": (Condition.TOOLS_NEEDED,)}
    return IntentRule(**{**usual, **given})  # type: ignore[arg-type]  # whatever is given is what is tested


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: _rule(id="Mine", verbs=["go"]), "lower-case"),
        (lambda: _rule(activity="", verbs=["go"]), "lower-case"),
        (lambda: _rule(conditions=(), verbs=["go"]), "no condition"),
        (lambda: _rule(conditions=["often"], verbs=["go"]), "some of work_requested"),
        (lambda: _rule(), "no words"),
        (lambda: _rule(things=["cake"]), "a way to ask"),
        (lambda: _rule(verbs=["go"], doing=["make"]), "needs things"),
        (lambda: _rule(verbs="go"), "as a list"),
        (lambda: _rule(verbs=["..."]), "must be words"),
        (lambda: _rule(verbs=["go. now"]), "one sentence"),
        (lambda: _rule(verbs=["go"], about=["two words"]), "single words"),
        (lambda: VetoRule(id="no", phrases=[""]), "must be words"),
        (lambda: STANDARD_RULES.adding(_rule(id="search.verb", verbs=["go"])), "same id"),
        (lambda: IntentRules([_rule(verbs=["go"])], [VetoRule(id="mine", phrases=["no"])]), "same id"),
    ],
)
def test_a_rule_that_could_never_match_is_refused(make: Callable[[], object], why: str) -> None:
    with pytest.raises(RegistrationError, match=why):
        make()


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


def test_a_classifiers_answer_decides_and_is_recorded_with_its_id() -> None:
    decision = decide("What would 200 people do?", ExecutionPolicy.AUTO, classifier=Opinion(WORK))
    assert decision.mode is Mode.EXECUTION
    assert decision.conditions == (Condition.WORK_REQUESTED, Condition.ARTIFACTS)
    assert decision.intent.activities == ("simulate",)
    assert decision.intent.document["classifier"] == "tiny-classifier:1"
    assert decision.intent.document["assistance"] == "used"


def test_a_classifier_can_find_no_request_and_the_rules_that_matched_stay_recorded() -> None:
    decision = decide("Simulate 200 people.", ExecutionPolicy.AUTO, classifier=Opinion(WORDS))
    assert (decision.mode, decision.conditions, decision.intent.activities) == (Mode.CHAT, (), ())
    assert decision.intent.rule_ids == ("simulate.verb",)


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
    intent = heed(WORK, "model-of-mine", detect("200 people"), STANDARD_RULES)
    assert conclude(intent, ExecutionPolicy.AUTO).mode is Mode.EXECUTION


def test_a_classifier_s_id_must_be_valid_for_the_record() -> None:
    with pytest.raises(RegistrationError, match="classifier's id"):
        decide("hi", ExecutionPolicy.AUTO, classifier=Opinion(None, id="What she said"))
