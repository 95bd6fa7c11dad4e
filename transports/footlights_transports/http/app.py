"""ASGI application of the HTTP server: the routes of every view, the OpenAPI document, and the error responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from footlights.errors import FootlightsError, RegistrationError
from footlights_transports.http.errors import Refused, error_response, http_refusal, json_response, status_of
from footlights_transports.http.openapi import openapi_document
from footlights_transports.http.operations import operations_of, routes_of
from footlights_transports.http.server_routes import SERVER_SCHEMAS, ServerRoutes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.http.openapi import Json
    from footlights_transports.http.operations import Operation
    from footlights_transports.server.metrics import Metrics
    from footlights_transports.server.readiness import Readiness
    from footlights_transports.views.base.view import Mount, View


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


def _operations(views: Iterable[View | type[View]]) -> list[Operation]:
    return operations_of(*(kind for each in views for kind in each.routes), ServerRoutes)


def http_app(access: SessionAccess, mounts: Sequence[Mount], metrics: Metrics, readiness: Readiness) -> Starlette:
    """The application, for one stage."""
    document = document_of_routes((each.view for each in mounts), wants_tokens=access.policy.wants_tokens)
    for each in mounts:
        if {type(handler) for handler in each.handlers} != set(each.view.routes):
            raise RegistrationError(f"The handlers of {type(each.view).__name__} are not of the classes in its routes.")
    handlers = [handler for each in mounts for handler in each.handlers]
    handlers.append(ServerRoutes(access, metrics, readiness, orjson.dumps(document)))
    errors = _Errors(access, mounts)
    app = Starlette(
        routes=[route for each in handlers for route in routes_of(each, access)],
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


class _Errors:
    """Responses to requests that fail, each counted as an incident."""

    def __init__(self, access: SessionAccess, mounts: Iterable[Mount]) -> None:
        self._incidents = access.incidents
        self.statuses = {kind: status for each in mounts for kind, status in each.view.errors.items()}

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
