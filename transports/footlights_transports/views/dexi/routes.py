"""The Dexi routes: say something and be told what is done about it, as Server-Sent Events or as one answer.

    POST /api/chat                       words, unless execution is asked for and allowed
    POST /api/agents/{agent}/invoke      the same of one agent, and execution is allowed
    GET  /api/runs/{run_id}              where a run is kept, and why it is in its mode
    GET  /api/runs/{run_id}/events       a run from its beginning, or from Last-Event-ID on
    POST /api/runs/{run_id}/cancel       interrupt it

Losing the connection cancels nothing. A run is its user's own, and to others looks as if it did not exist.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, cast

import trio
from starlette.responses import Response

from footlights.errors import InvalidCommand
from footlights.laws.recording import parse_fault, parse_line
from footlights.modes import ExecutionPolicy
from footlights.wire import values
from footlights.wire.values import Unfit
from footlights_transports.http.disconnect import while_connected
from footlights_transports.http.errors import Refused, json_response
from footlights_transports.http.openapi import answer, ref
from footlights_transports.http.operations import Operation
from footlights_transports.http.requests import body_of, json_body_of, path_of
from footlights_transports.http.sse import SseResponse
from footlights_transports.views.dexi.openapi import BEGUN, CANCELED, FOLLOWED, LAST_ID, NO_AGENT, NO_RUN
from footlights_transports.views.dexi.runs import Request as RunRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from starlette.requests import Request

    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.views.dexi.run import Run
    from footlights_transports.views.dexi.runs import DexiError, DexiRuns

_QUIET = 2.0
"""A heartbeat that comes sooner than this after anything else of the same response is left out."""


class DexiRoutes:
    def __init__(self, access: SessionAccess, runs: DexiRuns) -> None:
        self._access = access
        self._runs = runs

    @Operation("POST", "/api/chat", BEGUN, (409, 415, 422), body="RunRequest")
    async def chat(self, request: Request, user: User) -> Response:
        """Say something. Nothing is executed unless `execution_policy` allows it."""
        return await self._begin(request, user, None, ExecutionPolicy.DENY)

    @Operation("POST", "/api/agents/{agent}/invoke", {**BEGUN, **NO_AGENT}, (409, 415, 422), body="RunRequest")
    async def invoke(self, request: Request, user: User) -> Response:
        """Ask an agent. What calls for execution is executed unless `execution_policy` denies it."""
        return await self._begin(request, user, path_of(request)["agent"], ExecutionPolicy.AUTO)

    @Operation("GET", "/api/runs/{run_id}", {200: answer("The run.", ref("RunDescription")), **NO_RUN})
    async def describe_run(self, request: Request, user: User) -> Response:
        """Where a run is kept, and why it is in its mode."""
        return json_response(self._run(request, user).description())

    @Operation("GET", "/api/runs/{run_id}/events", FOLLOWED, parameters=[LAST_ID])
    async def follow_run(self, request: Request, user: User) -> Response:
        """The events of a run as Server-Sent Events, from its beginning or after Last-Event-ID."""
        run = self._run(request, user)
        place = _place(request.headers.get("last-event-id"), run)
        if run.is_over and place == len(run.entries):
            return Response(status_code=204)  # an EventSource would come back again and again
        return self._stream(run, place)

    @Operation("POST", "/api/runs/{run_id}/cancel", CANCELED, (409,))
    async def cancel_run(self, request: Request, user: User) -> Response:
        """Interrupt a run, unless it is ending or has ended."""
        return json_response({"canceled": self._runs.cancel(user, path_of(request)["run_id"])})

    async def _begin(self, request: Request, user: User, agent: str | None, policy: ExecutionPolicy) -> Response:
        if "last-event-id" in request.headers:
            raise InvalidCommand("Last-Event-ID: goes on with a run only at GET /api/runs/{run_id}/events.")
        wish, streams = _read(request, agent, policy)
        try:
            run = await self._runs.begin(user, wish)
        except InvalidCommand as error:
            raise Refused(422, error) from None
        if streams:
            return self._stream(run, 0)
        await while_connected(request.receive, run.wait_over)
        return json_response(run.answer())

    def _stream(self, run: Run, place: int) -> RunStream:
        return RunStream(run, place, self._access.policy.limits.keep_alive)

    def _run(self, request: Request, user: User) -> Run:
        return self._runs.find(user, path_of(request)["run_id"])


async def tell_dexi_error(_: Request, error: Exception) -> Response:
    """How a run or an agent that does not exist is refused."""
    unknown = cast("DexiError", error)
    return json_response({"error": {"code": unknown.code, "message": str(unknown)}}, 404)


class RunStream(SseResponse):
    """A run as a response, from one of its events on, until it is over or the client goes away."""

    def __init__(self, run: Run, place: int, keep_alive: float) -> None:
        super().__init__(keep_alive)
        self._run = run
        self._place = place
        self._live_from = len(run.entries)
        self._sent_at = -inf

    async def next_text(self) -> bytes | None:
        text = self._next()
        if not text:
            if self._run.is_over:
                return None
            await self._run.wait_beyond(self._place)
        return text

    def _next(self) -> bytes:
        """What this client has not got yet; nothing if that is a heartbeat which would fill no silence here.

        One who has just come back is sent what was missed, whenever that was made, and has not waited since. Heartbeats
        that were missed say nothing any more.
        """
        entries, begin = self._run.entries, self._place
        missed = [each for each in entries[begin : self._live_from] if not each.is_heartbeat]
        fresh = [*missed, *entries[max(begin, self._live_from) :]]
        self._place = len(entries)
        now = trio.current_time()
        if all(each.is_heartbeat for each in fresh) and now - self._sent_at < _QUIET:
            return b""
        if fresh:
            self._sent_at = now
        return b"".join(each.text for each in fresh)


# -- reading requests


def _read(request: Request, agent: str | None, policy: ExecutionPolicy) -> tuple[RunRequest, bool]:
    """What is wanted, and whether as a stream. Raises `Refused`."""
    fields = json_body_of(request)
    try:
        parse_line(body_of(request))
    except ValueError as error:  # it was read before, so it can only be ambiguous
        raise Refused(400, InvalidCommand(f"The body cannot be read: {parse_fault(error)}.")) from None
    try:
        given = {name: _field(fields, name) for name in _FIELDS}
    except Unfit as error:
        raise Refused(422, InvalidCommand(f"{error.field}: {error}")) from None
    if fields:
        raise Refused(422, InvalidCommand("The body has a field that this request does not know."))
    wish = RunRequest(
        message=given["message"],
        policy=policy if given["execution_policy"] is None else given["execution_policy"],
        agent=agent,
        session_id=given["session_id"],
    )
    return wish, given["stream"] is not False


def _field(fields: dict[str, Any], name: str) -> Any:
    value = fields.pop(name, None)
    if value is None and name != "message":
        return None
    try:
        return _FIELDS[name](value)
    except Unfit as error:
        raise Unfit(str(error), name) from None


def _policy(value: object) -> ExecutionPolicy:
    policy = values.member_of(ExecutionPolicy)(value, None)
    return cast("ExecutionPolicy", policy)


_FIELDS: Mapping[str, Callable[[object], object]] = {
    "message": values.name,
    "execution_policy": _policy,
    "stream": values.flag,
    "session_id": values.text,
}


def _place(last_id: str | None, run: Run) -> int:
    """Where to go on: after the event with this id."""
    if last_id is None:
        return 0
    if last_id.isascii() and last_id.isdigit() and len(last_id) < 10 and int(last_id) < len(run.entries):
        return int(last_id) + 1
    raise InvalidCommand("Last-Event-ID: is not the id of an event of this run.")
