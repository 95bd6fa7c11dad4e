"""The routes of the HTTP server: the native protocol as requests, and what operators want to know.

What is asked for in the body of a request is what the same command of the native protocol takes, without what the
address says already. Every answer is JSON, except events (Server-Sent Events), metrics and the client's source.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import orjson
import trio
from attrs import evolve
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from footlights.authority.record import record_to_json
from footlights.errors import FootlightsError, InvalidCommand
from footlights_transports.http.authentication import authenticate
from footlights_transports.http.errors import Refused, error_response, http_refusal, json_response
from footlights_transports.http.guard import body_of
from footlights_transports.http.openapi import openapi_document
from footlights_transports.json_text import read_object
from footlights_transports.server.measured_ledger import history_of
from footlights_transports.server.metrics import CONTENT_TYPE
from footlights_transports.views.dexi.routes import DexiRoutes, tell_dexi_error
from footlights_transports.views.dexi.runs import DexiError
from footlights_transports.views.native.events import EventStream, while_connected
from footlights_transports.views.native.protocol import (
    BeginTurn,
    Cancel,
    Close,
    Finalize,
    HeardUpTo,
    Start,
    commit_json,
    read_fields,
)
from footlights_transports.views.native.sse_cursor import Cursor, read_cursor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.server.metrics import Metrics
    from footlights_transports.server.readiness import Readiness
    from footlights_transports.views.dexi.runs import Runs
    from footlights_transports.views.native.events import OpenStreams

MAX_COMMITS = 200
"""Of one answer about the ledger."""

_C = TypeVar("_C")
_COMMITS = 50
_FRESH = {"cache-control": "no-store"}
_JAVASCRIPT = Path(__file__).parents[2] / "static" / "footlights.js"


class HttpRoutes:
    """Every route, for one access."""

    def __init__(
        self,
        access: SessionAccess,
        metrics: Metrics,
        streams: OpenStreams,
        runs: Runs,
        readiness: Readiness,
        others: Sequence[Route] = (),
    ) -> None:
        self._access = access
        self._metrics = metrics
        self._streams = streams
        self._dexi = DexiRoutes(access, runs)
        self._others = others
        self._readiness = readiness
        self._openapi = orjson.dumps(openapi_document(access.policy.wants_tokens))

    def app(self) -> Starlette:
        app = Starlette(
            routes=[
                Route("/v1/sessions", self.start, methods=["POST"]),
                Route("/v1/sessions/{session_id}", self.close, methods=["DELETE"]),
                Route("/v1/sessions/{session_id}/events", self.events, methods=["GET"]),
                Route("/v1/sessions/{session_id}/ledger", self.ledger, methods=["GET"]),
                Route("/v1/sessions/{session_id}/cancel", self.cancel, methods=["POST"]),
                Route("/v1/sessions/{session_id}/turns", self.begin_turn, methods=["POST"]),
                Route("/v1/sessions/{session_id}/turns/{turn_id}/cancel", self.cancel, methods=["POST"]),
                Route("/v1/sessions/{session_id}/turns/{turn_id}/finalize", self.finalize, methods=["POST"]),
                Route("/v1/sessions/{session_id}/turns/{turn_id}/heard", self.heard, methods=["POST"]),
                Route("/v1/world", self.world, methods=["GET"]),
                Route("/v1/openapi.json", self.openapi, methods=["GET"]),
                Route("/footlights.js", self.javascript, methods=["GET"]),
                Route("/livez", self.live, methods=["GET"]),
                Route("/healthz", self.live, methods=["GET"]),
                Route("/readyz", self.ready, methods=["GET"]),
                Route("/metrics", self.metrics, methods=["GET"]),
                *self._dexi.routes(),
                *self._others,
            ],
            exception_handlers={
                DexiError: tell_dexi_error,
                FootlightsError: self._tell_error,
                Refused: self._tell_refusal,
                HTTPException: self._tell_http_refusal,
                Exception: self._tell_failure,  # the boundary: what fails here is one request
            },
        )
        app.router.redirect_slashes = False
        return app

    # -- sessions and turns

    async def start(self, request: Request) -> Response:
        user = self._user(request)
        command = _command("start", request, Start)
        session_id = self._access.start(user, command.params).session_id
        return json_response({"session_id": session_id}, 201)

    async def close(self, request: Request) -> Response:
        user = self._user(request)
        command = _command("close", request, Close)
        await while_connected(request.receive, partial(self._access.close, user, command.session_id))
        return Response(status_code=204)

    async def begin_turn(self, request: Request) -> Response:
        user = self._user(request)
        command = _command("begin_turn", request, BeginTurn)
        turn_id = self._access.begin_turn(user, command.session_id, command.input, command.params)
        return json_response({"turn_id": turn_id}, 202)

    async def cancel(self, request: Request) -> Response:
        user = self._user(request)
        command = _command("cancel", request, Cancel)
        return json_response({"canceled": self._access.cancel(user, command.session_id, command.turn_id)})

    async def finalize(self, request: Request) -> Response:
        user = self._user(request)
        command = _command("finalize", request, Finalize)
        finalize = partial(self._access.finalize, user, command.session_id, command.turn_id)
        commit = await while_connected(request.receive, finalize)
        return Response() if commit is None else json_response(commit_json(commit))

    async def heard(self, request: Request) -> Response:
        user = self._user(request)
        command = _command("heard", request, HeardUpTo)
        self._access.heard(user, command.session_id, command.turn_id, command.seq)
        return Response(status_code=204)

    async def events(self, request: Request) -> Response:
        if request.method != "GET":  # Starlette takes a HEAD for one; nobody would end that
            raise HTTPException(405, headers={"allow": "GET"})
        user = self._user(request)
        session_id = _path(request)["session_id"]
        cursor = _cursor(request)
        after = None if cursor is None else cursor.after
        terminal_seen = (cursor or Cursor()).terminal_seen
        remote_models = _remote_models(request)
        subscription = self._access.subscribe(user, session_id, after, terminal_seen, remote_models=remote_models)
        return EventStream(
            subscription,
            session_id,
            terminal_seen,
            self._streams,
            self._access.policy.limits.keep_alive,
            lambda: self._access.is_closing,
        )

    # -- what is true

    async def ledger(self, request: Request) -> Response:
        user = self._user(request)
        session_id = _path(request)["session_id"]
        limit = _limit(request)
        self._access.policy.check_owner(user, session_id)
        commits = await history_of(self._access.stage.ledger).latest(session_id, limit)
        if not commits:
            self._access.session(user, session_id)
        return json_response({"commits": [record_to_json(commit) for commit in commits]})

    async def world(self, request: Request) -> Response:
        return json_response({"world": self._access.stage.world_for(self._user(request))})

    # -- for operators and browsers

    async def openapi(self, request: Request) -> Response:
        return Response(self._openapi, media_type="application/json")

    async def javascript(self, request: Request) -> Response:
        try:
            source = await trio.Path(_JAVASCRIPT).read_bytes()
        except FileNotFoundError:
            raise HTTPException(404) from None
        # Any page may have it: it is the same for everybody, and says nothing of anybody.
        headers = {"cache-control": "no-cache", "access-control-allow-origin": "*"}
        return Response(source, headers=headers, media_type="text/javascript")

    async def live(self, request: Request) -> Response:
        return json_response({"status": "ok"}, headers=_FRESH)

    async def ready(self, request: Request) -> Response:
        reasons = await self._readiness.reasons()
        if reasons:
            return json_response({"status": "not_ready", "reasons": reasons}, 503, _FRESH)
        return json_response({"status": "ok"}, headers=_FRESH)

    async def metrics(self, request: Request) -> Response:
        self._user(request)
        return Response(
            self._metrics.render(self._access.stage, self._access.incidents.counts), media_type=CONTENT_TYPE
        )

    def _user(self, request: Request) -> User:
        """Who asks. Raises `Unauthorized`, or `RateLimited` if that one asks too often."""
        return authenticate(request, self._access)

    async def _tell_error(self, _: Request, error: Exception) -> Response:
        return self._counted(error_response(cast("FootlightsError", error)))

    async def _tell_refusal(self, _: Request, error: Exception) -> Response:
        refused = cast("Refused", error)
        return self._counted(error_response(refused.error, refused.status))

    async def _tell_http_refusal(self, _: Request, error: Exception) -> Response:
        refused = cast("HTTPException", error)
        return self._counted(http_refusal(refused.status_code, refused.headers))

    def _counted(self, refusal: Response) -> Response:
        self._access.incidents.refused(f"http_{refusal.status_code}")
        return refusal

    async def _tell_failure(self, _: Request, error: Exception) -> Response:
        self._access.incidents.failed("http_request", error)
        return error_response(FootlightsError())


# -- reading requests


def _path(request: Request) -> dict[str, str]:
    return cast("dict[str, str]", request.path_params)


def _command(op: str, request: Request, kind: type[_C]) -> _C:
    """The command of that kind: what the address says, and what the body says."""
    body, path = body_of(request), _path(request)
    if body:
        _check_content_type(request)
    fields = read_object(body) if body else {}
    for name in path:
        if name in fields:
            raise InvalidCommand(f"{name}: is in the address, and not in the body")
    command = read_fields(op, {**fields, **path})
    assert isinstance(command, kind)
    return command


def _check_content_type(request: Request) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise Refused(415, InvalidCommand("A body must be JSON: Content-Type: application/json"))


def _cursor(request: Request) -> Cursor | None:
    """What the client has; None for one that has nothing yet. Of the turns that it began, the id may know more."""
    last_id = request.headers.get("last-event-id")
    begun = request.query_params.getlist("begun")
    if not last_id and not begun:
        return None
    cursor = read_cursor(last_id) if last_id else Cursor()
    return evolve(cursor, after={**dict.fromkeys(begun, -1), **cursor.after})


def _remote_models(request: Request) -> bool:
    given = request.query_params.get("remote_models", "false")
    if given not in ("true", "false"):
        raise InvalidCommand("remote_models: must be true or false")
    return given == "true"


def _limit(request: Request) -> int:
    given = request.query_params.get("limit", str(_COMMITS))
    if not given.isascii() or not given.isdigit() or len(given) > 4 or not 1 <= int(given) <= MAX_COMMITS:
        raise InvalidCommand(f"limit: must be a number from 1 to {MAX_COMMITS}")
    return int(given)


# -- refusing them
