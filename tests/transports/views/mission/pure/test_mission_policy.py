"""The callout policy: certainty, evidence, operators, and the reason of each suppression."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve

from footlights_transports.views.mission.pure.history import DAY_BUDGET, VOICE_RATE, DayCount, History, Spoken
from footlights_transports.views.mission.pure.matrix import row_of
from footlights_transports.views.mission.pure.payload import Context, MissionEvent
from footlights_transports.views.mission.pure.policy import Decision, broken_rules, decide, dedupe_key
from footlights_transports.views.mission.pure.terms import (
    Certainty,
    Classification,
    MissionEventType,
    SpeechMode,
    SuppressionReason,
    VoiceMode,
    least_certain,
)
from footlights_transports.views.mission.pure.text import NOT_STATED, TextPayload, compose
from tests.kit.callouts import LISTENING, mission_event

if TYPE_CHECKING:
    from collections.abc import Collection

URGENT_ONLY = evolve(LISTENING, voice_mode=VoiceMode.CRITICAL_ONLY)


def event(
    event_type: MissionEventType = MissionEventType.THREAT_UPDATE,
    classification: Classification = Classification.WARN,
    certainty: Certainty = Certainty.REASONED,
    **changes: Any,
) -> MissionEvent:
    text = compose(event_type, classification, change="The guard woke.", impact="The door shuts.")
    given: dict[str, Any] = {"certainty": certainty, "text": text}
    return mission_event("", event_type, classification, **(given | changes))


ANCHORED = evolve(event().text, evidence_anchor="EVIDENCE: docs/a.md")
"""The same text with evidence."""


def judged(made: MissionEvent, context: Context = LISTENING) -> Decision:
    return decide(made, context, History(), 0)


def reason(made: MissionEvent, context: Context = LISTENING) -> SuppressionReason | None:
    return judged(made, context).payload.suppression.reason


@pytest.mark.shows("callouts-8", "callouts-10", "callouts-11", "callouts-12", "callouts-14", "callouts-27")
def test_the_names_are_those_of_the_contract() -> None:
    assert {*MissionEventType} == {"state_change", "threat_update", "timer_update", "action_required", "debrief"}
    assert {*Classification} == {"info", "warn", "critical", "action"}
    assert {*Certainty} == {"confirmed", "reasoned", "hypothesis", "unknown"}
    assert {*SpeechMode} == {"callout", "briefing", "debrief"}
    assert {*SuppressionReason} == {
        "context_ineligible", "dedupe_cooldown", "mission_rate_limited", "voice_rate_limited",
        "voice_budget_exceeded", "voice_backend_error", "missing_evidence", "contract_violation",
    }  # fmt: skip


# -- certainty parity


@pytest.mark.shows("callouts-13")
def test_certainties_are_ordered_as_the_contract_says() -> None:
    ordered = sorted(Certainty, key=lambda certainty: certainty.rank, reverse=True)
    assert ordered == ["confirmed", "reasoned", "hypothesis", "unknown"]
    assert least_certain(Certainty.CONFIRMED, Certainty.HYPOTHESIS) is Certainty.HYPOTHESIS


@pytest.mark.shows("callouts-44", "callouts-45", "callouts-46", "callouts-64")
@pytest.mark.parametrize(("text", "voice"), list(product(Certainty, Certainty)))
def test_a_voice_more_certain_than_the_text_is_a_violation_and_never_lowered(text: Certainty, voice: Certainty) -> None:
    decision = judged(event(classification=Classification.CRITICAL, certainty=text, voice_certainty=voice))
    if voice.rank > text.rank:
        assert decision.payload.suppression.reason is SuppressionReason.CONTRACT_VIOLATION
        assert decision.payload.voice is None
    else:
        assert decision.payload.voice is not None
        assert decision.payload.voice.certainty is voice
    assert decision.payload.certainty is text
    assert decision.payload.text == event(classification=Classification.CRITICAL).text


@pytest.mark.parametrize("text", Certainty)
def test_a_voice_is_by_default_as_certain_as_the_text(text: Certainty) -> None:
    voice = judged(event(classification=Classification.ACTION, certainty=text)).payload.voice
    assert voice is not None
    assert voice.certainty is text


@pytest.mark.shows("callouts-57")
def test_a_text_is_by_default_of_unknown_certainty() -> None:
    text = compose(MissionEventType.STATE_CHANGE, Classification.INFO, change="The lamp is lit.")
    made = MissionEvent(
        mission_id="m",
        event_id="e",
        event_type=MissionEventType.STATE_CHANGE,
        classification=Classification.INFO,
        text=text,
    )
    assert made.certainty is Certainty.UNKNOWN
    assert made.claimed_by_voice is Certainty.UNKNOWN


# -- evidence parity


@pytest.mark.shows("callouts-25", "callouts-39", "callouts-47", "callouts-65")
@pytest.mark.parametrize("claim", ["repo_attributed", "system_state_claim"])
@pytest.mark.parametrize("refs", [(), ("",), ("  ",)])
@pytest.mark.parametrize(
    ("event_type", "classification", "certainty"),
    [
        (MissionEventType.ACTION_REQUIRED, Classification.ACTION, Certainty.REASONED),
        (MissionEventType.ACTION_REQUIRED, Classification.INFO, Certainty.CONFIRMED),
        (MissionEventType.STATE_CHANGE, Classification.INFO, Certainty.CONFIRMED),
    ],
)
def test_a_claim_without_evidence_is_suppressed_if_its_row_allows_no_hypothesis(
    claim: str,
    refs: tuple[str, ...],
    event_type: MissionEventType,
    classification: Classification,
    certainty: Certainty,
) -> None:
    made = event(event_type, classification, certainty, evidence_refs=refs, **{claim: True})
    decision = judged(made)
    assert decision.payload.suppression.reason is SuppressionReason.MISSING_EVIDENCE
    assert decision.payload.text == made.text
    assert decision.payload.certainty is Certainty.HYPOTHESIS


@pytest.mark.shows("callouts-25")
@pytest.mark.parametrize("claim", ["repo_attributed", "system_state_claim"])
@pytest.mark.parametrize("certainty", Certainty)
def test_a_claim_without_evidence_is_a_hypothesis_at_best_if_its_row_allows_one(
    claim: str, certainty: Certainty
) -> None:
    claims: dict[str, Any] = {claim: True}
    decision = judged(event(classification=Classification.CRITICAL, certainty=certainty, **claims))
    wanted = Certainty.UNKNOWN if certainty is Certainty.UNKNOWN else Certainty.HYPOTHESIS
    assert decision.payload.certainty is wanted
    assert decision.payload.voice is not None
    assert decision.payload.voice.certainty is wanted


@pytest.mark.parametrize("claim", ["repo_attributed", "system_state_claim"])
def test_a_claim_with_evidence_keeps_its_certainty(claim: str) -> None:
    made = event(MissionEventType.ACTION_REQUIRED, Classification.ACTION, evidence_refs=("docs/a.md#L1",))
    claims: dict[str, Any] = {claim: True}
    decision = judged(evolve(made, text=ANCHORED, **claims))
    assert decision.speak
    assert decision.payload.certainty is Certainty.REASONED
    assert decision.payload.evidence_refs == ("docs/a.md#L1",)


@pytest.mark.parametrize("claim", ["repo_attributed", "system_state_claim"])
@pytest.mark.parametrize("anchor", ["EVIDENCE: none.", "none", f"EVIDENCE: {NOT_STATED}", "Not stated"])
def test_a_claim_whose_text_names_no_evidence_has_none(claim: str, anchor: str) -> None:
    claims: dict[str, Any] = {claim: True, "evidence_refs": ("docs/a.md",)}
    made = event(MissionEventType.STATE_CHANGE, Classification.INFO, Certainty.CONFIRMED, **claims)
    silent = judged(evolve(made, text=evolve(ANCHORED, evidence_anchor=anchor)))
    assert silent.payload.suppression.reason is SuppressionReason.MISSING_EVIDENCE
    assert silent.payload.certainty is Certainty.HYPOTHESIS
    assert judged(evolve(made, text=ANCHORED)).payload.certainty is Certainty.CONFIRMED


def test_an_event_without_claims_needs_no_evidence() -> None:
    assert reason(event(MissionEventType.STATE_CHANGE, Classification.INFO, Certainty.CONFIRMED)) is None


def test_a_suppressed_text_without_evidence_is_a_hypothesis_too() -> None:
    decision = judged(event(certainty=Certainty.CONFIRMED, repo_attributed=True), Context())
    assert decision.payload.suppression.reason is SuppressionReason.CONTEXT_INELIGIBLE
    assert decision.payload.certainty is Certainty.HYPOTHESIS


@pytest.mark.shows("callouts-40")
@pytest.mark.parametrize("operator_ref", [None, "", " "])
def test_a_debrief_without_an_operators_action_is_not_spoken(operator_ref: str | None) -> None:
    made = event(MissionEventType.DEBRIEF, Classification.CRITICAL)
    assert reason(evolve(made, operator_ref=operator_ref)) is SuppressionReason.CONTEXT_INELIGIBLE
    assert reason(evolve(made, operator_ref="op-7")) is None


@pytest.mark.shows("callouts-38")
@pytest.mark.parametrize("classification", [Classification.CRITICAL, Classification.ACTION])
@pytest.mark.parametrize("certainty", Certainty)
@pytest.mark.parametrize("operator_ref", [None, "op-7"])
def test_a_grave_debrief_is_a_callout_to_who_hears_only_what_is_critical(
    classification: Classification, certainty: Certainty, operator_ref: str | None
) -> None:
    made = event(MissionEventType.DEBRIEF, classification, certainty, operator_ref=operator_ref)
    voice = judged(made, URGENT_ONLY).payload.voice
    assert voice is not None
    assert voice.mode is SpeechMode.CALLOUT


# -- the contract


@pytest.mark.parametrize("line", ["what_changed", "why_it_matters", "next_action", "evidence_anchor"])
@pytest.mark.parametrize("words", ["", "x" * 999])
def test_a_broken_rule_of_the_text_is_a_violation_and_the_text_stays_as_it_is(line: str, words: str) -> None:
    broken = evolve(event().text, **{line: words})
    decision = judged(event(text=broken))
    assert decision.payload.suppression.reason is SuppressionReason.CONTRACT_VIOLATION
    assert decision.payload.text == broken


def test_a_voice_into_which_no_word_fits_is_a_violation() -> None:
    lines = TextPayload(what_changed="x" * 150, why_it_matters="y", next_action="z", evidence_anchor="none")
    made = event(MissionEventType.STATE_CHANGE, Classification.INFO, text=lines)
    assert list(broken_rules(made)) == []
    assert list(broken_rules(made, LISTENING)) == ["nothing_to_say"]
    assert reason(made) is SuppressionReason.CONTRACT_VIOLATION
    assert list(broken_rules(made, Context())) == []


def test_a_text_without_content_is_a_violation() -> None:
    kind = MissionEventType.THREAT_UPDATE, Classification.CRITICAL
    made = event(*kind, text=compose(*kind, change=NOT_STATED))
    assert list(broken_rules(made)) == ["nothing_to_say"]
    assert reason(made) is SuppressionReason.CONTRACT_VIOLATION


def test_the_rules_that_are_broken_have_names() -> None:
    made = event(voice_certainty=Certainty.CONFIRMED, text=evolve(event().text, next_action=""))
    assert list(broken_rules(made)) == ["voice_more_certain_than_text", "next_action_empty"]


# -- how it is spoken


@pytest.mark.shows("callouts-28", "callouts-30")
@pytest.mark.parametrize(
    ("event_type", "classification", "mode", "longest"),
    [
        (MissionEventType.STATE_CHANGE, Classification.INFO, SpeechMode.CALLOUT, 140),
        (MissionEventType.ACTION_REQUIRED, Classification.INFO, SpeechMode.CALLOUT, 220),
        (MissionEventType.ACTION_REQUIRED, Classification.INFO, SpeechMode.DEBRIEF, 420),
        (MissionEventType.ACTION_REQUIRED, Classification.INFO, None, 420),
    ],
)
def test_a_voice_is_as_long_as_both_its_row_and_its_mode_allow(
    event_type: MissionEventType, classification: Classification, mode: SpeechMode | None, longest: int
) -> None:
    text = compose(event_type, classification, change=f"{'go ' * 30}now!", impact="Go! " * 51, next_action="Go! " * 37)
    made = event(event_type, classification, mode=mode, text=text)
    voice = judged(made).payload.voice
    assert voice is not None
    assert voice.mode is (mode or row_of(made, LISTENING).speech)
    assert longest - 4 < len(voice.text) <= longest
    assert text.spoken.startswith(f"{voice.text.removeprefix('Probably: ')} ")


@pytest.mark.shows("callouts-43")
@pytest.mark.parametrize("mode", [SpeechMode.BRIEFING, SpeechMode.DEBRIEF])
def test_a_mode_that_is_wider_than_the_row_is_not_taken(mode: SpeechMode) -> None:
    voice = judged(event(MissionEventType.STATE_CHANGE, Classification.INFO, mode=mode)).payload.voice
    assert voice is not None
    assert voice.mode is SpeechMode.CALLOUT


@pytest.mark.shows("callouts-33")
@pytest.mark.parametrize(
    ("certainty", "hedge"),
    [
        (Certainty.CONFIRMED, ""),
        (Certainty.REASONED, "Probably: "),
        (Certainty.HYPOTHESIS, "Possibly: "),
        (Certainty.UNKNOWN, "Not confirmed: "),
    ],
)
def test_what_is_less_certain_sounds_less_certain(certainty: Certainty, hedge: str) -> None:
    made = event(MissionEventType.THREAT_UPDATE, Classification.CRITICAL, certainty)
    voice = judged(made).payload.voice
    assert voice is not None
    assert voice.text == f"{hedge}{made.text.spoken}"


@pytest.mark.shows("callouts-32")
def test_a_voice_that_could_only_say_something_else_is_a_violation() -> None:
    kind = MissionEventType.STATE_CHANGE, Classification.INFO
    made = event(*kind, text=compose(*kind, change=f"Open the {'very ' * 20}old door {'only ' * 8}after the alarm."))
    assert reason(made) is SuppressionReason.CONTRACT_VIOLATION
    assert judged(made).payload.text == made.text


def test_a_hypothesis_that_asks_for_action_is_a_callout_and_no_briefing() -> None:
    made = event(MissionEventType.ACTION_REQUIRED, Classification.ACTION, Certainty.HYPOTHESIS)
    voice = judged(made).payload.voice
    assert voice is not None
    assert voice.mode is SpeechMode.CALLOUT


# -- one reason


def test_the_first_check_that_applies_is_the_reason() -> None:
    worst = event(
        MissionEventType.DEBRIEF,
        Classification.INFO,
        Certainty.REASONED,
        voice_certainty=Certainty.CONFIRMED,
        repo_attributed=True,
    )
    assert reason(worst, Context()) is SuppressionReason.CONTEXT_INELIGIBLE
    assert reason(worst) is SuppressionReason.CONTEXT_INELIGIBLE
    linked = evolve(worst, operator_ref="op-1")
    assert reason(linked) is SuppressionReason.CONTRACT_VIOLATION
    unproven = evolve(linked, event_type=MissionEventType.STATE_CHANGE, voice_certainty=None)
    assert reason(unproven) is SuppressionReason.MISSING_EVIDENCE
    assert reason(evolve(unproven, evidence_refs=("docs/a.md",), text=ANCHORED)) is None


AGAINST_THE_EVENT: dict[SuppressionReason, dict[str, Any]] = {
    SuppressionReason.CONTRACT_VIOLATION: {"text": evolve(event().text, next_action="")},
    SuppressionReason.MISSING_EVIDENCE: {"system_state_claim": True},
}
FIRE, LAMP = ((MissionEventType.STATE_CHANGE, each) for each in (Classification.CRITICAL, Classification.INFO))
MANY = tuple(Spoken(number, *FIRE, f"urgent {number}") for number in range(VOICE_RATE))


def history_against(made: MissionEvent, causes: Collection[SuppressionReason]) -> History:
    """A history in which all of these causes apply to an event."""
    spoken: list[Spoken] = []
    if SuppressionReason.VOICE_RATE_LIMITED in causes:
        spoken += MANY
    if SuppressionReason.MISSION_RATE_LIMITED in causes:
        spoken += [
            Spoken(20, *LAMP, "one"),
            Spoken(20, *LAMP, "two"),
        ]
    if SuppressionReason.DEDUPE_COOLDOWN in causes:
        spoken.append(Spoken(20, *LAMP, dedupe_key(made)))
    is_spent = SuppressionReason.VOICE_BUDGET_EXCEEDED in causes
    return History(
        missions={LISTENING.tenant_id: {made.mission_id: tuple(spoken)}} if spoken else {},
        tenants={LISTENING.tenant_id: DayCount(DAY_BUDGET if is_spent else 1)},
        open_until_ms=9_999 if SuppressionReason.VOICE_BACKEND_ERROR in causes else None,
        latest_ms=20,
    )


@pytest.mark.shows("callouts-49")
def test_of_several_causes_the_first_in_the_documented_order_is_the_reason() -> None:
    plain = event(MissionEventType.STATE_CHANGE, Classification.INFO, Certainty.CONFIRMED)
    for chosen in product((False, True), repeat=len(SuppressionReason)):
        causes = [cause for cause, is_given in zip(SuppressionReason, chosen, strict=True) if is_given]
        made = plain
        for cause in causes:
            made = evolve(made, **AGAINST_THE_EVENT.get(cause, {}))
        context = Context() if SuppressionReason.CONTEXT_INELIGIBLE in causes else LISTENING
        history = history_against(made, causes)
        decision = decide(made, context, history, 20)
        assert decision.payload.suppression.reason is next(iter(causes), None), causes
        assert (decision.history is history) is bool(causes), causes


# -- the payload


@pytest.mark.shows("callouts-15")
def test_the_payload_is_the_documented_one() -> None:
    made = event(MissionEventType.ACTION_REQUIRED, Classification.ACTION, evidence_refs=("docs/a.md#L1",))
    assert judged(made).payload.document == {
        "contract_version": "dottie.utility.v1",
        "mission_id": "heist",
        "event_id": "e1",
        "event_type": "action_required",
        "classification": "action",
        "certainty_class": "reasoned",
        "evidence_refs": ["docs/a.md#L1"],
        "text_payload": {
            "what_changed": "CHANGE: action_required/action -- The guard woke.",
            "why_it_matters": "IMPACT: The door shuts.",
            "next_action": "NEXT: not stated.",
            "evidence_anchor": "EVIDENCE: none.",
        },
        "voice_payload": {
            "mode": "briefing",
            "text": "Probably: The guard woke. The door shuts.",
            "certainty_class": "reasoned",
        },
        "suppression": {"suppressed": False, "reason": None, "cooldown_ms": 0, "dedupe_key": dedupe_key(made)},
    }


@pytest.mark.shows("callouts-48")
def test_a_suppressed_payload_has_its_text_and_the_reason() -> None:
    document = judged(event(), Context()).payload.document
    assert document["voice_payload"] is None
    assert document["text_payload"] == event().text.document
    assert document["suppression"] == {
        "suppressed": True,
        "reason": "context_ineligible",
        "cooldown_ms": 0,
        "dedupe_key": dedupe_key(event()),
    }


# -- the dedupe key


@pytest.mark.shows("callouts-50")
@pytest.mark.parametrize(
    "other",
    [
        event(mission_id="other"),
        event(event_type=MissionEventType.TIMER_UPDATE),
        event(classification=Classification.INFO),
        event(text=compose(MissionEventType.THREAT_UPDATE, Classification.WARN, change="The guard slept.")),
    ],
    ids=["mission", "type", "class", "text"],
)
def test_another_mission_type_class_or_text_has_another_key(other: MissionEvent) -> None:
    assert dedupe_key(other) != dedupe_key(event())


@pytest.mark.shows("callouts-50")
def test_nothing_else_changes_the_key() -> None:
    shouted = compose(MissionEventType.THREAT_UPDATE, Classification.WARN, change="THE GUARD WOKE. the door shuts!")
    other = event(event_id="e2", certainty=Certainty.UNKNOWN, evidence_refs=("a",), operator_ref="x", text=shouted)
    assert dedupe_key(other) == dedupe_key(event())


@pytest.mark.shows("callouts-51")
def test_the_key_is_the_same_in_every_process() -> None:
    assert dedupe_key(event()) == "ea154fa78e5ed2019fbfb663d91587f0"
