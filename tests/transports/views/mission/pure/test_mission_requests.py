"""Requests: callouts and closings of events as plain JSON."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from attrs import evolve

from footlights.errors import InvalidCommand
from footlights_transports.views.mission.pure.history import History
from footlights_transports.views.mission.pure.payload import Context, MissionEvent
from footlights_transports.views.mission.pure.policy import broken_rules, decide
from footlights_transports.views.mission.pure.requests import (
    MAX_WORDS_CHARS,
    debrief_of,
    read_callout,
    read_closing,
    read_id,
)
from footlights_transports.views.mission.pure.terms import (
    Certainty,
    Classification,
    MissionEventType,
    SessionState,
    SpeechMode,
    SuppressionReason,
    Tier,
    VoiceMode,
    least_certain,
)
from footlights_transports.views.mission.pure.text import compose
from tests.kit.callouts import CRITICAL, LISTENING, THREAT, mission_event

FULL: dict[str, Any] = {
    "text": "Approve the sale.",
    "mode": "callout",
    "event_type": "action_required",
    "classification": "action",
    "mission_id": "heist",
    "event_id": "e7",
    "context_tier": 1,
    "session_state": "active",
    "voice_mode": "critical_only",
    "text_certainty": "confirmed",
    "voice_certainty": "reasoned",
    "repo_attributed": True,
    "system_state_claim": True,
    "evidence_refs": ["docs/a.md#L1"],
    "operator_ref": "op-1",
    "tenant_id": "acme",
    "dry_run": True,
    "policy_ts_ms": 5,
}
HEARD = {"context_tier": 1, "session_state": "active", "classification": "critical"}


def test_a_request_with_every_field() -> None:
    request = read_callout(FULL, "x")
    assert (request.dry_run, request.policy_ts_ms) == (True, 5)
    assert request.context == Context(
        tier=Tier.AWARE,
        session_state=SessionState.ACTIVE,
        voice_mode=VoiceMode.CRITICAL_ONLY,
        tenant_id="acme",
    )
    event = request.event
    assert (event.mission_id, event.event_id, event.mode) == ("heist", "e7", SpeechMode.CALLOUT)
    assert (event.event_type, event.classification) == (MissionEventType.ACTION_REQUIRED, Classification.ACTION)
    assert (event.certainty, event.voice_certainty) == (Certainty.CONFIRMED, Certainty.REASONED)
    assert (event.repo_attributed, event.system_state_claim) == (True, True)
    assert (event.evidence_refs, event.operator_ref) == (("docs/a.md#L1",), "op-1")
    assert event.text.spoken == "Approve the sale."
    assert event.text.evidence_anchor == "EVIDENCE: docs/a.md#L1"


@pytest.mark.shows("callouts-56")
@pytest.mark.parametrize("absent", [{}, {name: None for name in FULL if name != "text"}], ids=["missing", "null"])
def test_a_request_with_only_a_text_is_of_unknown_certainty_and_not_spoken(absent: dict[str, None]) -> None:
    request = read_callout({"text": "The lamp is lit.", **absent}, "x")
    assert request.event.certainty is Certainty.UNKNOWN
    assert request.event.claimed_by_voice is Certainty.UNKNOWN
    assert (request.event.mission_id, request.event.event_id) == ("unassigned", "x")
    decision = decide(request.event, request.context, History(), 0)
    assert decision.payload.suppression.reason is SuppressionReason.CONTEXT_INELIGIBLE
    assert decision.payload.text.spoken == "The lamp is lit."


@pytest.mark.shows("callouts-57")
def test_a_default_never_raises_the_certainty_of_the_text() -> None:
    request = read_callout({"text": "Fire.", "voice_certainty": "hypothesis", **HEARD}, "x")
    decision = decide(request.event, request.context, History(), 0)
    assert decision.payload.suppression.reason is SuppressionReason.CONTRACT_VIOLATION


def test_a_request_may_have_its_own_lines_and_leave_some_out() -> None:
    request = read_callout({"text_payload": {"what_changed": "Lit.", "next_action": None}}, "x")
    assert request.event.text.document == {
        "what_changed": "Lit.",
        "why_it_matters": "IMPACT: not stated.",
        "next_action": "NEXT: not stated.",
        "evidence_anchor": "EVIDENCE: none.",
    }


def test_lines_without_content_are_a_violation() -> None:
    request = read_callout({"text_payload": {}, **HEARD}, "x")
    assert request.event.text == compose(MissionEventType.STATE_CHANGE, Classification.CRITICAL, change="not stated.")
    decision = decide(request.event, request.context, History(), 0)
    assert decision.payload.suppression.reason is SuppressionReason.CONTRACT_VIOLATION


@pytest.mark.shows("callouts-27")
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"text": None}, "text: is missing"),
        ({"text": ""}, "text: must not be empty"),
        ({"text": " \n"}, "text: must not be blank"),
        ({"text": 7}, "text: must be a string"),
        ({"text": "\ud800"}, "text: must not contain lone surrogates"),
        ({"text": "x" * 4_001}, "text: must not have more than 4000 characters"),
        ({"text_payload": {}}, "text_payload: is there beside text"),
        ({"text": None, "text_payload": []}, "text_payload: must be an object"),
        ({"text": None, "text_payload": {"more": "x"}}, "text_payload: has a field that is not known"),
        ({"text": None, "text_payload": {"what_changed": 1}}, "text_payload.what_changed: must be a string"),
        ({"colour": "red"}, "The callout has a field that is not known."),
        ({"mode": "song"}, "mode: must be one of callout, briefing, debrief"),
        ({"context_tier": 2}, "context_tier: must be 0 or 1"),
        ({"context_tier": True}, "context_tier: must be 0 or 1"),
        ({"text_certainty": "sure"}, "text_certainty: must be one of confirmed, reasoned, hypothesis, unknown"),
        ({"dry_run": "yes"}, "dry_run: must be true or false"),
        ({"policy_ts_ms": -1}, "policy_ts_ms: must be between 0 and 9007199254740991"),
        ({"evidence_refs": "docs"}, "evidence_refs: must be a list"),
        ({"evidence_refs": [""]}, "evidence_refs: must not be empty"),
        ({"evidence_refs": ["x"] * 33}, "evidence_refs: must not have more than 32 entries"),
        ({"evidence_refs": ["x" * 257]}, "evidence_refs: must not have more than 256 characters"),
        ({"operator_ref": "  "}, "operator_ref: must not be blank"),
        (
            {"mission_id": "a b"},
            "mission_id: must be 1 to 128 letters, digits or . _ : @ - and begin with a letter or digit",
        ),
    ],
)
def test_an_invalid_request_is_refused_without_quoting_it(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidCommand) as refused:
        read_callout({"text": "Lit.", **wrong}, "x")
    assert str(refused.value) == sentence


def test_tenants_of_different_users_are_different_tenants() -> None:
    of_ann = read_callout(FULL, "x").context.of_user("ann")
    assert (of_ann.user_id, of_ann.tenant_id) == ("ann", f"ann:{read_callout(FULL, 'x').context.tenant_id}")


def test_an_id_is_read_by_its_name() -> None:
    assert read_id("event_id", "e1") == "e1"
    with pytest.raises(InvalidCommand, match=r"event_id: must be"):
        read_id("event_id", "")


# -- closings

TRIGGER = mission_event(
    "",
    text=compose(THREAT, CRITICAL, change="The door is open.", impact="Anybody may come in.", evidence_refs=["w#1"]),
    evidence_refs=("w#1",),
    system_state_claim=True,
)


def closed(trigger: MissionEvent = TRIGGER, **fields: Any) -> MissionEvent:
    return debrief_of(trigger, read_closing({"operator_ref": "op-7", **fields}), "d1")


def said(event: MissionEvent) -> str | None:
    voice = decide(event, LISTENING, History(), 0).payload.voice
    return None if voice is None else voice.text


def test_without_words_a_debrief_has_the_change_the_claims_and_the_evidence_of_its_event() -> None:
    debrief = closed()
    assert (debrief.event_type, debrief.classification) == (MissionEventType.DEBRIEF, CRITICAL)
    assert (debrief.mission_id, debrief.event_id, debrief.operator_ref) == ("heist", "d1", "op-7")
    assert (debrief.certainty, debrief.evidence_refs) == (Certainty.CONFIRMED, ("w#1",))
    assert debrief.system_state_claim
    assert said(debrief) == "An operator has closed this. The door is open."


def test_an_operators_words_do_not_inherit_the_evidence_of_the_event() -> None:
    debrief = closed(text="The dragon  is dead.")
    assert (debrief.certainty, debrief.evidence_refs) == (Certainty.UNKNOWN, ())
    assert debrief.text.evidence_anchor == "EVIDENCE: none."
    assert said(debrief) == "Not confirmed: An operator has closed this. The dragon is dead."


def test_an_operators_words_may_have_a_certainty_and_evidence() -> None:
    sure = closed(text="It is shut.", text_certainty="confirmed", evidence_refs=["w#2"])
    assert (sure.supported_certainty, sure.evidence_refs) == (Certainty.CONFIRMED, ("w#2",))
    assert closed(text="It is shut.", text_certainty="confirmed").supported_certainty is Certainty.HYPOTHESIS


@pytest.mark.parametrize("words", [None, "It is shut."])
@pytest.mark.parametrize("has_evidence", [True, False])
def test_a_debrief_is_never_more_certain_than_its_event(words: str | None, has_evidence: bool) -> None:
    for certainty, voice, stated in product(Certainty, [None, *Certainty], Certainty):
        trigger = evolve(
            TRIGGER, certainty=certainty, voice_certainty=voice, evidence_refs=("w#1",) if has_evidence else ()
        )
        fields = {} if words is None else {"text": words, "text_certainty": stated.value, "evidence_refs": ["w#2"]}
        debrief = closed(trigger, **fields)
        assert debrief.supported_certainty.rank <= trigger.supported_certainty.rank
        assert debrief.claimed_by_voice.rank <= least_certain(trigger.claimed_by_voice, debrief.certainty).rank
        if words is not None:
            assert debrief.certainty.rank <= stated.rank


@pytest.mark.parametrize(
    "broken",
    [
        evolve(TRIGGER, text=evolve(TRIGGER.text, what_changed="a " * 2_000)),
        evolve(TRIGGER, text=evolve(TRIGGER.text, what_changed=" ")),
        evolve(TRIGGER, certainty=Certainty.HYPOTHESIS, voice_certainty=Certainty.CONFIRMED),
    ],
    ids=["too long", "empty", "voice surer than text"],
)
def test_the_debrief_of_an_event_that_broke_a_rule_does_not_quote_it(broken: MissionEvent) -> None:
    debrief = closed(broken)
    assert debrief.text.why_it_matters == "IMPACT: not stated."
    assert (said(debrief) or "").removeprefix("Possibly: ") == "An operator has closed this."


def test_an_operators_words_are_kept_whole_or_refused() -> None:
    longest = "x" * MAX_WORDS_CHARS
    debrief = closed(text=longest)
    assert debrief.text.why_it_matters == f"IMPACT: {longest}"
    assert list(broken_rules(debrief)) == []
    with pytest.raises(InvalidCommand, match=r"text: must not have more than 212 characters"):
        read_closing({"text": f"{longest}x"})


@pytest.mark.parametrize(
    "fields",
    [
        {"text": " "},
        {"mode": "callout"},
        {"evidence_refs": ["a"]},
        {"text_certainty": "confirmed"},
        {"context_tier": 7},
    ],
)
def test_an_invalid_closing_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidCommand):
        read_closing(fields)


def test_a_closing_may_be_empty() -> None:
    closing = read_closing({"text": None, "operator_ref": None})
    assert (closing.words, closing.operator_ref, closing.context, closing.policy_ts_ms) == (None, None, Context(), None)
