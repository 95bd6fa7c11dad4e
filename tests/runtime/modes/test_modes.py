"""Mode decisions: the record, detection, and the stages."""

from __future__ import annotations

from typing import cast

import orjson
import pytest

from footlights import InvalidCommand, Mode
from footlights.modes import (
    Candidate,
    Condition,
    Confirmation,
    Determination,
    ExecutionPolicy,
    Intent,
    IntentKind,
    authorize,
    conclude,
    decide,
    detect,
    determine,
)

TALK = Intent(kind=IntentKind.CONVERSATIONAL)


def candidate(message: str) -> Candidate:
    return decide(message, ExecutionPolicy.AUTO).candidate


# -- the record


@pytest.mark.shows("narration-5", "narration-41")
def test_the_record_has_the_intent_and_the_reasons() -> None:
    decision = decide("Delete the old reports, but do not touch the cohort.", ExecutionPolicy.AUTO)
    document = decision.document
    intent = cast("dict[str, object]", document.pop("intent"))
    assert (intent.pop("score"), intent.pop("features")) == (decision.intent.score, [*decision.intent.features])
    assert intent == {
        "kind": "execution",
        "activities": ["delete"],
        "rule_ids": ["rule.ban"],
        "vetoes": [],
        "classifier": None,
        "assistance": None,
    }
    assert document == {
        "candidate": "execution_candidate",
        "conditions": ["tools_needed", "artifacts"],
        "policy": "auto",
        "mode": "execution",
        "confirmation": "destructive",
    }
    assert orjson.loads(orjson.dumps(decision.document)) == decision.document


@pytest.mark.shows("narration-34")
def test_bans_and_questions_are_told_apart_from_requests() -> None:
    intent = detect("What is a simulation? Don't search the documents. Evaluate the scenario.")
    assert (intent.kind, intent.rule_ids) == (IntentKind.EXECUTION, ("rule.about", "rule.ban"))
    assert detect("What is a simulation? Don't search the documents.").kind is IntentKind.CONVERSATIONAL


def test_a_veto_forbids_requests_before_and_after_it() -> None:
    intent = detect("Simulate 200 people. No tools! Search the archive.")
    assert (intent.kind, intent.vetoes) == (IntentKind.CONVERSATIONAL, ("veto.no_tools",))


def test_a_request_can_follow_one_that_was_taken_back() -> None:
    intent = detect("Simulate 200 people. Never mind. Search the archive for beer.")
    assert (intent.kind, intent.rule_ids) == (IntentKind.EXECUTION, ("rule.taken_back",))
    assert "simulate" not in intent.activities


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
    assert detect(words).kind is IntentKind.CONVERSATIONAL
    assert detect(f"{words} No, simulate 200 people.").kind is IntentKind.EXECUTION


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
        "He told me: be quick. Search the documents",
        "No. Search the documents",
        "What does this do?\n> 12\nSearch the documents about onboarding",
    ],
)
def test_a_request_that_looks_like_a_ban_or_a_quotation_is_found(words: str) -> None:
    assert detect(words).kind is IntentKind.EXECUTION


def test_never_mind_something_takes_nothing_back() -> None:
    assert candidate("Simulate 200 people, never mind the costs of the run.") is Candidate.EXECUTION


def test_a_ban_extends_over_or_but_not_over_a_comma() -> None:
    assert candidate("Don't search or simulate anything.") is Candidate.CHAT
    assert candidate("Don't search, simulate 200 people.") is Candidate.EXECUTION


@pytest.mark.shows("narration-12")
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


@pytest.mark.parametrize(
    "message",
    [
        "Explain \"run a simulation\", 'search the documents' and `delete the report`.",
        "Explain “run a simulation”, \u2018search the documents\u2019, «evaluate it» and „simulate it“.",
        '"Run a simulation with 200 people."',
    ],
)
def test_a_quotation_is_no_request(message: str) -> None:
    assert candidate(message) is Candidate.CHAT


@pytest.mark.parametrize(
    "message", ["Simulate the clerks' walks over 12 weeks.", "It's late, don't ask: simulate 20' ships"]
)
def test_an_apostrophe_begins_no_quotation(message: str) -> None:
    assert candidate(message) is Candidate.EXECUTION


def test_a_quotation_without_an_end_hides_nothing() -> None:
    assert candidate('Search the archive for "nudges and simulate 200 people') is Candidate.EXECUTION


@pytest.mark.shows("narration-96", "narration-97", "narration-98", "narration-99")
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
        ("Don't delete anything.", None),
        ("How do I delete a report?", None),
    ],
)
def test_there_are_three_reasons_to_ask_first_and_no_other(message: str, reason: Confirmation | None) -> None:
    assert decide(message, ExecutionPolicy.DENY).confirmation is reason


@pytest.mark.shows("narration-28", "narration-42")
def test_a_request_for_different_kinds_of_work_requires_several_passes() -> None:
    assert Condition.SEVERAL_PASSES in detect("Search the archive for nudges. Simulate 200 people.").conditions
    assert Condition.SEVERAL_PASSES not in detect("Simulate 200 people.").conditions


# -- the stages


@pytest.mark.shows("narration-23", "narration-38", "narration-39", "narration-40", "narration-41", "narration-42")
@pytest.mark.shows("narration-43")
def test_any_one_condition_requires_execution() -> None:
    assert determine(TALK) == Determination(Candidate.CHAT, ())
    for condition in Condition:
        intent = Intent(kind=IntentKind.EXECUTION, conditions=(condition,))
        assert determine(intent) == Determination(Candidate.EXECUTION, (condition,))


@pytest.mark.shows("narration-11", "narration-24")
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


@pytest.mark.shows("narration-4")
def test_the_single_stages_agree_with_decide() -> None:
    message = "Could you compare the two cohorts?"
    assert conclude(detect(message), ExecutionPolicy.DENY) == decide(message, ExecutionPolicy.DENY)


@pytest.mark.shows("narration-46")
def test_a_policy_can_be_given_by_value_and_an_unknown_one_is_refused() -> None:
    assert conclude(TALK, cast(ExecutionPolicy, "force")).mode is Mode.EXECUTION
    assert authorize(Candidate.CHAT, cast(ExecutionPolicy, "force")) is Mode.EXECUTION
    with pytest.raises(InvalidCommand, match="deny, auto, force"):
        decide("hi", cast(ExecutionPolicy, "always"))
