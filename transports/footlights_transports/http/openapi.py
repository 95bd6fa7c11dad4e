"""OpenAPI 3.1 document of the HTTP routes, assembled from their operations, and the vocabulary for its schemas."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, TypeAlias

from footlights.params import MAX_ANSWERS
from footlights_transports.errors import WIRE_CODES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from enum import StrEnum

    from footlights.events import JsonValue
    from footlights_transports.http.operations import Operation

Json: TypeAlias = "dict[str, JsonValue]"

TEXT: Json = {"type": "string"}
FLAG: Json = {"type": "boolean"}
ID_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$"
APPROVALS: Json = {
    "type": "object",
    "description": "Answers to what waits for an approval: by its id, whether to do it.",
    "propertyNames": {"pattern": r"^a-[0-9]{6,15}$"},
    "additionalProperties": {"type": "boolean"},
    "maxProperties": MAX_ANSWERS,
}
ID_OR_NULL: Json = {"type": ["string", "null"], "pattern": ID_PATTERN}

_EVERYWHERE = (400, 403, 408, 413, 429, 500, 503, 505)
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


def openapi_document(operations: Iterable[Operation], schemas: Mapping[str, Json], *, wants_tokens: bool) -> Json:
    """The document; if the server wants tokens, operations that are not public ask for one."""
    paths: dict[str, Json] = {}
    for each in operations:
        paths.setdefault(each.path, _path_item(each))[each.method.lower()] = _operation(
            each, asks_for_token=wants_tokens and not each.public
        )
    error = object_of({"code": {"type": "string", "enum": [*sorted(WIRE_CODES)]}, "message": TEXT})
    refusals: Json = {str(status): answer(meaning, ref("Error")) for status, meaning in _MEANINGS.items()}
    components: Json = {"schemas": {"Error": object_of({"error": error}), **schemas}, "responses": refusals}
    if wants_tokens:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Footlights",
            "version": version("footlights"),
            "description": "Streamed turns in front, audited commits behind.",
        },
        "paths": {**paths},
        "components": components,
    }


def _path_item(operation: Operation) -> Json:
    parameters: list[JsonValue] = [
        {"name": name, "in": "path", "required": True, "schema": operation.names} for name in operation.names_in_path
    ]
    return {"parameters": parameters} if parameters else {}


def _operation(operation: Operation, *, asks_for_token: bool) -> Json:
    statuses = sorted({*_EVERYWHERE, *operation.refused, *([401] if asks_for_token else [])})
    responses: Json = {str(status): {"$ref": f"#/components/responses/{status}"} for status in statuses}
    responses.update({str(status): each for status, each in operation.answers.items()})
    document: Json = {"operationId": operation.operation_id, "summary": operation.summary, "responses": responses}
    if operation.parameters:
        document["parameters"] = [*operation.parameters]
    if operation.body is not None:
        content: Json = {"application/json": {"schema": ref(operation.body)}}
        document["requestBody"] = {"required": operation.body_required, "content": content}
    if asks_for_token:
        document["security"] = [{"token": []}]
    return document


# -- answers and parameters


def answer(description: str, schema: Json | None = None, media_type: str = "application/json") -> Json:
    """A response; without a schema, one that has no body."""
    return {"description": description} if schema is None else answer_in_forms(description, {media_type: schema})


def answer_in_forms(description: str, schemas: Mapping[str, Json]) -> Json:
    """A response in one of these media types."""
    content: Json = {media_type: {"schema": schema} for media_type, schema in schemas.items()}
    return {"description": description, "content": content}


def query(name: str, schema: Json, description: str | None = None) -> Json:
    described: Json = {} if description is None else {"description": description}
    return {"name": name, "in": "query", **described, "schema": schema}


def last_event_id(description: str, schema: Json) -> Json:
    return {"name": "Last-Event-ID", "in": "header", "description": description, "schema": schema}


# -- schemas


def ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def object_of(properties: Json) -> Json:
    """An object that the server writes: every property is present."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def fields(properties: Json, *required: str) -> Json:
    """An object that the server reads: no other property is allowed."""
    schema: Json = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


def list_of(items: Json) -> Json:
    return {"type": "array", "items": items}


def or_null(schema: Json) -> Json:
    return {"anyOf": [schema, {"type": "null"}]}


def member(kind: type[StrEnum]) -> Json:
    return {"type": "string", "enum": [each.value for each in kind]}


def choice(kind: type[StrEnum]) -> Json:
    """A member, or null for the default."""
    return {"enum": [*(each.value for each in kind), None]}
