"""ASGI application of the HTTP server: the routes of every view, the OpenAPI document, and the error responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from footlights.errors import FootlightsError
from footlights_transports.http.errors import Refused, error_response, http_refusal
from footlights_transports.http.openapi import openapi_document
from footlights_transports.http.operations import operations_of, routes_of
from footlights_transports.http.server_routes import SERVER_SCHEMAS, ServerRoutes
from footlights_transports.views.chat_feed.routes import CHAT_SCHEMAS, ChatRoutes
from footlights_transports.views.dexi.openapi import DEXI_SCHEMAS
from footlights_transports.views.dexi.routes import DexiRoutes, tell_dexi_error
from footlights_transports.views.dexi.runs import DexiError
from footlights_transports.views.mission.openapi import MISSION_SCHEMAS
from footlights_transports.views.mission.routes import MissionRoutes
from footlights_transports.views.native.openapi import LEDGER_SCHEMAS, SESSION_SCHEMAS
from footlights_transports.views.native.routes import SessionRoutes, TurnRoutes

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.http.openapi import Json
    from footlights_transports.http.sse import OpenStreams
    from footlights_transports.server.metrics import Metrics
    from footlights_transports.server.readiness import Readiness
    from footlights_transports.views.chat_feed.feeds import ChatFeeds
    from footlights_transports.views.dexi.runs import Runs
    from footlights_transports.views.mission.missions import Missions

PUBLIC = frozenset(each.path for each in operations_of(ServerRoutes) if each.public)
"""Paths without authentication. Their responses are the same for every client, so pages of any origin may read them."""


def document_of_routes(*, wants_tokens: bool) -> Json:
    """The OpenAPI document of all routes."""
    operations = operations_of(SessionRoutes, ChatRoutes, TurnRoutes, ServerRoutes, DexiRoutes, MissionRoutes)
    schemas = {
        **SESSION_SCHEMAS,
        **CHAT_SCHEMAS,
        **SERVER_SCHEMAS,
        **LEDGER_SCHEMAS,
        **DEXI_SCHEMAS,
        **MISSION_SCHEMAS,
    }
    return openapi_document(operations, schemas, wants_tokens=wants_tokens)


def http_app(
    access: SessionAccess,
    streams: OpenStreams,
    metrics: Metrics,
    readiness: Readiness,
    runs: Runs,
    feeds: ChatFeeds,
    missions: Missions,
) -> Starlette:
    """The application, for one stage."""
    document = orjson.dumps(document_of_routes(wants_tokens=access.policy.wants_tokens))
    handlers = (
        SessionRoutes(access, streams),
        ChatRoutes(access, feeds),
        TurnRoutes(access),
        ServerRoutes(access, metrics, readiness, document),
        DexiRoutes(access, runs),
        MissionRoutes(access, missions),
    )
    errors = _Errors(access)
    app = Starlette(
        routes=[route for each in handlers for route in routes_of(each, access)],
        exception_handlers={
            DexiError: tell_dexi_error,
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

    def __init__(self, access: SessionAccess) -> None:
        self._incidents = access.incidents

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
