"""The Dexi routes in the OpenAPI document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from footlights.modes import ExecutionPolicy
from footlights.params import Mode
from footlights_transports.http.openapi_words import (
    TEXT,
    choice,
    content,
    fields,
    in_path,
    json_of,
    nothing,
    object_of,
    ref,
)
from footlights_transports.views.dexi.pure.schema import dexi_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights.events import JsonValue
    from footlights_transports.http.openapi_words import Json

_POLICY = "`deny`, `auto` or `force`: whether the request may be executed."
_EVENTS: Json = {"description": "Each `event` is the type of an event, each `data` a DexiEvent, each `id` its place."}
_LAST_ID = "The `id` of the last event that you have: go on after it."


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
        parameters: Sequence[JsonValue] = (),
    ) -> Json: ...


def dexi_schemas() -> Json:
    event = {name: part for name, part in dexi_schema().items() if name in ("title", "description")}
    return {
        "RunRequest": fields(
            {
                "message": {"type": "string", "pattern": r"\S"},
                "execution_policy": {**choice(ExecutionPolicy), "description": _POLICY},
                "stream": {"type": ["boolean", "null"], "default": True},
                "session_id": {"type": ["string", "null"], "pattern": "^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$"},
            },
            "message",
        ),
        "Run": object_of(
            {
                "mode": {"enum": [each.value for each in Mode]},
                "run_id": TEXT,
                "message": TEXT,
                "events": {"type": "array", "items": ref("DexiEvent")},
            }
        ),
        "RunDescription": object_of(
            {
                "run_id": TEXT,
                "session_id": TEXT,
                "turn_id": TEXT,
                "is_over": {"type": "boolean"},
                "decision": {"type": "object", "description": "Ids of rules, and values of closed sets."},
            }
        ),
        "DexiEvent": {**event, "oneOf": _definitions()},
        "Unknown": object_of(
            {"error": object_of({"code": {"enum": ["unknown_agent", "unknown_run"]}, "message": TEXT})}
        ),
    }


def _definitions() -> list[JsonValue]:
    definitions = dexi_schema()["$defs"]
    assert isinstance(definitions, dict)
    return list(definitions.values())


def dexi_paths(operation: Operation) -> Json:
    run: list[JsonValue] = [in_path("run_id")]
    unknown = {"404": json_of("There is no such run, or it is forgotten: `unknown_run`.", ref("Unknown"))}
    nobody = {"404": json_of("There is no such agent: `unknown_agent`.", ref("Unknown"))}
    return {
        "/api/chat": {
            "post": operation(
                "chat",
                "Say something. Nothing is executed unless `execution_policy` allows it.",
                _begun(),
                (409, 415, 422),
                body=ref("RunRequest"),
            )
        },
        "/api/agents/{agent}/invoke": {
            "parameters": [in_path("agent")],
            "post": operation(
                "invoke",
                "Ask an agent. What calls for execution is executed unless `execution_policy` denies it.",
                {**_begun(), **nobody},
                (409, 415, 422),
                body=ref("RunRequest"),
            ),
        },
        "/api/runs/{run_id}": {
            "parameters": list(run),
            "get": operation(
                "describeRun",
                "Where a run is kept, and why it is in its mode.",
                {"200": json_of("The run.", ref("RunDescription")), **unknown},
                (),
            ),
        },
        "/api/runs/{run_id}/events": {
            "parameters": list(run),
            "get": operation(
                "followRun",
                "The events of a run as Server-Sent Events, from its beginning or after Last-Event-ID.",
                {
                    "200": content("The events.", "text/event-stream", _EVENTS),
                    "204": nothing("You have them all, and there will be no more."),
                    **unknown,
                },
                (),
                parameters=[
                    {
                        "name": "Last-Event-ID",
                        "in": "header",
                        "description": _LAST_ID,
                        "schema": {"type": "string", "pattern": "^[0-9]{1,9}$"},
                    }
                ],
            ),
        },
        "/api/runs/{run_id}/cancel": {
            "parameters": list(run),
            "post": operation(
                "cancelRun",
                "Interrupt a run, unless it is ending or has ended.",
                {
                    "200": json_of("Whether this call did.", object_of({"canceled": {"type": "boolean"}})),
                    **unknown,
                },
                (409,),
            ),
        },
    }


def _begun() -> Json:
    return {
        "200": {
            "description": "The run: its events as they come, or all of it if `stream` is false.",
            "content": {
                "text/event-stream": {"schema": _EVENTS},
                "application/json": {"schema": ref("Run")},
            },
        }
    }
