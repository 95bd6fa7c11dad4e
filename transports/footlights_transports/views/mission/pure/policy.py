"""What becomes of a mission event: (event, context, history, time) → text, voice or why not, and the history after it.

Nothing here reads a clock, throws dice or talks to anybody, so the same sequence gives the same decisions anywhere.
The checks run in the order of `SuppressionReason`, and the first that applies is the reason. The text is never
touched. What is suppressed takes nothing from any limit and leaves the history as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import rfc8785
from attrs import frozen
from blake3 import blake3

from footlights_transports.views.mission.pure.history import URGENT, History, Spoken
from footlights_transports.views.mission.pure.matrix import row_for
from footlights_transports.views.mission.pure.payload import Suppression, UtilityPayload, VoicePayload
from footlights_transports.views.mission.pure.terms import (
    LimitScope,
    MissionEventType,
    SuppressionReason,
    least_certain,
)
from footlights_transports.views.mission.pure.text import normalize, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights_transports.views.mission.pure.history import MissionKey
    from footlights_transports.views.mission.pure.matrix import Row
    from footlights_transports.views.mission.pure.payload import Context, MissionEvent

_KEY_BYTES = 16


@frozen(kw_only=True)
class Decision:
    """What became of one event."""

    payload: UtilityPayload
    history: History
    """What the next decision is made with."""
    mission: MissionKey
    spoken: Spoken | None
    """What it took from the limits, if it is to be spoken."""

    @property
    def speak(self) -> bool:
        return self.payload.voice is not None


def decide(event: MissionEvent, context: Context, history: History, time_ms: int) -> Decision:
    """Whether to speak, and what. The text survives in any case."""
    now = history.now(time_ms)
    mission = (context.tenant_id, event.mission_id)
    key = dedupe_key(event)
    row = row_of(event, context)
    voice = _voice(event, row)
    reason, wait, scope = next(_reasons(event, context, row, voice, mission, key, history, now), (None, 0, None))
    payload = UtilityPayload(
        mission_id=event.mission_id,
        event_id=event.event_id,
        event_type=event.event_type,
        classification=event.classification,
        certainty=event.supported_certainty,
        evidence_refs=event.evidence_refs,
        text=event.text,
        voice=voice if reason is None else None,
        suppression=Suppression(dedupe_key=key, reason=reason, cooldown_ms=wait, scope=scope),
        tenant_id=context.tenant_id,
    )
    if reason is not None:
        return Decision(payload=payload, history=history, mission=mission, spoken=None)
    spoken = Spoken(now, key, event.classification in URGENT)
    after = history.spoke(mission, spoken, context.user_id)
    return Decision(payload=payload, history=after, mission=mission, spoken=spoken)


def voice_failed(decision: Decision, history: History, time_ms: int) -> Decision:
    """The same event after its voice failed: suppressed, what it took given back, the failure counted.

    `history` is the newest one: other events may have been decided while the voice tried.
    """
    assert decision.spoken is not None, "what was not spoken cannot fail"
    now = history.now(time_ms)
    return _silenced(decision, history.unspoke(decision.mission, decision.spoken).failed(now), now)


def voice_dropped(decision: Decision, history: History, time_ms: int) -> Decision:
    """The same event if its voice was never tried, or was cut off: what it took given back, no failure counted."""
    assert decision.spoken is not None, "what was not spoken cannot be dropped"
    return _silenced(decision, history.unspoke(decision.mission, decision.spoken), history.now(time_ms))


def _silenced(decision: Decision, after: History, now: int) -> Decision:
    payload = decision.payload.silenced(SuppressionReason.VOICE_BACKEND_ERROR, after.breaker_wait(now))
    return Decision(payload=payload, history=after, mission=decision.mission, spoken=None)


def row_of(event: MissionEvent, context: Context) -> Row:
    """The row of the matrix that decides about an event, by what it claims to be."""
    return row_for(
        context.tier,
        context.session_state,
        context.voice_mode,
        event.event_type,
        event.classification,
        event.certainty,
    )


def dedupe_key(event: MissionEvent) -> str:
    """A digest of the mission, the type, the class and the normalized text."""
    basis = [event.mission_id, event.event_type.value, event.classification.value, normalize(event.text.spoken)]
    return blake3(rfc8785.dumps(basis)).hexdigest(length=_KEY_BYTES)


def broken_rules(event: MissionEvent, context: Context | None = None) -> Iterator[str]:
    """The names of the rules of the contract that an event breaks, whoever would hear it.

    With a context also what it breaks for those listeners: a voice of which not a word fits has nothing to say.
    """
    return _broken_rules(event, None if context is None else _voice(event, row_of(event, context)))


def _broken_rules(event: MissionEvent, voice: VoicePayload | None) -> Iterator[str]:
    if event.claimed_by_voice.rank > event.certainty.rank:
        yield "voice_more_certain_than_text"
    if event.repo_attributed and not event.deterministic:
        yield "repo_claim_not_deterministic"
    yield from event.text.broken_rules()
    if not event.text.spoken or (voice is not None and not voice.text):
        yield "nothing_to_say"


def _reasons(
    event: MissionEvent,
    context: Context,
    row: Row,
    voice: VoicePayload | None,
    mission: MissionKey,
    key: str,
    history: History,
    now: int,
) -> Iterator[tuple[SuppressionReason, int, LimitScope | None]]:
    """All that speaks against it, in the order of the contract, how long each will last, and whose limit it is."""
    if voice is None or (event.event_type is MissionEventType.DEBRIEF and not _is_linked(event)):
        yield SuppressionReason.CONTEXT_INELIGIBLE, 0, None
    if any(_broken_rules(event, voice)):
        yield SuppressionReason.CONTRACT_VIOLATION, 0, None
    if not row.allows(event.supported_certainty):
        yield SuppressionReason.MISSING_EVIDENCE, 0, None
    if wait := history.dedupe_wait(mission, key, event.classification, now):
        yield SuppressionReason.DEDUPE_COOLDOWN, wait, None
    if event.classification not in URGENT and (wait := history.mission_wait(mission, now)):
        yield SuppressionReason.MISSION_RATE_LIMITED, wait, LimitScope.MISSION
    if wait := history.voice_wait(mission, now):
        yield SuppressionReason.VOICE_RATE_LIMITED, wait, LimitScope.MISSION
    if wait := history.room_wait(mission, now):
        yield SuppressionReason.VOICE_RATE_LIMITED, wait, LimitScope.MISSIONS
    if wait := history.budget_wait(mission[0], now):
        yield SuppressionReason.VOICE_BUDGET_EXCEEDED, wait, LimitScope.TENANT
    if wait := history.user_wait(mission[0], context.user_id, now):
        yield SuppressionReason.VOICE_BUDGET_EXCEEDED, wait, LimitScope.USER
    if wait := history.tenant_wait(mission[0], now):
        yield SuppressionReason.VOICE_BUDGET_EXCEEDED, wait, LimitScope.SERVER
    if wait := history.breaker_wait(now):
        yield SuppressionReason.VOICE_BACKEND_ERROR, wait, None


def _is_linked(event: MissionEvent) -> bool:
    return bool(event.operator_ref and event.operator_ref.strip())


def _voice(event: MissionEvent, row: Row) -> VoicePayload | None:
    """What the voice would say, if its row lets it speak."""
    if row.speech is None:
        return None
    mode = row.speech if event.mode is None else event.mode
    return VoicePayload(
        mode=mode,
        text=shorten(event.text.spoken, row.max_chars_in(mode)),
        certainty=least_certain(event.claimed_by_voice, event.supported_certainty),
    )
