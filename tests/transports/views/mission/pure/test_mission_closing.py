"""Closing an event: a debrief is never surer than what it closes, and nothing of it is cut."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from attrs import evolve

from footlights.errors import InvalidCommand
from footlights_transports.views.mission.pure.history import History
from footlights_transports.views.mission.pure.payload import Context, MissionEvent
from footlights_transports.views.mission.pure.policy import broken_rules, decide
from footlights_transports.views.mission.pure.requests import MAX_WORDS_CHARS, debrief_of, read_closing
from footlights_transports.views.mission.pure.terms import (
    Certainty,
    Classification,
    MissionEventType,
    SessionState,
    Tier,
    least_certain,
)
from footlights_transports.views.mission.pure.text import compose

LISTENING = Context(tier=Tier.AWARE, session_state=SessionState.ACTIVE)
KIND = MissionEventType.THREAT_UPDATE, Classification.CRITICAL
TRIGGER = MissionEvent(
    mission_id="heist",
    event_id="e1",
    event_type=KIND[0],
    classification=KIND[1],
    certainty=Certainty.CONFIRMED,
    text=compose(*KIND, change="The door is open.", impact="Anybody may come in.", evidence_refs=["w#1"]),
    evidence_refs=("w#1",),
    system_state_claim=True,
)


def closed(trigger: MissionEvent = TRIGGER, **fields: Any) -> MissionEvent:
    return debrief_of(trigger, read_closing({"operator_ref": "op-7", **fields}), "d1")


def said(event: MissionEvent) -> str | None:
    voice = decide(event, LISTENING, History(), 0).payload.voice
    return None if voice is None else voice.text


def test_without_words_what_changed_is_told_with_its_claims_and_its_evidence() -> None:
    debrief = closed()
    assert (debrief.event_type, debrief.classification) == (MissionEventType.DEBRIEF, KIND[1])
    assert (debrief.mission_id, debrief.event_id, debrief.operator_ref) == ("heist", "d1", "op-7")
    assert (debrief.certainty, debrief.evidence_refs) == (Certainty.CONFIRMED, ("w#1",))
    assert debrief.system_state_claim
    assert said(debrief) == "An operator has closed this. The door is open."


def test_an_operators_own_words_are_not_what_the_evidence_of_the_event_shows() -> None:
    debrief = closed(text="The dragon  is dead.")
    assert (debrief.certainty, debrief.evidence_refs) == (Certainty.UNKNOWN, ())
    assert debrief.text.evidence_anchor == "EVIDENCE: none."
    assert said(debrief) == "An operator has closed this. The dragon is dead."


def test_an_operator_may_say_how_sure_the_words_are_and_where_they_can_be_checked() -> None:
    sure = closed(text="It is shut.", text_certainty="confirmed", evidence_refs=["w#2"])
    assert (sure.supported_certainty, sure.evidence_refs) == (Certainty.CONFIRMED, ("w#2",))
    assert closed(text="It is shut.", text_certainty="confirmed").supported_certainty is Certainty.HYPOTHESIS


@pytest.mark.parametrize("words", [None, "It is shut."])
@pytest.mark.parametrize("has_evidence", [True, False])
def test_a_debrief_is_never_surer_than_what_it_closes(words: str | None, has_evidence: bool) -> None:
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


def test_what_would_not_be_the_same_again_is_not_spoken_because_it_was_closed() -> None:
    trigger = evolve(TRIGGER, repo_attributed=True, deterministic=False)
    for fields in ({}, {"text": "The build is broken."}):
        debrief = closed(trigger, **fields)
        assert list(broken_rules(debrief)) == ["repo_claim_not_deterministic"]
        assert said(debrief) is None


@pytest.mark.parametrize(
    "broken",
    [
        evolve(TRIGGER, text=evolve(TRIGGER.text, what_changed="a " * 2_000)),
        evolve(TRIGGER, text=evolve(TRIGGER.text, what_changed=" ")),
        evolve(TRIGGER, certainty=Certainty.HYPOTHESIS, voice_certainty=Certainty.CONFIRMED),
    ],
    ids=["too long", "empty", "voice surer than text"],
)
def test_of_what_broke_a_rule_only_that_it_is_closed_is_said(broken: MissionEvent) -> None:
    debrief = closed(broken)
    assert debrief.text.why_it_matters == "IMPACT: not stated."
    assert said(debrief) == "An operator has closed this."


def test_words_are_told_whole_or_refused() -> None:
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
def test_a_closing_that_makes_no_sense_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidCommand):
        read_closing(fields)


def test_everything_may_be_missing_from_a_closing() -> None:
    closing = read_closing({"text": None, "operator_ref": None})
    assert (closing.words, closing.operator_ref, closing.context, closing.policy_ts_ms) == (None, None, Context(), None)
