"""Mission events told as text and, if everything allows it, as voice. Pure and deterministic.

    decision = decide(event, Context(tier=Tier.AWARE, session_state=SessionState.ACTIVE), History(), time_ms=0)
    decision.payload.document     # `dottie.utility.v1`: the text, the voice or why there is none
    decision.history              # for the next decision

`MATRIX` says what may be spoken, `SuppressionReason` why something is not. The text survives whatever is decided.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.lazy import lazy_exports

if TYPE_CHECKING:
    from footlights.mission.history import History
    from footlights.mission.matrix import MATRIX, Row, Speak, row_for
    from footlights.mission.payload import Context, MissionEvent, Suppression, UtilityPayload, VoicePayload
    from footlights.mission.policy import (
        Decision,
        broken_rules,
        decide,
        dedupe_key,
        row_of,
        voice_dropped,
        voice_failed,
    )
    from footlights.mission.replaying import replay
    from footlights.mission.requests import CalloutRequest, read_callout
    from footlights.mission.terms import (
        Certainty,
        Classification,
        LimitScope,
        MissionEventType,
        SessionState,
        SpeechMode,
        SuppressionReason,
        Tier,
        VoiceMode,
    )
    from footlights.mission.text import TextPayload, compose, compose_plain

__all__ = [
    "MATRIX",
    "CalloutRequest",
    "Certainty",
    "Classification",
    "Context",
    "Decision",
    "History",
    "LimitScope",
    "MissionEvent",
    "MissionEventType",
    "Row",
    "SessionState",
    "Speak",
    "SpeechMode",
    "Suppression",
    "SuppressionReason",
    "TextPayload",
    "Tier",
    "UtilityPayload",
    "VoiceMode",
    "VoicePayload",
    "broken_rules",
    "compose",
    "compose_plain",
    "decide",
    "dedupe_key",
    "read_callout",
    "replay",
    "row_for",
    "row_of",
    "voice_dropped",
    "voice_failed",
]

_HOMES = {
    "footlights.mission.history": "History",
    "footlights.mission.matrix": "MATRIX Row Speak row_for",
    "footlights.mission.payload": "Context MissionEvent Suppression UtilityPayload VoicePayload",
    "footlights.mission.policy": "Decision broken_rules decide dedupe_key row_of voice_dropped voice_failed",
    "footlights.mission.replaying": "replay",
    "footlights.mission.requests": "CalloutRequest read_callout",
    "footlights.mission.terms": (
        "Certainty Classification LimitScope MissionEventType SessionState SpeechMode SuppressionReason Tier VoiceMode"
    ),
    "footlights.mission.text": "TextPayload compose compose_plain",
}

if not TYPE_CHECKING:  # a checker that saw these would believe in any name
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
