"""Callout policy: decides from an event, a listener, a history and a time whether the event is spoken.

The policy is deterministic: the same sequence gives the same decisions in any process. The checks run in the order of
`SuppressionReason`, and the first that applies is the reason. The text is never changed. A suppressed callout uses up
no limit and leaves the history as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import rfc8785
from attrs import frozen
from blake3 import blake3

from footlights_transports.views.mission.pure.history import History, Spoken
from footlights_transports.views.mission.pure.matrix import Speak, row_of
from footlights_transports.views.mission.pure.payload import Suppression, UtilityPayload, VoicePayload
from footlights_transports.views.mission.pure.shortening import shorten
from footlights_transports.views.mission.pure.terms import HEDGES, SuppressionReason, least_certain
from footlights_transports.views.mission.pure.text import normalize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights_transports.views.mission.pure.history import MissionKey
    from footlights_transports.views.mission.pure.matrix import Row
    from footlights_transports.views.mission.pure.payload import Context, MissionEvent

_KEY_BYTES = 16


@frozen(kw_only=True)
class Decision:
    """The decision about one event."""

    payload: UtilityPayload
    history: History
    """The history for the next decision."""
    mission: MissionKey
    spoken: Spoken | None
    """The entry that it added to the history, if it is to be spoken."""

    @property
    def speak(self) -> bool:
        return self.payload.voice is not None


def decide(event: MissionEvent, context: Context, history: History, time_ms: int) -> Decision:
    """Decide whether to speak an event, and which words. The payload always has the text."""
    mission = (context.tenant_id, event.mission_id)
    key = dedupe_key(event)
    spoken = Spoken(history.now(time_ms), event.event_type, event.classification, key)
    row = row_of(event, context)
    voice = _voice(event, row)
    reason, wait, scope = _violation(event, row, voice), 0, None
    if reason is None:
        limits = history.waits(mission, spoken, context.user_id)
        reason, wait, scope = next((limit for limit in limits if limit[1]), (None, 0, None))
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
    after = history.spoke(mission, spoken, context.user_id)
    return Decision(payload=payload, history=after, mission=mission, spoken=spoken)


def voice_failed(decision: Decision, history: History, time_ms: int) -> Decision:
    """The decision after the voice failed: suppressed, its place in the limits free again, the failure counted.

    `history` is the newest one: other events may have been decided meanwhile.
    """
    return _silenced(decision, history, history.now(time_ms), is_failure=True)


def voice_dropped(decision: Decision, history: History, time_ms: int) -> Decision:
    """The decision if the voice never started or was cancelled: as `voice_failed`, but no failure is counted."""
    return _silenced(decision, history, history.now(time_ms), is_failure=False)


def _silenced(decision: Decision, history: History, now: int, *, is_failure: bool) -> Decision:
    assert decision.spoken is not None, "only a callout that is to be spoken can end silently"
    after = history.unspoke(decision.mission, decision.spoken)
    after = after.failed(now) if is_failure else after
    payload = decision.payload.silenced(SuppressionReason.VOICE_BACKEND_ERROR, after.breaker_wait(now))
    return Decision(payload=payload, history=after, mission=decision.mission, spoken=None)


def dedupe_key(event: MissionEvent) -> str:
    """A digest of the mission, the type, the classification and the normalized text."""
    basis = [event.mission_id, event.event_type.value, event.classification.value, normalize(event.text.spoken)]
    return blake3(rfc8785.dumps(basis)).hexdigest(length=_KEY_BYTES)


def broken_rules(event: MissionEvent, context: Context | None = None) -> Iterator[str]:
    """The names of the rules of the contract that an event breaks for any listener.

    With a context also `nothing_to_say` if the voice for that listener has no room for what the text means.
    """
    return _broken_rules(event, None if context is None else _voice(event, row_of(event, context)))


def _broken_rules(event: MissionEvent, voice: VoicePayload | None) -> Iterator[str]:
    if event.claimed_by_voice.rank > event.certainty.rank:
        yield "voice_more_certain_than_text"
    yield from event.text.broken_rules()
    if not event.text.spoken or (voice is not None and not voice.text):
        yield "nothing_to_say"


def _violation(event: MissionEvent, row: Row, voice: VoicePayload | None) -> SuppressionReason | None:
    """The first reason against an event that does not depend on the history."""
    is_linked = event.operator_ref is not None and event.operator_ref.strip()
    if voice is None or (row.speak is Speak.OPTIONAL and not is_linked):
        return SuppressionReason.CONTEXT_INELIGIBLE
    if any(_broken_rules(event, voice)):
        return SuppressionReason.CONTRACT_VIOLATION
    return None if row.allows(event.supported_certainty) else SuppressionReason.MISSING_EVIDENCE


def _voice(event: MissionEvent, row: Row) -> VoicePayload | None:
    """The words of the voice, if the row allows speech."""
    if row.speech is None:
        return None
    mode = row.narrowed(row.speech, event.mode)
    certainty = least_certain(event.claimed_by_voice, event.supported_certainty)
    hedge = HEDGES[certainty]
    words = shorten(event.text.spoken_lines, row.max_chars_in(mode) - len(hedge))
    return VoicePayload(mode=mode, text=words and f"{hedge}{words}", certainty=certainty)
