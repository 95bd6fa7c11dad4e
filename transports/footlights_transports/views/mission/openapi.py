"""OpenAPI schemas of callouts, and the longer descriptions of their operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.wire import MAX_INTEGER
from footlights_transports.http.openapi import (
    APPROVALS,
    FLAG,
    ID_OR_NULL,
    ID_PATTERN,
    TEXT,
    answer,
    answer_in_forms,
    choice,
    fields,
    last_event_id,
    list_of,
    member,
    object_of,
    or_null,
    query,
    ref,
)
from footlights_transports.views.mission.board import MAX_EVENTS
from footlights_transports.views.mission.pure.requests import MAX_REF_CHARS, MAX_REFS, MAX_TEXT_CHARS, MAX_WORDS_CHARS
from footlights_transports.views.mission.pure.terms import (
    PAYLOAD_VERSION,
    Certainty,
    Classification,
    LimitScope,
    MissionEventType,
    SessionState,
    SpeechMode,
    SuppressionReason,
    VoiceMode,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights_transports.http.openapi import Json

REFUSALS = (
    SuppressionReason.VOICE_RATE_LIMITED,
    SuppressionReason.VOICE_BUDGET_EXCEEDED,
    SuppressionReason.VOICE_BACKEND_ERROR,
)
"""Reasons that are answered with an error status."""

NAMES: Json = {"type": "string", "pattern": ID_PATTERN}
"""Names in the paths."""

# -- schemas

_NATURAL: Json = {"type": "integer", "minimum": 0, "maximum": MAX_INTEGER}
_NATURAL_OR_NULL = or_null(_NATURAL)
_FLAG_OR_NULL: Json = {"type": ["boolean", "null"]}
_LINE: Json = {"type": "string", "pattern": r"\S", "maxLength": MAX_TEXT_CHARS}
_REF: Json = {"type": "string", "pattern": r"\S", "maxLength": MAX_REF_CHARS}
_REFS: Json = {"type": ["array", "null"], "items": _REF, "maxItems": MAX_REFS}
_LINES = ("what_changed", "why_it_matters", "next_action", "evidence_anchor")

_EVENT: Json = {
    "mode": choice(SpeechMode),
    "event_type": choice(MissionEventType),
    "classification": choice(Classification),
    "event_id": ID_OR_NULL,
    "text_certainty": choice(Certainty),
    "voice_certainty": choice(Certainty),
    "repo_attributed": _FLAG_OR_NULL,
    "system_state_claim": _FLAG_OR_NULL,
    "evidence_refs": _REFS,
    "operator_ref": or_null(_REF),
}
_LISTENER: Json = {
    "context_tier": {"enum": [0, 1, None]},
    "session_state": choice(SessionState),
    "voice_mode": choice(VoiceMode),
    "tenant_id": ID_OR_NULL,
}
_TIME: Json = {
    "policy_ts_ms": {
        **_NATURAL_OR_NULL,
        "description": "When to decide, in milliseconds. Only a server that was started for replay heeds it.",
    }
}
_AUDIO_URL: Json = {"type": ["string", "null"], "description": "Where you can fetch its recording, until it expires."}
_DECIDED: Json = {
    "speak": FLAG,
    "suppression": ref("Suppression"),
    "payload": ref("UtilityPayload"),
    "policy_ts_ms": {**_NATURAL, "description": "When it was decided."},
    "policy_seq": {**_NATURAL, "description": "Its place among all that was decided or ended here."},
    "voice_failed_ms": _NATURAL_OR_NULL,
    "voice_dropped_ms": _NATURAL_OR_NULL,
    "ended_seq": {**_NATURAL_OR_NULL, "description": "The place of that end, in the same order."},
    "audio_url": _AUDIO_URL,
}
_REFUSAL: Json = {
    **object_of(
        {
            "code": {"type": "string", "enum": [reason.value for reason in REFUSALS]},
            "message": TEXT,
            "scope": {**member(LimitScope), "description": "Whose limit it is, with status 429."},
        }
    ),
    "required": ["code", "message"],
}
_ACKNOWLEDGED: Json = {
    "operator_ref": TEXT,
    "debrief_event_id": TEXT,
    "closed_ms": _NATURAL,
    "trigger_to_debrief_closed_ms": _NATURAL,
}


def _unknown(code: str) -> Json:
    return object_of({"error": object_of({"code": {"const": code}, "message": TEXT})})


MISSION_SCHEMAS: Mapping[str, Json] = {
    "Callout": fields(
        {"text": _LINE, **_EVENT, "mission_id": ID_OR_NULL, **_LISTENER, "dry_run": _FLAG_OR_NULL, **_TIME}, "text"
    ),
    "BoardCallout": {
        **fields(
            {
                "text": or_null(_LINE),
                "text_payload": or_null(fields({name: or_null(_LINE) for name in _LINES})),
                **_EVENT,
                **_LISTENER,
                **_TIME,
            }
        ),
        "description": "Either a `text` or a `text_payload`.",
    },
    "CloseEvent": fields(
        {
            "text": or_null({**_LINE, "maxLength": MAX_WORDS_CHARS}),
            "text_certainty": choice(Certainty),
            "evidence_refs": _REFS,
            "operator_ref": or_null(_REF),
            **_LISTENER,
            **_TIME,
        }
    ),
    "BoardAnswer": fields({"approvals": {**APPROVALS, "minProperties": 1}}, "approvals"),
    "UtilityPayload": object_of(
        {
            "contract_version": {"const": PAYLOAD_VERSION},
            "mission_id": TEXT,
            "event_id": TEXT,
            "event_type": member(MissionEventType),
            "classification": member(Classification),
            "certainty_class": member(Certainty),
            "evidence_refs": list_of(TEXT),
            "text_payload": object_of(dict.fromkeys(_LINES, TEXT)),
            "voice_payload": or_null(
                object_of({"mode": member(SpeechMode), "text": TEXT, "certainty_class": member(Certainty)})
            ),
            "suppression": ref("Suppression"),
        }
    ),
    "Suppression": object_of(
        {"suppressed": FLAG, "reason": choice(SuppressionReason), "cooldown_ms": _NATURAL, "dedupe_key": TEXT}
    ),
    "Decided": object_of(_DECIDED),
    "NotSpoken": object_of({**_DECIDED, "error": _REFUSAL}),
    "BoardEvent": object_of(
        {
            "seq": _NATURAL,
            "event_id": TEXT,
            "ts_ms": _NATURAL,
            "trigger_event_id": {"type": ["string", "null"]},
            "ack": or_null(object_of(_ACKNOWLEDGED)),
            "audio_url": _AUDIO_URL,
            "payload": ref("UtilityPayload"),
        }
    ),
    "UnknownEvent": _unknown("unknown_event"),
    "UnknownRecording": _unknown("unknown_recording"),
}

# -- answers and parameters

_NOT_SPOKEN_OR_ERROR: Json = {"anyOf": [ref("NotSpoken"), ref("Error")]}

DECIDED = {
    200: answer("What was decided.", ref("Decided")),
    429: answer(
        "A budget is spent, and `error.scope` says whose; or too many requests: `rate_limited`.", _NOT_SPOKEN_OR_ERROR
    ),
    502: answer("The voice failed.", ref("NotSpoken")),
    503: answer(
        "The voice has failed too often, and is left alone for a while; or too many connections: `busy`.",
        _NOT_SPOKEN_OR_ERROR,
    ),
}
HEARD = {
    200: answer("The recording.", {"type": "string", "format": "binary"}, "audio/wav"),
    404: answer("You have no such recording, or it has expired: `unknown_recording`.", ref("UnknownRecording")),
}
BOARD = {
    200: answer_in_forms(
        "The events, the oldest first.",
        {
            "application/json": object_of({"mission_id": TEXT, "events": list_of(ref("BoardEvent"))}),
            "text/event-stream": {"description": "Each `data` is a BoardEvent, each `id` says where it stands."},
        },
    )
}
ADDED = {201: answer("It is there.", object_of({"event": ref("BoardEvent"), **_DECIDED}))}
ANSWERED = {202: answer("A turn was begun that answers.", object_of({"mission_id": TEXT, "turn_id": TEXT}))}
CLOSED = {
    200: answer(
        "It is closed, and this was decided about its debrief.",
        object_of({"mission_id": TEXT, "event_id": TEXT, **_ACKNOWLEDGED, **_DECIDED}),
    ),
    404: answer("The board has no such event: `unknown_event`.", ref("UnknownEvent")),
}
READING = (
    query("after", {"type": "integer", "minimum": 0, "maximum": 10**15 - 1}, "Only events after this place."),
    query("limit", {"type": "integer", "minimum": 1, "maximum": MAX_EVENTS}, "So many of the newest; of a list."),
    query("context_tier", {"type": "integer", "enum": [0, 1]}, "Who listens from now on to a session's callouts."),
    query("session_state", member(SessionState), "The same."),
    query("voice_mode", member(VoiceMode), "The same."),
    query("tenant_id", NAMES, "From whose budget they are spoken."),
    last_event_id(
        "The `id` of the last event that you have, for a stream: go on after it.",
        {"type": "string", "pattern": "^[0-9]{1,9}[.][0-9]{1,15}$"},
    ),
)
