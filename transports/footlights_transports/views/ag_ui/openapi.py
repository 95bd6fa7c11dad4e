"""OpenAPI schemas of AG-UI runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights_transports.http.openapi import FLAG, TEXT, answer, last_event_id, list_of, object_of, ref

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights_transports.http.openapi import Json

_RUN: Json = {"type": "string", "minLength": 1, "maxLength": 128}
_ANY: Json = {}
_MESSAGE: Json = {
    "type": "object",
    "required": ["role"],
    "properties": {"role": TEXT, "content": {"type": ["string", "array", "null"]}},
}
_ANSWER: Json = {
    "type": "object",
    "required": ["interruptId"],
    "properties": {"interruptId": TEXT, "status": {"enum": ["resolved", "cancelled"]}, "payload": _ANY},
}
_CODES: Json = {"enum": ["unknown_agent", "unknown_run", "unknown_turn", "frontend_tools", "invalid_command"]}

AG_UI_SCHEMAS: Mapping[str, Json] = {
    "RunAgentInput": {
        "type": "object",
        "description": "AG-UI's own. Fields that are not listed are ignored.",
        "required": ["threadId", "runId", "messages"],
        "properties": {
            "threadId": {"type": "string", "minLength": 1, "description": "Names the session."},
            "runId": {**_RUN, "description": "The request id of the turn: the same again gives the same turn."},
            "messages": {**list_of(_MESSAGE), "description": "The last one of the role user is what is said."},
            "tools": {"type": ["array", "null"], "maxItems": 0, "description": "The tools of a page cannot be used."},
            "resume": {**list_of(_ANSWER), "description": "Answers to what waits for an approval."},
        },
    },
    "AgUiRefusal": object_of({"error": object_of({"code": _CODES, "message": TEXT})}),
}

LAST_ID = last_event_id("The id of the last event of the run that you have, also from before a restart.", TEXT)
RUN = {
    200: answer("The events of the run, each `data` an event of AG-UI 1.0.", _ANY, "text/event-stream"),
    404: answer("There is no such agent, or no such turn: `unknown_agent`, `unknown_turn`.", ref("AgUiRefusal")),
    422: answer("It makes no sense, or brings tools: `invalid_command`, `frontend_tools`.", ref("AgUiRefusal")),
}
CANCELED = {
    200: answer("Whether this call canceled it.", object_of({"canceled": FLAG})),
    404: answer("There is no such run, or it is forgotten: `unknown_run`.", ref("AgUiRefusal")),
}
