"""The HTTP routes as an OpenAPI 3.1 document, for people and for programs that write clients."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from footlights_transports.http.openapi_words import (
    TEXT,
    content,
    in_path,
    json_of,
    nothing,
    object_of,
    ref,
    refusals,
    schemas,
)
from footlights_transports.views.dexi.openapi import dexi_paths, dexi_schemas
from footlights_transports.views.mission.openapi import mission_paths, mission_schemas

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights.events import JsonValue
    from footlights_transports.http.openapi_words import Json

_NOT_READY: Json = {"anyOf": [ref("NotReady"), ref("Error")]}
_EVERYWHERE = (400, 403, 408, 413, 429, 500, 503, 505)


def openapi_document(wants_tokens: bool) -> Json:
    """The document; with tokens, most routes ask for one."""
    components: Json = {"schemas": {**schemas(), **dexi_schemas(), **mission_schemas()}, "responses": refusals()}
    if wants_tokens:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Footlights",
            "version": version("footlights"),
            "description": "Streamed turns in front, audited commits behind.",
        },
        "paths": _Routes(wants_tokens).paths(),
        "components": components,
    }


class _Routes:
    def __init__(self, wants_tokens: bool) -> None:
        self._wants_tokens = wants_tokens

    def paths(self) -> Json:
        session, turn = [in_path("session_id")], [in_path("session_id"), in_path("turn_id")]
        return {
            "/v1/sessions": {
                "post": self._operation(
                    "startSession",
                    "Start a session.",
                    {"201": json_of("The session.", object_of({"session_id": TEXT}))},
                    (409, 415),
                    body=ref("StartSession"),
                    body_required=False,
                )
            },
            "/v1/sessions/{session_id}": {
                "parameters": list(session),
                "delete": self._operation(
                    "closeSession",
                    "Interrupt what runs, wait until every turn is settled, and close the session.",
                    {"204": nothing("It is closed.")},
                    (404,),
                ),
            },
            "/v1/sessions/{session_id}/turns": {
                "parameters": list(session),
                "post": self._operation(
                    "beginTurn",
                    "Say something. What follows comes as events.",
                    {"202": json_of("The turn is accepted.", object_of({"turn_id": TEXT}))},
                    (404, 409, 415),
                    body=ref("BeginTurn"),
                ),
            },
            "/v1/sessions/{session_id}/events": {
                "parameters": list(session),
                "get": self._operation(
                    "followSession",
                    "The events of the session as Server-Sent Events. Each `data` is an event, each `id` a cursor. "
                    "Without Last-Event-ID: unfinished turns from their beginning, then live.",
                    {"200": content("The events.", "text/event-stream", TEXT)},
                    (404, 409),
                    parameters=[
                        {
                            "name": "Last-Event-ID",
                            "in": "header",
                            "description": "The `id` of the last event that you have: go on after it.",
                            "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]*$", "maxLength": 8192},
                        },
                        {
                            "name": "begun",
                            "in": "query",
                            "description": "Turns that you began and of which nothing has come yet. What became of "
                            "them is told, also if the server was started again before they were committed.",
                            "schema": {"type": "array", "items": {"type": "string"}},
                        },
                        {
                            "name": "remote_models",
                            "in": "query",
                            "description": "Whether a session that a restart of the server ended may, once you are "
                            "back, let its text go to models elsewhere. What it had agreed to is not kept.",
                            "schema": {"type": "boolean", "default": False},
                        },
                    ],
                ),
            },
            "/v1/sessions/{session_id}/ledger": {
                "parameters": list(session),
                "get": self._operation(
                    "listCommits",
                    "The newest commits of the session, in their order.",
                    {
                        "200": json_of(
                            "Commits.", object_of({"commits": {"type": "array", "items": ref("CommitRecord")}})
                        )
                    },
                    (404,),
                    parameters=[
                        {
                            "name": "limit",
                            "in": "query",
                            "schema": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
                        }
                    ],
                ),
            },
            "/v1/sessions/{session_id}/chat": {
                "parameters": list(session),
                "get": self._operation(
                    "readChat",
                    "What people may be shown of the session, in messages. The feed begins when it is first read, "
                    "keeps the newest messages, and may lose any of them: nothing depends on them.",
                    {
                        "200": json_of(
                            "Messages.", object_of({"messages": {"type": "array", "items": ref("ChatMessage")}})
                        )
                    },
                    (404,),
                ),
                "delete": self._operation(
                    "dropChat", "Forget the messages.", {"204": nothing("They are forgotten.")}, (404,)
                ),
            },
            "/v1/sessions/{session_id}/cancel": {
                "parameters": list(session),
                "post": self._cancel("cancelTurns", "Interrupt every open turn."),
            },
            "/v1/sessions/{session_id}/turns/{turn_id}/cancel": {
                "parameters": list(turn),
                "post": self._cancel("cancelTurn", "Interrupt the turn, unless it is ending or has ended."),
            },
            "/v1/sessions/{session_id}/turns/{turn_id}/finalize": {
                "parameters": list(turn),
                "post": self._operation(
                    "finalizeTurn",
                    "Wait for the turn's commit. Turns commit by themselves.",
                    {"200": json_of("The commit.", ref("Commit"))},
                    (404, 409),
                ),
            },
            "/v1/sessions/{session_id}/turns/{turn_id}/heard": {
                "parameters": list(turn),
                "post": self._operation(
                    "heard",
                    "Say that the player took the turn in up to this event.",
                    {"204": nothing("Noted.")},
                    (404, 409, 415),
                    body=ref("Heard"),
                ),
            },
            "/v1/world": {
                "get": self._operation(
                    "world", "What is true.", {"200": json_of("The world.", object_of({"world": {}}))}, ()
                )
            },
            "/v1/openapi.json": {
                "get": self._operation(
                    "openapi", "This document.", {"200": json_of("It.", {"type": "object"})}, (), public=True
                )
            },
            "/footlights.js": {
                "get": self._operation(
                    "javascript",
                    "The JavaScript client, an ES module.",
                    {"200": content("Its source.", "text/javascript", TEXT)},
                    (404,),
                    public=True,
                )
            },
            **{
                path: {
                    "get": self._operation(
                        name,
                        "Whether the server answers at all.",
                        {"200": json_of("It does.", object_of({"status": {"const": "ok"}}))},
                        (),
                        public=True,
                    )
                }
                for path, name in (("/livez", "live"), ("/healthz", "health"))
            },
            "/readyz": {
                "get": self._operation(
                    "ready",
                    "Whether new work should be sent to this server.",
                    {
                        "200": json_of("It should.", object_of({"status": {"const": "ok"}})),
                        "503": json_of("It should not: it is going away, or its ledger cannot write.", _NOT_READY),
                    },
                    (),
                    public=True,
                )
            },
            "/metrics": {
                "get": self._operation(
                    "metrics", "Measurements.", {"200": content("For Prometheus.", "text/plain", TEXT)}, ()
                )
            },
            **dexi_paths(self._operation),
            **mission_paths(self._operation),
        }

    def _cancel(self, name: str, summary: str) -> Json:
        canceled: Json = {"type": "array", "items": TEXT}
        answer = json_of("The turns that this call interrupted.", object_of({"canceled": canceled}))
        return self._operation(name, summary, {"200": answer}, (404, 409))

    def _operation(
        self,
        name: str,
        summary: str,
        answers: Json,
        refused_with: Sequence[int],
        *,
        body: Json | None = None,
        body_required: bool = True,
        parameters: Sequence[JsonValue] = (),
        public: bool = False,
    ) -> Json:
        guarded = self._wants_tokens and not public
        statuses = sorted({*_EVERYWHERE, *refused_with, *([401] if guarded else [])})
        refused: Json = {str(status): {"$ref": f"#/components/responses/{status}"} for status in statuses}
        operation: Json = {"operationId": name, "summary": summary, "responses": {**refused, **answers}}
        if parameters:
            operation["parameters"] = list(parameters)
        if body is not None:
            operation["requestBody"] = {"required": body_required, "content": {"application/json": {"schema": body}}}
        if guarded:
            operation["security"] = [{"token": []}]
        return operation
