"""Mode decisions: the record, detection, and the stages."""

from __future__ import annotations

from typing import cast

import orjson
import pytest

from footlights import InvalidCommand, Mode
from footlights.modes import (
    STANDARD_RULES,
    Activity,
    Candidate,
    Condition,
    Confirmation,
    Determination,
    ExecutionPolicy,
    Intent,
    IntentKind,
    IntentRules,
    authorize,
    conclude,
    decide,
    detect,
    determine,
)

TALK = Intent(kind=IntentKind.CONVERSATIONAL)


def candidate(message: str, rules: IntentRules = STANDARD_RULES) -> Candidate:
    return decide(message, ExecutionPolicy.AUTO, rules).candidate


# -- the record


def test_the_record_has_the_intent_and_the_reasons() -> None:
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


def test_requests_bans_and_mentions_are_distinguished() -> None:
    message = "What is a simulation? Don't search the documents. Evaluate the scenario."
    intent = detect(message)
    assert intent.rule_ids == ("evaluate.verb",)
    assert intent.negated == ("search.verb",)
    assert intent.mentioned == ("simulate.thing",)


def test_a_veto_forbids_requests_before_and_after_it() -> None:
    intent = detect("Simulate 200 people. No tools! Search the archive.")
    assert intent.kind is IntentKind.CONVERSATIONAL
    assert intent.vetoes == ("veto.no_tools",)
    assert intent.rule_ids == ()
    assert intent.negated == ("tool.named", "simulate.verb", "search.verb")


def test_a_request_can_follow_one_that_was_taken_back() -> None:
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
def test_a_request_that_is_taken_back_is_no_request(words: str) -> None:
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
def test_text_that_only_looks_like_a_request_is_none(words: str) -> None:
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
def test_a_request_that_looks_like_a_ban_or_a_quotation_is_found(words: str) -> None:
    assert detect(words).rule_ids == ("search.verb",)


def test_never_mind_something_takes_nothing_back() -> None:
    assert detect("Simulate 200 people, never mind the costs of the run.").rule_ids == ("simulate.verb",)


def test_a_ban_extends_over_or_but_not_over_a_comma() -> None:
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
def test_questions_and_statements_extend_over_conjunctions(message: str) -> None:
    assert candidate(message) is Candidate.CHAT


def test_the_number_of_leads_that_are_read_is_limited() -> None:
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
def test_a_quotation_is_no_request(message: str) -> None:
    intent = detect(message)
    assert (intent.kind, intent.mentioned) == (IntentKind.CONVERSATIONAL, ())


@pytest.mark.parametrize(
    "message", ["Simulate the dogs' walks over 12 weeks.", "It's late, don't ask: simulate 20' ships"]
)
def test_an_apostrophe_begins_no_quotation(message: str) -> None:
    assert candidate(message) is Candidate.EXECUTION


def test_a_quotation_without_an_end_hides_nothing() -> None:
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


def test_any_one_condition_requires_execution() -> None:
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


def test_the_single_stages_agree_with_decide() -> None:
    message = "Could you compare the two cohorts?"
    assert conclude(detect(message), ExecutionPolicy.DENY) == decide(message, ExecutionPolicy.DENY)


def test_a_policy_can_be_given_by_value_and_an_unknown_one_is_refused() -> None:
    assert conclude(TALK, cast(ExecutionPolicy, "force")).mode is Mode.EXECUTION
    assert authorize(Candidate.CHAT, cast(ExecutionPolicy, "force")) is Mode.EXECUTION
    with pytest.raises(InvalidCommand, match="deny, auto, force"):
        decide("hi", cast(ExecutionPolicy, "always"))
