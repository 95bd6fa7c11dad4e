"""Properties of the callout policy, for any sequence of events and listeners."""

from __future__ import annotations

from typing import TypeAlias

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from footlights_transports.views.mission.pure.history import (
    BREAKER_FAILURES,
    MAX_MISSIONS_PER_TENANT,
    MAX_TENANTS,
    VOICE_RATE,
    History,
)
from footlights_transports.views.mission.pure.payload import Context, MissionEvent
from footlights_transports.views.mission.pure.policy import Decision, broken_rules, decide, voice_failed
from footlights_transports.views.mission.pure.terms import (
    HEDGES,
    Certainty,
    Classification,
    MissionEventType,
    SessionState,
    SpeechMode,
    SuppressionReason,
    Tier,
    VoiceMode,
)
from footlights_transports.views.mission.pure.text import NOT_STATED, TextPayload, compose, compose_plain
from tests.kit.callouts import LISTENING

WORDS = st.sampled_from(
    ["Lit.", "Dark.", "The guard woke. The door shuts.", "word " * 90, "x" * 170, "One. two", NOT_STATED]
)


@st.composite
def texts(draw: st.DrawFn, event_type: MissionEventType, classification: Classification) -> TextPayload:
    words = draw(WORDS)
    if draw(st.booleans()):
        return compose_plain(event_type, classification, words)
    return compose(event_type, classification, change=words, impact=draw(WORDS), next_action=draw(WORDS))


@st.composite
def events(draw: st.DrawFn) -> MissionEvent:
    event_type, classification = draw(st.sampled_from(MissionEventType)), draw(st.sampled_from(Classification))
    return MissionEvent(
        mission_id=draw(st.sampled_from(["a", "b"])),
        event_id=draw(st.sampled_from(["e1", "e2"])),
        event_type=event_type,
        classification=classification,
        text=draw(texts(event_type, classification)),
        certainty=draw(st.sampled_from(Certainty)),
        voice_certainty=draw(st.none() | st.sampled_from(Certainty)),
        mode=draw(st.none() | st.sampled_from(SpeechMode)),
        evidence_refs=draw(st.sampled_from([(), ("",), ("docs/a.md",)])),
        repo_attributed=draw(st.booleans()),
        system_state_claim=draw(st.booleans()),
        operator_ref=draw(st.sampled_from([None, "", "op-1"])),
    )


# Mostly listeners that may hear: the others are all silent.
CONTEXTS = st.builds(
    Context,
    tier=st.sampled_from([Tier.AWARE, Tier.AWARE, Tier.TEXT_ONLY]),
    session_state=st.sampled_from([SessionState.ACTIVE] * 5 + list(SessionState)),
    voice_mode=st.sampled_from([VoiceMode.NORMAL] * 3 + list(VoiceMode)),
    tenant_id=st.sampled_from(["t", "u"]),
)
Step: TypeAlias = tuple[MissionEvent, Context, int, bool]
"""An event, its listener, the time since the step before, and whether the voice fails."""
STEPS = st.lists(st.tuples(events(), CONTEXTS, st.integers(0, 20_000), st.booleans()), max_size=8)


def told(steps: list[Step]) -> list[tuple[MissionEvent, History, Decision]]:
    """Each step: the event, the history before it, and the decision."""
    history, now, all_told = History(), 0, list[tuple[MissionEvent, History, Decision]]()
    for event, context, pause, fails in steps:
        now += pause
        decision = decide(event, context, history, now)
        if fails and decision.speak:
            decision = voice_failed(decision, decision.history, now)
        all_told.append((event, history, decision))
        history = decision.history
    return all_told


@pytest.mark.shows("callouts-5")
@given(STEPS)
def test_a_voice_is_never_more_certain_than_the_text(steps: list[Step]) -> None:
    for event, _, decision in told(steps):
        if decision.payload.voice is not None:
            assert decision.payload.voice.certainty.rank <= decision.payload.certainty.rank <= event.certainty.rank


@pytest.mark.shows("callouts-6", "callouts-47")
@given(STEPS)
def test_a_claim_has_evidence_or_is_a_hypothesis_at_best(
    steps: list[Step],
) -> None:
    for event, _, decision in told(steps):
        if (event.repo_attributed or event.system_state_claim) and not event.has_evidence:
            assert decision.payload.certainty.rank <= Certainty.HYPOTHESIS.rank


@pytest.mark.shows("callouts-8", "callouts-49")
@given(STEPS)
def test_a_callout_is_either_spoken_or_has_one_reason(steps: list[Step]) -> None:
    for (event, context, *_), (_, _, decision) in zip(steps, told(steps), strict=True):
        suppression = decision.payload.suppression
        assert decision.speak == (suppression.reason is None) == (not suppression.suppressed)
        assert suppression.cooldown_ms >= 0
        assert decision.speak is (decision.spoken is not None)
        assert not decision.speak or suppression.cooldown_ms == 0
        assert suppression.dedupe_key
        if suppression.reason is SuppressionReason.CONTRACT_VIOLATION:
            assert any(broken_rules(event, context))


@pytest.mark.shows("callouts-31", "callouts-46")
@given(STEPS)
def test_the_text_is_never_lost_and_the_voice_adds_nothing(
    steps: list[Step],
) -> None:
    for event, _, decision in told(steps):
        assert decision.payload.text == event.text
        if decision.payload.voice is not None:
            words = decision.payload.voice.text.removeprefix(HEDGES[decision.payload.voice.certainty])
            assert words
            assert event.text.spoken.startswith(words)


@pytest.mark.shows("callouts-7", "callouts-66")
@given(STEPS)
def test_the_same_sequence_gives_the_same_decisions(steps: list[Step]) -> None:
    assert told(steps) == told(steps)


@given(STEPS)
def test_a_suppressed_callout_uses_up_no_limit(
    steps: list[Step],
) -> None:
    for _, before, decision in told(steps):
        after = decision.history
        if not decision.speak and after.failures == before.failures:
            assert after is before


@given(STEPS)
def test_removing_the_suppressed_callouts_changes_no_other_decision(
    steps: list[Step],
) -> None:
    steps = [(event, context, pause, False) for event, context, pause, _ in steps]
    decisions = [decision for _, _, decision in told(steps)]
    pause, spoken = 0, list[Step]()
    for (event, context, more, fails), decision in zip(steps, decisions, strict=True):
        pause += more
        if decision.speak:
            spoken.append((event, context, pause, fails))
            pause = 0
    assert [decision for _, _, decision in told(spoken)] == [each for each in decisions if each.speak]


@given(STEPS)
def test_the_history_stays_within_its_bounds(steps: list[Step]) -> None:
    for _, _, decision in told(steps):
        history = decision.history
        assert len(history.tenants) <= MAX_TENANTS
        assert len(history.failures) <= BREAKER_FAILURES
        for missions in history.missions.values():
            assert 0 < len(missions) <= MAX_MISSIONS_PER_TENANT
            assert all(0 < len(spoken) <= VOICE_RATE for spoken in missions.values())


@given(events(), CONTEXTS)
def test_cooldown_ms_is_the_exact_time_until_the_callout_is_allowed(event: MissionEvent, context: Context) -> None:
    first = decide(event, context, History(), 0)
    again = decide(event, context, first.history, 1)
    wait = again.payload.suppression.cooldown_ms
    if wait:
        assert not decide(event, context, first.history, wait).speak
        assert decide(event, context, first.history, wait + 1).speak


@given(events(), st.sampled_from(Certainty))
def test_less_certainty_never_makes_a_voice_more_certain(event: MissionEvent, certainty: Certainty) -> None:
    voice = decide(evolve(event, certainty=certainty, voice_certainty=None), LISTENING, History(), 0).payload.voice
    assert voice is None or voice.certainty.rank <= certainty.rank
