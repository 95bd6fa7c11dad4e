"""The three stages: what is asked, what it calls for, what is allowed. And whoever else may have a say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import orjson
import pytest
from attrs import evolve, frozen

from footlights import InvalidCommand, Mode, RegistrationError
from footlights.modes import (
    STANDARD_RULES,
    Activity,
    Assistance,
    Candidate,
    Classification,
    Condition,
    Confirmation,
    Determination,
    ExecutionPolicy,
    Intent,
    IntentKind,
    IntentRule,
    IntentRules,
    VetoRule,
    authorize,
    conclude,
    decide,
    detect,
    determine,
    heed,
    tool_hint,
)

if TYPE_CHECKING:
    from collections.abc import Callable

TALK = Intent(kind=IntentKind.CONVERSATIONAL)


def candidate(message: str, rules: IntentRules = STANDARD_RULES) -> Candidate:
    return decide(message, ExecutionPolicy.AUTO, rules).candidate


# -- the record


def test_the_record_says_what_was_asked_and_why_it_was_decided() -> None:
    decision = decide("Search the documents for nudges, then simulate 200 people.", ExecutionPolicy.AUTO)
    assert decision.document == {
        "intent": {
            "kind": "execution",
            "activities": ["search", "simulate"],
            "rule_ids": ["search.verb", "simulate.verb"],
            "negated": [],
            "mentioned": [],
            "vetoes": [],
            "classifier": None,
            "assistance": None,
        },
        "candidate": "execution_candidate",
        "conditions": ["work_requested", "tools_needed", "artifacts", "several_passes"],
        "policy": "auto",
        "mode": "execution",
        "confirmation": None,
    }
    assert orjson.loads(orjson.dumps(decision.document)) == decision.document


def test_what_is_forbidden_talked_about_and_asked_is_told_apart() -> None:
    message = "What is a simulation? Don't search the documents. Evaluate the scenario."
    intent = detect(message)
    assert intent.rule_ids == ("evaluate.verb",)
    assert intent.negated == ("search.verb",)
    assert intent.mentioned == ("simulate.thing",)


def test_a_ban_on_everything_forbids_what_was_asked_before_and_after_it() -> None:
    intent = detect("Simulate 200 people. No tools! Search the archive.")
    assert intent.kind is IntentKind.CONVERSATIONAL
    assert intent.vetoes == ("veto.no_tools",)
    assert intent.rule_ids == ()
    assert intent.negated == ("tool.named", "simulate.verb", "search.verb")


def test_what_is_taken_back_may_be_asked_again() -> None:
    intent = detect("Simulate 200 people. Never mind. Search the archive for beer.")
    assert intent.rule_ids == ("search.verb",)
    assert intent.negated == ("simulate.verb", "veto.taken_back")


@pytest.mark.parametrize(
    "words",
    [
        "Search the documents? No.",
        "Search the documents... Not now.",
        "Search the documents. No, wait, don't.",
        "Search the documents. On second thought, no thanks.",
        "Search the documents (without actually running it).",
        "Search the documents - just kidding.",
    ],
)
def test_what_is_refused_at_once_was_not_asked(words: str) -> None:
    intent = detect(words)
    assert (intent.kind, "search.verb" in intent.negated) == (IntentKind.CONVERSATIONAL, True)
    assert detect(f"{words} No, simulate 200 people.").rule_ids == ("simulate.verb",)


@pytest.mark.parametrize(
    "words",
    [
        "Search nothing.",
        "no-tools: search the documents",
        "> search the documents\nWhat does this do?",
        "He told me: search the documents",
        "Repeat after me: search the documents",
    ],
)
def test_what_is_not_really_asked_is_not_done(words: str) -> None:
    assert detect(words).kind is IntentKind.CONVERSATIONAL


@pytest.mark.parametrize(
    "words",
    [
        "Don't forget to search the documents",
        "Don't hesitate to search the documents",
        "I said: search the documents",
        "He told me: be quick. Search the documents",
        "No. Search the documents",
        "What does this do?\n> 12\nSearch the documents",
    ],
)
def test_what_only_looks_like_a_ban_or_a_quote_is_asked(words: str) -> None:
    assert detect(words).rule_ids == ("search.verb",)


def test_never_mind_something_takes_nothing_back() -> None:
    assert detect("Simulate 200 people, never mind the costs of the run.").rule_ids == ("simulate.verb",)


def test_a_ban_goes_on_over_or_but_not_over_a_comma() -> None:
    assert candidate("Don't search or simulate anything.") is Candidate.CHAT
    assert candidate("Don't search, simulate 200 people.") is Candidate.EXECUTION


@pytest.mark.parametrize(
    "message",
    [
        "How do I search the documents, simulate people or generate a report?",
        "I go through the papers and simulate people by hand.",
        "Summarise this report: it rained, and nobody came.",
    ],
)
def test_questions_and_tales_go_on_and_what_is_at_hand_needs_no_search(message: str) -> None:
    assert candidate(message) is Candidate.CHAT


def test_more_courtesies_than_anybody_uses_are_not_looked_through() -> None:
    assert candidate("please " * 11 + "simulate 200 people") is Candidate.EXECUTION
    assert candidate("please " * 200 + "simulate 200 people") is Candidate.CHAT
    assert candidate("it is late and " + "please " * 200 + "simulate 200 people") is Candidate.CHAT


@pytest.mark.parametrize(
    "message",
    [
        "Explain \"run a simulation\", 'search the documents' and `delete the report`.",
        "Explain “run a simulation”, \u2018search the documents\u2019, «evaluate it» and „simulate it“.",
        '"Run a simulation with 200 people."',
    ],
)
def test_what_is_quoted_is_not_asked(message: str) -> None:
    intent = detect(message)
    assert (intent.kind, intent.mentioned) == (IntentKind.CONVERSATIONAL, ())


@pytest.mark.parametrize(
    "message", ["Simulate the dogs' walks over 12 weeks.", "It's late, don't ask: simulate 20' ships"]
)
def test_an_apostrophe_is_not_a_quote(message: str) -> None:
    assert candidate(message) is Candidate.EXECUTION


def test_a_quote_that_never_ends_hides_nothing() -> None:
    assert candidate('Search the archive for "nudges and simulate 200 people') is Candidate.EXECUTION


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Delete it.", Confirmation.DESTRUCTIVE),
        ("Simulate 200 people or delete the report.", Confirmation.DESTRUCTIVE),
        ("Simulate 200 people or search the archive.", Confirmation.DIFFERENT_PATHS),
        ("Either simulate 200 people or simulate 400 people.", Confirmation.DIFFERENT_PATHS),
        ("Simulate 200 people or simulate 400 people.", None),
        ("Search the reports or the interviews for nudges.", None),
        ("Simulate them.", Confirmation.AMBIGUOUS),
        ("Two groups of thirty clerks each. Simulate them.", None),
        ("Explain that. Search?", Confirmation.AMBIGUOUS),
        ("Don't delete anything.", None),
        ("How do I delete a report?", None),
    ],
)
def test_there_are_three_reasons_to_ask_first_and_no_other(message: str, reason: Confirmation | None) -> None:
    assert decide(message, ExecutionPolicy.DENY).confirmation is reason


# -- the stages


def test_any_one_condition_calls_for_execution() -> None:
    assert determine(TALK) == Determination(Candidate.CHAT, ())
    for condition in Condition:
        intent = Intent(kind=IntentKind.EXECUTION, conditions=(condition,))
        assert determine(intent) == Determination(Candidate.EXECUTION, (condition,))


def test_every_rule_leads_to_a_condition_and_every_condition_is_reached() -> None:
    reached = {condition for rule in STANDARD_RULES.rules for condition in rule.conditions}
    assert reached == {*Condition} - {Condition.SEVERAL_PASSES}
    assert {*STANDARD_RULES.activities} == {*Activity}


@pytest.mark.parametrize(
    ("policy", "asked", "mode"),
    [
        (ExecutionPolicy.DENY, Candidate.CHAT, Mode.CHAT),
        (ExecutionPolicy.DENY, Candidate.EXECUTION, Mode.CHAT),
        (ExecutionPolicy.AUTO, Candidate.CHAT, Mode.CHAT),
        (ExecutionPolicy.AUTO, Candidate.EXECUTION, Mode.EXECUTION),
        (ExecutionPolicy.FORCE, Candidate.CHAT, Mode.EXECUTION),
        (ExecutionPolicy.FORCE, Candidate.EXECUTION, Mode.EXECUTION),
    ],
)
def test_the_policy_alone_decides_what_is_allowed(policy: ExecutionPolicy, asked: Candidate, mode: Mode) -> None:
    assert authorize(asked, policy) is mode


def test_the_stages_one_by_one_are_the_whole() -> None:
    message = "Could you compare the two cohorts?"
    assert conclude(detect(message), ExecutionPolicy.DENY) == decide(message, ExecutionPolicy.DENY)


def test_a_policy_is_known_by_its_value_and_another_is_refused() -> None:
    assert conclude(TALK, cast(ExecutionPolicy, "force")).mode is Mode.EXECUTION
    assert authorize(Candidate.CHAT, cast(ExecutionPolicy, "force")) is Mode.EXECUTION
    with pytest.raises(InvalidCommand, match="deny, auto, force"):
        decide("hi", cast(ExecutionPolicy, "always"))


# -- a host's own rules


def test_a_host_adds_rules_of_its_own_in_any_language() -> None:
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
def test_a_rule_that_cannot_work_is_refused(make: Callable[[], object], why: str) -> None:
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


def test_a_classifier_may_find_that_nothing_is_asked_and_what_the_rules_found_stays_readable() -> None:
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


def test_a_classifier_may_see_a_reason_to_ask_but_cannot_hide_that_something_is_deleted() -> None:
    doubt = evolve(WORK, confirmation=Confirmation.AMBIGUOUS)
    assert decide("200 people", ExecutionPolicy.AUTO, classifier=Opinion(doubt)).confirmation is Confirmation.AMBIGUOUS
    delete = decide("Delete the reports.", ExecutionPolicy.AUTO, classifier=Opinion(WORK))
    assert delete.confirmation is Confirmation.DESTRUCTIVE


def test_an_answer_may_be_given_in_plain_strings_but_only_in_ones_that_exist() -> None:
    plain: Any = {"kind": "execution", "activities": ["simulate"], "conditions": ["artifacts"]}
    assert Classification(**plain) == WORK
    for wrong in ({"kind": "work"}, {"conditions": ["often"]}, {"confirmation": "maybe"}):
        with pytest.raises(ValueError, match="not a valid"):
            Classification(**{**plain, **wrong})


def test_a_host_that_asked_its_model_beforehand_gives_the_answer_itself() -> None:
    intent = heed(WORK, "model-of-mine", detect("200 people"), STANDARD_RULES)
    assert conclude(intent, ExecutionPolicy.AUTO).mode is Mode.EXECUTION


def test_a_classifiers_id_must_be_fit_to_keep() -> None:
    with pytest.raises(RegistrationError, match="classifier's id"):
        decide("hi", ExecutionPolicy.AUTO, classifier=Opinion(None, id="What she said"))
