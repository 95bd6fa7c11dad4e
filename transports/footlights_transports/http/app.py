"""ASGI application of the HTTP server: the routes of every view, the OpenAPI document, and the error responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from footlights.errors import FootlightsError
from footlights_transports.http.errors import Refused, error_response, http_refusal, json_response, status_of
from footlights_transports.http.openapi import openapi_document
from footlights_transports.http.operations import operations_of, routes_of
from footlights_transports.http.request_world import world_of
from footlights_transports.http.server_routes import SERVER_SCHEMAS, ServerRoutes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from starlette.requests import Request
    from starlette.responses import Response

    from footlights_transports.http.openapi import Json
    from footlights_transports.http.operations import Operation
    from footlights_transports.server.metrics import Metrics
    from footlights_transports.views.base.view import View
    from footlights_transports.worlds.world import Worlds


def document_of_routes(views: Iterable[View | type[View]], *, wants_tokens: bool) -> Json:
    """The OpenAPI document of the server and of these views."""
    views = list(views)
    schemas = {name: schema for each in views for name, schema in each.schemas.items()}
    return openapi_document(_operations(views), {**schemas, **SERVER_SCHEMAS}, wants_tokens=wants_tokens)


def public_paths(views: Iterable[View]) -> frozenset[str]:
    """Paths without authentication: their responses are the same for every client, and pages of any origin may read
    them.
    """
    return frozenset(each.path for each in _operations(views) if each.public)


def paths_without_world(views: Iterable[View]) -> frozenset[str]:
    """Paths for which no world is opened."""
    return frozenset(each.path for each in _operations(views) if each.public or not each.in_world)


def _operations(views: Iterable[View | type[View]]) -> list[Operation]:
    return operations_of(*(kind for each in views for kind in each.routes), ServerRoutes)


def http_app(worlds: Worlds, metrics: Metrics) -> Starlette:
    """The application, for all worlds of a server."""
    policy = worlds.admission.policy
    document = document_of_routes(worlds.views, wants_tokens=policy.wants_tokens)
    server = ServerRoutes(worlds, metrics, orjson.dumps(document))
    routes = [
        route
        for view in worlds.views
        for kind in view.routes
        for route in routes_of(kind, policy, _handler_in_world(kind))
    ]
    errors = _Errors(worlds)
    app = Starlette(
        routes=[*routes, *routes_of(ServerRoutes, policy, lambda _: server)],
        exception_handlers={
            **dict.fromkeys(errors.statuses, errors.of_view),
            FootlightsError: errors.of_command,
            Refused: errors.refused,
            HTTPException: errors.of_http,
            Exception: errors.failed,  # the supervision boundary of one request
        },
    )
    app.router.redirect_slashes = False
    return app


def _handler_in_world(kind: type) -> Callable[[Request], object]:
    """The handlers of this class in the world of a request.

    Public operations have no user for whom a world would be opened: a class of them alone needs no world.
    """
    if all(each.public for each in operations_of(kind)):
        handler = kind()
        return lambda _: handler

    def handler_of(request: Request) -> object:
        return world_of(request).handlers[kind]

    return handler_of


class _Errors:
    """Responses to requests that fail, each counted as an incident."""

    def __init__(self, worlds: Worlds) -> None:
        self._incidents = worlds.admission.incidents
        self.statuses = {kind: status for each in worlds.views for kind, status in each.errors.items()}

    async def of_view(self, _: Request, error: Exception) -> Response:
        told = cast("FootlightsError", error)
        status = status_of(told, self.statuses, 500)
        return self._counted(json_response({"error": {"code": told.code, "message": str(told)}}, status))

    async def of_command(self, _: Request, error: Exception) -> Response:
        return self._counted(error_response(cast("FootlightsError", error)))

    async def refused(self, _: Request, error: Exception) -> Response:
        refused = cast("Refused", error)
        return self._counted(error_response(refused.error, refused.status))

    async def of_http(self, _: Request, error: Exception) -> Response:
        refused = cast("HTTPException", error)
        return self._counted(http_refusal(refused.status_code, refused.headers))

    async def failed(self, _: Request, error: Exception) -> Response:
        self._incidents.failed("http_request", error)
        return error_response(FootlightsError())

    def _counted(self, refusal: Response) -> Response:
        self._incidents.refused(f"http_{refusal.status_code}")
        return refusal
