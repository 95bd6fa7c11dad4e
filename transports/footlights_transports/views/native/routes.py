"""Routes of the native view: the commands of the native protocol as HTTP requests.

The body of a request holds the fields of the command, except those that the path gives. Every answer is JSON, except
events, which are Server-Sent Events.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from starlette.responses import Response

from footlights.errors import InvalidCommand
from footlights.stream.cursor import Cursor
from footlights_transports.http.disconnect import while_connected
from footlights_transports.http.errors import json_response
from footlights_transports.http.javascript import SOURCE, javascript
from footlights_transports.http.openapi import TEXT, answer, object_of, query, ref
from footlights_transports.http.operations import Operation
from footlights_transports.http.requests import body_of, json_body_of, path_of
from footlights_transports.views.native.commit_stream import CommitStream
from footlights_transports.views.native.event_response import EventStream
from footlights_transports.views.native.openapi import (
    BEGINNING,
    CANCELED,
    COMMITS_FOLLOWED,
    FOLLOWING,
    FOLLOWING_COMMITS,
    MAX_STALL,
    RECORDS,
    SUMMARY,
)
from footlights_transports.views.native.protocol import (
    COMMITS,
    MAX_COMMITS,
    BeginTurn,
    Cancel,
    Close,
    Finalize,
    HeardUpTo,
    HostCommit,
    Start,
    Summarize,
    commit_json,
    commits_json,
    host_commit_json,
    read_fields,
    summary_result,
)
from footlights_transports.views.native.sse_cursor import read_cursor

if TYPE_CHECKING:
    from starlette.requests import Request

    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess

_C = TypeVar("_C")
_SESSION = "/v1/sessions/{session_id}"
_TURN = f"{_SESSION}/turns/{{turn_id}}"


class SessionRoutes:
    """Routes of a session: start and close it, begin turns, follow its events, list its commits."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access

    @Operation(
        "POST",
        "/v1/sessions",
        {201: answer("The session.", object_of({"session_id": TEXT}))},
        (409, 415),
        body="StartSession",
        body_required=False,
    )
    async def start_session(self, request: Request, user: User) -> Response:
        """Start a session."""
        command = _command("start", request, Start)
        session_id = self._access.start(user, command.params).session_id
        return json_response({"session_id": session_id}, 201)

    @Operation("DELETE", _SESSION, {204: answer("It is closed.")}, (404,))
    async def close_session(self, request: Request, user: User) -> Response:
        """Interrupt what runs, wait until every turn is settled, and close the session."""
        command = _command("close", request, Close)
        await while_connected(request.receive, partial(self._access.close, user, command.session_id))
        return Response(status_code=204)

    @Operation(
        "POST",
        f"{_SESSION}/turns",
        {202: answer("The turn is accepted.", object_of({"turn_id": TEXT}))},
        (404, 409, 415),
        body="BeginTurn",
        parameters=BEGINNING,
    )
    async def begin_turn(self, request: Request, user: User) -> Response:
        """Say something. What follows comes as events."""
        command = _command("begin_turn", request, BeginTurn)
        if command.request_id is not None:
            raise InvalidCommand("request_id: is the header Idempotency-Key, and not in the body")
        session_id, said, params, key = command.session_id, command.input, command.params, _idempotency_key(request)
        if key is None:
            turn_id = self._access.begin_turn(user, session_id, said, params)
        else:
            turn_id = await self._access.begin_turn_once(user, session_id, said, params, key)
        return json_response({"turn_id": turn_id}, 202)

    @Operation(
        "GET",
        f"{_SESSION}/events",
        {200: answer("The events.", TEXT, "text/event-stream")},
        (404, 409),
        parameters=FOLLOWING,
    )
    async def follow_session(self, request: Request, user: User) -> Response:
        """The events of the session as Server-Sent Events. Each `data` is an event, each `id` a cursor. Without
        Last-Event-ID: unfinished turns from their beginning, then live.
        """
        session_id = path_of(request)["session_id"]
        cursor = _cursor(request)
        after = None if cursor is None else cursor.after
        terminal_seen = (cursor or Cursor()).terminal_seen
        remote_models = _remote_models(request)
        subscription = self._access.subscribe(user, session_id, after, terminal_seen, remote_models=remote_models)
        return EventStream(
            subscription,
            session_id,
            terminal_seen,
            self._access.policy.limits.keep_alive,
            encode=self._access.admission.encodings.encode,
            server_goes=lambda: self._access.admission.is_closing,
            stall=_stall(request),
        )

    @Operation(
        "GET",
        f"{_SESSION}/ledger",
        RECORDS,
        (404,),
        parameters=[query("limit", {"type": "integer", "minimum": 1, "maximum": MAX_COMMITS, "default": COMMITS})],
    )
    async def list_commits(self, request: Request, user: User) -> Response:
        """The newest commits of the session, in their order."""
        session_id = path_of(request)["session_id"]
        limit = _limit(request)
        return json_response(commits_json(await self._access.commits(user, session_id, limit)))


class HostRoutes:
    """Routes of game servers."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access

    @Operation(
        "POST",
        "/v1/commits",
        {200: answer("The decision.", ref("Commit"))},
        (409, 415),
        body="HostCommit",
    )
    async def commit(self, request: Request, user: User) -> Response:
        """Have the rules judge intents outside of sessions, and wait for the commit. Only for game servers."""
        command = _command("commit", request, HostCommit)
        work = partial(self._access.host_commit, user, command.intents, command.why)
        commit = await while_connected(request.receive, work)
        return Response() if commit is None else json_response(host_commit_json(commit))

    @Operation(
        "GET",
        "/v1/commits",
        COMMITS_FOLLOWED,
        (409, 413),
        parameters=FOLLOWING_COMMITS,
    )
    async def follow_commits(self, request: Request, user: User) -> Response:
        """What changes in a part of the world as Server-Sent Events: whole commits for operators and game servers, for
        others what they see change. Each `id` is a cursor. Without one, the first event is `world`.
        """
        after = request.headers.get("last-event-id") or request.query_params.get("after") or None
        followed = await self._access.follow_commits(user, after, request.query_params.get("under", ""))
        failed = partial(self._access.incidents.met, "http_feed")
        return CommitStream(followed, failed, self._access.policy.limits.keep_alive)


class ClientRoutes:
    """The client for browsers."""

    @Operation("GET", "/footlights.js", SOURCE, (404,), public=True)
    async def javascript(self, request: Request) -> Response:
        """The JavaScript client, an ES module."""
        return await javascript("footlights.js")


class TurnRoutes:
    """Routes of a session's turns: cancel, finalize, heard."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access

    @Operation("POST", f"{_SESSION}/cancel", CANCELED, (404, 409))
    async def cancel_turns(self, request: Request, user: User) -> Response:
        """Interrupt every open turn."""
        return self._cancel(request, user)

    @Operation("GET", _TURN, SUMMARY, (404, 409))
    async def summarize_turn(self, request: Request, user: User) -> Response:
        """How a turn ended, and where its time went; null if it is not settled, or not retained any more."""
        command = _command("summary", request, Summarize)
        return json_response(summary_result(self._access.summary(user, command.session_id, command.turn_id)))

    @Operation("POST", f"{_TURN}/cancel", CANCELED, (404, 409))
    async def cancel_turn(self, request: Request, user: User) -> Response:
        """Interrupt the turn, unless it is ending or has ended."""
        return self._cancel(request, user)

    def _cancel(self, request: Request, user: User) -> Response:
        command = _command("cancel", request, Cancel)
        return json_response({"canceled": self._access.cancel(user, command.session_id, command.turn_id)})

    @Operation("POST", f"{_TURN}/finalize", {200: answer("The commit.", ref("Commit"))}, (404, 409))
    async def finalize_turn(self, request: Request, user: User) -> Response:
        """Wait for the turn's commit. Turns commit by themselves."""
        command = _command("finalize", request, Finalize)
        finalize = partial(self._access.finalize, user, command.session_id, command.turn_id)
        commit = await while_connected(request.receive, finalize)
        return Response() if commit is None else json_response(commit_json(commit))

    @Operation("POST", f"{_TURN}/heard", {204: answer("Noted.")}, (404, 409, 415), body="Heard")
    async def heard(self, request: Request, user: User) -> Response:
        """Say that the player took the turn in up to this event."""
        command = _command("heard", request, HeardUpTo)
        self._access.heard(user, command.session_id, command.turn_id, command.seq)
        return Response(status_code=204)


# -- reading requests


def _command(op: str, request: Request, kind: type[_C]) -> _C:
    """The command of that kind, from the path and the body."""
    path = path_of(request)
    fields = json_body_of(request) if body_of(request) else {}
    for name in path:
        if name in fields:
            raise InvalidCommand(f"{name}: is in the address, and not in the body")
    command = read_fields(op, {**fields, **path})
    assert isinstance(command, kind)
    return command


def _idempotency_key(request: Request) -> str | None:
    keys = request.headers.getlist("idempotency-key")
    if len(keys) > 1 or not all(key.isascii() for key in keys):
        raise InvalidCommand("Idempotency-Key: must be given once, in ASCII")
    return keys[0] if keys else None


def _cursor(request: Request) -> Cursor | None:
    """What the client has; None if it has nothing yet. For a turn that it began, the id may know more."""
    last_id = request.headers.get("last-event-id")
    begun = request.query_params.getlist("begun")
    if not last_id and not begun:
        return None
    cursor = read_cursor(last_id) if last_id else Cursor()
    return Cursor({**dict.fromkeys(begun, -1), **cursor.after}, cursor.terminal_seen)


def _remote_models(request: Request) -> bool:
    given = request.query_params.get("remote_models", "false")
    if given not in ("true", "false"):
        raise InvalidCommand("remote_models: must be true or false")
    return given == "true"


def _stall(request: Request) -> int:
    given = request.query_params.get("stall", "0")
    if not given.isascii() or not given.isdigit() or len(given) > 2 or int(given) > MAX_STALL:
        raise InvalidCommand(f"stall: must be a number of seconds up to {MAX_STALL}")
    return int(given)


def _limit(request: Request) -> int:
    given = request.query_params.get("limit", str(COMMITS))
    if not given.isascii() or not given.isdigit() or len(given) > 4 or not 1 <= int(given) <= MAX_COMMITS:
        raise InvalidCommand(f"limit: must be a number from 1 to {MAX_COMMITS}")
    return int(given)
