"""Routes of the server itself: the world, the OpenAPI document, probes and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from starlette.responses import Response

from footlights.errors import InvalidCommand
from footlights_transports.http.errors import error_response, json_response
from footlights_transports.http.openapi import TEXT, answer, list_of, object_of, or_null, ref
from footlights_transports.http.operations import Operation
from footlights_transports.http.request_world import WORLD, world_of
from footlights_transports.server.metrics import CONTENT_TYPE
from footlights_transports.server.readiness import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from footlights_transports.access.policy import User
    from footlights_transports.http.openapi import Json
    from footlights_transports.server.metrics import Metrics
    from footlights_transports.worlds.world import Worlds

SERVER_SCHEMAS: Mapping[str, Json] = {
    "NotReady": object_of(
        {
            "status": {"const": "not_ready"},
            "reasons": {**list_of({"enum": list(get_args(Reason))}), "minItems": 1},
            "rule": or_null({"type": "string"}),
        }
    )
}

_FRESH = {"cache-control": "no-store"}
_PART = answer("It.", object_of({"world": {}}))
_SAME: Json = {"description": "It has the digest that If-None-Match names."}
_OK = object_of({"status": {"const": "ok"}})
_ALIVE = {200: answer("It does.", _OK)}
_READY = {
    200: answer("It should.", _OK),
    503: answer(
        "It should not: it is going away, its ledger cannot write, or a rule does not return.",
        {"anyOf": [ref("NotReady"), ref("Error")]},
    ),
}


class ServerRoutes:
    """The routes. `document` is the OpenAPI document, as JSON."""

    def __init__(self, worlds: Worlds, metrics: Metrics, document: bytes) -> None:
        self._worlds = worlds
        self._metrics = metrics
        self._document = document

    @Operation("GET", "/v1/world", {200: _PART, 304: _SAME}, (413,))
    async def world(self, request: Request, user: User) -> Response:
        """What is true, as far as the user may see it."""
        return self._part(request, user, "")

    @Operation("GET", "/v1/world/{path}", {200: _PART, 304: _SAME}, (404, 413))
    async def world_part(self, request: Request, user: User) -> Response:
        """What is true of one part: the path is a JSON pointer. The ETag is its digest, if nothing in it is hidden."""
        try:
            return self._part(request, user, f"/{request.path_params['path']}")
        except InvalidCommand as error:
            return error_response(error, 404)

    def _part(self, request: Request, user: User, path: str) -> Response:
        part = world_of(request).access.stage.world_at(path, user)
        headers = _FRESH if part.digest is None else {"cache-control": "no-cache", "etag": f'"{part.digest}"'}
        if request.headers.get("if-none-match") == headers.get("etag", ""):
            return Response(status_code=304, headers=headers)
        return json_response({"world": part.value}, headers=headers)

    @Operation("GET", "/v1/openapi.json", {200: answer("It.", {"type": "object"})}, public=True)
    async def openapi(self, request: Request) -> Response:
        """This document."""
        return Response(self._document, media_type="application/json")

    @Operation("GET", "/livez", _ALIVE, public=True)
    async def live(self, request: Request) -> Response:
        """Whether the server answers at all."""
        return json_response({"status": "ok"}, headers=_FRESH)

    @Operation("GET", "/healthz", _ALIVE, public=True)
    async def health(self, request: Request) -> Response:
        """Whether the server answers at all."""
        return await self.live(request)

    @Operation("GET", "/readyz", _READY, public=True)
    async def ready(self, request: Request) -> Response:
        """Whether new work should be sent to this server, or to this world of it."""
        reasons, rule = await self._worlds.readiness(request.scope[WORLD])
        if reasons:
            return json_response({"status": "not_ready", "reasons": reasons, "rule": rule}, 503, _FRESH)
        return json_response({"status": "ok"}, headers=_FRESH)

    @Operation("GET", "/metrics", {200: answer("For Prometheus.", TEXT, "text/plain")}, in_world=False)
    async def metrics(self, request: Request, user: User) -> Response:
        """Measurements, of all worlds together."""
        return Response(await self._worlds.rendered(self._metrics), media_type=CONTENT_TYPE)
