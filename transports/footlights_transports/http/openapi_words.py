"""What the OpenAPI document is made of: the shapes that are read and written, the refusals, and the words for both."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, get_args

from footlights.events import CommitOutcome
from footlights.models.budget import BudgetTier
from footlights.params import MAX_ANSWERS, BusyRule, Mode
from footlights.wire import MAX_INTEGER
from footlights_transports.errors import WIRE_CODES
from footlights_transports.server.readiness import Reason

if TYPE_CHECKING:
    from enum import StrEnum

    from footlights.events import JsonValue

Json: TypeAlias = "dict[str, JsonValue]"

TEXT: Json = {"type": "string"}

_MEANINGS = {
    400: "The request makes no sense: `invalid_command`.",
    401: "That needs a token: `unauthorized`.",
    403: "Pages of this origin, or requests for this host, are not answered: `unauthorized`.",
    404: "There is no such session, or it has no such turn: `unknown_session`, `unknown_turn`.",
    408: "The body did not come in time: `invalid_command`.",
    409: "Not now: `busy` (a limit is reached), or `session_closed`. Nothing was done.",
    413: "The body, or what was said, is longer than it may be: `too_large`.",
    415: "The body is not JSON: `invalid_command`.",
    422: "The body is JSON, and what it asks for makes no sense: `invalid_command`.",
    429: "Too many requests on this connection: `rate_limited`.",
    500: "Something failed here: `internal`.",
    503: "Too many connections: `busy`.",
    505: "This server speaks HTTP/1.1: `unsupported_version`.",
}


def schemas() -> Json:
    return {
        "Error": object_of(
            {"error": object_of({"code": {"type": "string", "enum": [*sorted(WIRE_CODES)]}, "message": TEXT})}
        ),
        "StartSession": fields({"params": _or_null(ref("SessionParams"))}),
        "SessionParams": fields(
            {
                "session_id": {"type": ["string", "null"], "pattern": "^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$"},
                "remote_models": {"type": ["boolean", "null"]},
            }
        ),
        "BeginTurn": fields(
            {"input": {"type": "string", "pattern": r"\S"}, "params": _or_null(ref("TurnParams"))}, "input"
        ),
        "TurnParams": fields(
            {
                "busy": choice(BusyRule),
                "mode": choice(Mode),
                "tier": choice(BudgetTier),
                "model": _name_or_null("A model of the cast."),
                "persona": _name_or_null("A persona of the cast."),
                "workload": _name_or_null("A registered workload."),
                "temperature": {"type": ["number", "null"], "minimum": 0, "maximum": 2},
                "approvals": {
                    "type": ["object", "null"],
                    "description": "Answers to what waits for an approval: by its id, whether to do it.",
                    "propertyNames": {"pattern": r"^a-[0-9]{6,15}$"},
                    "additionalProperties": {"type": "boolean"},
                    "maxProperties": MAX_ANSWERS,
                },
            }
        ),
        "Heard": fields({"seq": {"type": "integer", "minimum": 0, "maximum": MAX_INTEGER}}, "seq"),
        "Commit": object_of(
            {"commit_id": {"type": ["string", "null"]}, "commit_digest": TEXT, "commit_outcome": _outcome()}
        ),
        "ChatMessage": object_of(
            {
                "timestamp": {"type": "string", "format": "date-time"},
                "role": {"type": "string", "enum": ["system", "agent", "user"]},
                "content": TEXT,
            }
        ),
        "NotReady": object_of(
            {
                "status": {"const": "not_ready"},
                "reasons": {"type": "array", "items": {"enum": list(get_args(Reason))}, "minItems": 1},
            }
        ),
        "CommitRecord": {
            **object_of({"session_id": TEXT, "turn_id": TEXT, "outcome": _outcome(), "commit_digest": TEXT}),
            "description": "All that was decided about one turn, and the digest that proves it.",
        },
    }


def refusals() -> Json:
    return {str(status): json_of(meaning, ref("Error")) for status, meaning in _MEANINGS.items()}


# -- words of the language


def ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def object_of(properties: Json) -> Json:
    """What we write: all of these are there."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def fields(properties: Json, *required: str) -> Json:
    """What we read: these, and no others."""
    schema: Json = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def _or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


def _name_or_null(description: str) -> Json:
    return {"type": ["string", "null"], "minLength": 1, "description": description}


def choice(kind: type[StrEnum]) -> Json:
    return {"enum": [*(member.value for member in kind), None]}


def _outcome() -> Json:
    return {"type": "string", "enum": [outcome.value for outcome in CommitOutcome]}


def in_path(name: str) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def content(description: str, media_type: str, schema: Json) -> Json:
    return {"description": description, "content": {media_type: {"schema": schema}}}


def json_of(description: str, schema: Json) -> Json:
    return content(description, "application/json", schema)


def nothing(description: str) -> Json:
    return {"description": description}
