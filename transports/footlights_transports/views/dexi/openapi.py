"""OpenAPI schemas of narrated runs, and the longer descriptions of their operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from footlights.modes import ExecutionPolicy
from footlights.params import Mode
from footlights_transports.http.openapi import (
    APPROVALS,
    FLAG,
    ID_OR_NULL,
    TEXT,
    answer,
    answer_in_forms,
    choice,
    fields,
    last_event_id,
    list_of,
    object_of,
    or_null,
    ref,
)
from footlights_transports.views.dexi.pure.schema import dexi_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights_transports.http.openapi import Json

_EVENTS: Json = {"description": "Each `event` is the type of an event, each `data` a DexiEvent, each `id` its place."}
_EVENT = dexi_schema()
_UNKNOWN = object_of({"code": {"enum": ["unknown_agent", "unknown_run"]}, "message": TEXT})
_ALLOW: Json = {
    "oneOf": [object_of({"execution_policy": {"const": "auto"}}), {"type": "null"}],
    "description": "What to send with the request so that it is executed, if it was not.",
}
_POLICY = "`deny`, `auto` or `force`: whether the request may be executed."

DEXI_SCHEMAS: Mapping[str, Json] = {
    "RunRequest": fields(
        {
            "message": {"type": "string", "pattern": r"\S"},
            "execution_policy": {**choice(ExecutionPolicy), "description": _POLICY},
            "stream": {"type": ["boolean", "null"], "default": True},
            "session_id": ID_OR_NULL,
            "approvals": or_null(APPROVALS),
        },
        "message",
    ),
    "Run": object_of(
        {
            "mode": {"enum": [each.value for each in Mode]},
            "run_id": TEXT,
            "message": TEXT,
            "allow": _ALLOW,
            "events": list_of(ref("DexiEvent")),
        }
    ),
    "RunDescription": object_of(
        {
            "run_id": TEXT,
            "session_id": TEXT,
            "turn_id": TEXT,
            "is_over": FLAG,
            "allow": _ALLOW,
            "decision": {"type": "object", "description": "Ids of rules, and values of closed sets."},
        }
    ),
    "DexiEvent": {
        "title": _EVENT["title"],
        "description": _EVENT["description"],
        "oneOf": list(cast("Json", _EVENT["$defs"]).values()),
    },
    "Unknown": object_of({"error": _UNKNOWN}),
}

NO_RUN = {404: answer("There is no such run, or it is forgotten: `unknown_run`.", ref("Unknown"))}
NO_AGENT = {404: answer("There is no such agent: `unknown_agent`.", ref("Unknown"))}
BEGUN = {
    200: answer_in_forms(
        "The run: its events as they come, or all of it if `stream` is false.",
        {"text/event-stream": _EVENTS, "application/json": ref("Run")},
    )
}
FOLLOWED = {
    200: answer("The events.", _EVENTS, "text/event-stream"),
    204: answer("You have them all, and there will be no more."),
    **NO_RUN,
}
CANCELED = {200: answer("Whether this call did.", object_of({"canceled": FLAG})), **NO_RUN}
LAST_ID = last_event_id(
    "The `id` of the last event that you have: go on after it.", {"type": "string", "pattern": "^[0-9]{1,9}$"}
)
