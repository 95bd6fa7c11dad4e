"""The mission routes in the OpenAPI document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from footlights.wire import MAX_INTEGER
from footlights_transports.http.openapi_words import TEXT, choice, fields, json_of, object_of, ref
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
from footlights_transports.views.mission.routes import REFUSALS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from enum import StrEnum

    from footlights.events import JsonValue
    from footlights_transports.http.openapi_words import Json

_ID_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$"
_NATURAL: Json = {"type": "integer", "minimum": 0, "maximum": MAX_INTEGER}
_FLAG: Json = {"type": ["boolean", "null"]}
_ID: Json = {"type": ["string", "null"], "pattern": _ID_PATTERN}
_LINE: Json = {"type": "string", "pattern": r"\S", "maxLength": MAX_TEXT_CHARS}
_REF: Json = {"type": "string", "pattern": r"\S", "maxLength": MAX_REF_CHARS}


class Operation(Protocol):
    """What makes one operation of the document."""

    def __call__(
        self,
        name: str,
        summary: str,
        answers: Json,
        refused_with: Sequence[int],
        *,
        body: Json | None = None,
        body_required: bool = True,
        parameters: Sequence[JsonValue] = (),
    ) -> Json: ...


def mission_schemas() -> Json:
    return {
        "Callout": fields(
            {"text": _LINE, **_event(), "mission_id": _ID, **_listener(), "dry_run": _FLAG, **_time()}, "text"
        ),
        "BoardCallout": {
            **fields(
                {"text": _or_null(_LINE), "text_payload": _or_null(_lines()), **_event(), **_listener(), **_time()}
            ),
            "description": "Either a `text` or a `text_payload`.",
        },
        "CloseEvent": fields(
            {
                "text": _or_null({**_LINE, "maxLength": MAX_WORDS_CHARS}),
                "text_certainty": choice(Certainty),
                "evidence_refs": _refs(),
                "operator_ref": _or_null(_REF),
                **_listener(),
                **_time(),
            }
        ),
        "UtilityPayload": object_of(
            {
                "contract_version": {"const": PAYLOAD_VERSION},
                "mission_id": TEXT,
                "event_id": TEXT,
                "event_type": _member(MissionEventType),
                "classification": _member(Classification),
                "certainty_class": _member(Certainty),
                "evidence_refs": {"type": "array", "items": TEXT},
                "text_payload": object_of(
                    {"what_changed": TEXT, "why_it_matters": TEXT, "next_action": TEXT, "evidence_anchor": TEXT}
                ),
                "voice_payload": _or_null(
                    object_of({"mode": _member(SpeechMode), "text": TEXT, "certainty_class": _member(Certainty)})
                ),
                "suppression": ref("Suppression"),
            }
        ),
        "Suppression": object_of(
            {
                "suppressed": {"type": "boolean"},
                "reason": choice(SuppressionReason),
                "cooldown_ms": _NATURAL,
                "dedupe_key": TEXT,
            }
        ),
        "Decided": object_of(_decided()),
        "NotSpoken": object_of({**_decided(), "error": _refusal()}),
        "BoardEvent": object_of(
            {
                "seq": _NATURAL,
                "event_id": TEXT,
                "ts_ms": _NATURAL,
                "trigger_event_id": {"type": ["string", "null"]},
                "ack": _or_null(object_of(_acknowledged())),
                "payload": ref("UtilityPayload"),
            }
        ),
        "UnknownEvent": object_of({"error": object_of({"code": {"const": "unknown_event"}, "message": TEXT})}),
    }


def mission_paths(operation: Operation) -> Json:
    mission, event = _in_path("mission_id"), _in_path("event_id")
    return {
        "/api/voice/speak": {
            "post": _also_not_spoken(
                operation(
                    "speak",
                    "Decide about a callout, and speak it if it may be. The answer holds its text in any case.",
                    {"200": json_of("What was decided.", ref("Decided"))},
                    (409, 415),
                    body=ref("Callout"),
                )
            )
        },
        "/api/mission-board/{mission_id}/events": {
            "parameters": [mission],
            "get": operation(
                "readBoard",
                "What was called out in a mission: a list, or Server-Sent Events if you accept them. If the mission is "
                "one of your open sessions, its turns are called out from now on.",
                {"200": _board()},
                (409,),
                parameters=_reading(),
            ),
            "post": operation(
                "addEvent",
                "Call an event out, and put it on the board.",
                {"201": json_of("It is there.", object_of({"event": ref("BoardEvent"), **_decided()}))},
                (409, 415),
                body=ref("BoardCallout"),
            ),
        },
        "/api/mission-board/{mission_id}/events/{event_id}/ack": {
            "parameters": [mission, event],
            "post": operation(
                "closeEvent",
                "Close an event: its debrief is called out and put on the board. Again changes nothing.",
                {
                    "200": json_of(
                        "It is closed, and this was decided about its debrief.",
                        object_of({"mission_id": TEXT, "event_id": TEXT, **_acknowledged(), **_decided()}),
                    ),
                    "404": json_of("The board has no such event: `unknown_event`.", ref("UnknownEvent")),
                },
                (409, 415),
                body=ref("CloseEvent"),
                body_required=False,
            ),
        },
    }


def _also_not_spoken(operation: Json) -> Json:
    """What else it is answered with when a budget or the voice stood in the way."""
    answers = operation["responses"]
    assert isinstance(answers, dict)
    either: Json = {"anyOf": [ref("NotSpoken"), ref("Error")]}
    too_much = "A budget is spent, and `error.scope` says whose; or too many requests: `rate_limited`."
    resting = "The voice has failed too often, and is left alone for a while; or too many connections: `busy`."
    added: Json = {
        "429": json_of(too_much, either),
        "502": json_of("The voice failed.", ref("NotSpoken")),
        "503": json_of(resting, either),
    }
    return {**operation, "responses": {**answers, **added}}


# -- what they are made of


def _event() -> Json:
    return {
        "mode": choice(SpeechMode),
        "event_type": choice(MissionEventType),
        "classification": choice(Classification),
        "event_id": _ID,
        "text_certainty": choice(Certainty),
        "voice_certainty": choice(Certainty),
        "repo_attributed": _FLAG,
        "system_state_claim": _FLAG,
        "evidence_refs": _refs(),
        "operator_ref": _or_null(_REF),
        "deterministic": _FLAG,
    }


def _refs() -> Json:
    return {"type": ["array", "null"], "items": _REF, "maxItems": MAX_REFS}


def _listener() -> Json:
    return {
        "context_tier": {"enum": [0, 1, None]},
        "session_state": choice(SessionState),
        "voice_mode": choice(VoiceMode),
        "tenant_id": _ID,
    }


def _time() -> Json:
    sentence = "When to decide, in milliseconds. Only a server that was started for replay heeds it."
    return {"policy_ts_ms": {**_or_null(_NATURAL), "description": sentence}}


def _lines() -> Json:
    return fields(
        {name: _or_null(_LINE) for name in ("what_changed", "why_it_matters", "next_action", "evidence_anchor")}
    )


def _decided() -> Json:
    return {
        "speak": {"type": "boolean"},
        "suppression": ref("Suppression"),
        "payload": ref("UtilityPayload"),
        "policy_ts_ms": {**_NATURAL, "description": "When it was decided."},
        "policy_seq": {**_NATURAL, "description": "Its place among all that was decided or ended here."},
        "voice_failed_ms": _or_null(_NATURAL),
        "voice_dropped_ms": _or_null(_NATURAL),
        "ended_seq": {**_or_null(_NATURAL), "description": "The place of that end, in the same order."},
    }


def _refusal() -> Json:
    code: Json = {"type": "string", "enum": [reason.value for reason in REFUSALS]}
    scope: Json = {**_member(LimitScope), "description": "Whose limit it is, with status 429."}
    return {**object_of({"code": code, "message": TEXT, "scope": scope}), "required": ["code", "message"]}


def _acknowledged() -> Json:
    return {
        "operator_ref": TEXT,
        "debrief_event_id": TEXT,
        "closed_ms": _NATURAL,
        "trigger_to_debrief_closed_ms": _NATURAL,
    }


def _board() -> Json:
    listed = object_of({"mission_id": TEXT, "events": {"type": "array", "items": ref("BoardEvent")}})
    streamed: Json = {"description": "Each `data` is a BoardEvent, each `id` says where it stands."}
    return {
        "description": "The events, the oldest first.",
        "content": {"application/json": {"schema": listed}, "text/event-stream": {"schema": streamed}},
    }


def _reading() -> list[JsonValue]:
    place: Json = {"type": "integer", "minimum": 0, "maximum": 10**15 - 1}
    return [
        _query("after", place, "Only events after this place."),
        _query("limit", {"type": "integer", "minimum": 1, "maximum": MAX_EVENTS}, "So many of the newest; of a list."),
        _query("context_tier", {"type": "integer", "enum": [0, 1]}, "Who listens from now on to a session's callouts."),
        _query("session_state", _member(SessionState), "The same."),
        _query("voice_mode", _member(VoiceMode), "The same."),
        _query("tenant_id", {"type": "string", "pattern": _ID_PATTERN}, "From whose budget they are spoken."),
        {
            "name": "Last-Event-ID",
            "in": "header",
            "description": "The `id` of the last event that you have, for a stream: go on after it.",
            "schema": {"type": "string", "pattern": "^[0-9]{1,9}[.][0-9]{1,15}$"},
        },
    ]


def _query(name: str, schema: Json, description: str) -> Json:
    return {"name": name, "in": "query", "description": description, "schema": schema}


def _in_path(name: str) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "pattern": _ID_PATTERN}}


def _member(kind: type[StrEnum]) -> Json:
    return {"type": "string", "enum": [member.value for member in kind]}


def _or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}
