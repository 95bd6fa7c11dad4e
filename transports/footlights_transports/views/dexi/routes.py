"""Routes of narrated runs: begin one, as Server-Sent Events or as one answer, and read or cancel it later.

    POST /api/chat                       text only, unless the request asks for execution
    POST /api/agents/{agent}/invoke      the same for one agent, with execution allowed
    GET  /api/runs/{run_id}              the session and turn of a run, and why it is in its mode
    GET  /api/runs/{run_id}/events       the events of a run, from its beginning or after Last-Event-ID
    POST /api/runs/{run_id}/cancel       interrupt it

A client that disconnects cancels nothing. A run belongs to its user; for other users it does not exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import trio
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from footlights.errors import InvalidCommand
from footlights.laws.recording import parse_fault, parse_line
from footlights.modes import ExecutionPolicy
from footlights.wire import values
from footlights.wire.values import Unfit
from footlights_transports.http.authentication import authenticate
from footlights_transports.http.errors import Refused, json_response
from footlights_transports.http.guard import body_of
from footlights_transports.json_text import read_object
from footlights_transports.views.dexi.run import RunReader
from footlights_transports.views.dexi.runs import RunRequest
from footlights_transports.views.native.events import while_connected
from footlights_transports.views.native.sse_stream import KEEP_ALIVE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from footlights.wire.values import Reader
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.views.dexi.run import Run
    from footlights_transports.views.dexi.runs import DexiError, Runs

_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class DexiRoutes:
    """The routes, for one server."""

    def __init__(self, access: SessionAccess, runs: Runs) -> None:
        self._access = access
        self._runs = runs

    def routes(self) -> list[Route]:
        return [
            Route("/api/chat", self.chat, methods=["POST"]),
            Route("/api/agents/{agent}/invoke", self.invoke, methods=["POST"]),
            Route("/api/runs/{run_id}", self.describe, methods=["GET"]),
            Route("/api/runs/{run_id}/events", self.events, methods=["GET"]),
            Route("/api/runs/{run_id}/cancel", self.cancel, methods=["POST"]),
        ]

    async def chat(self, request: Request) -> Response:
        return await self._begin(request, None, ExecutionPolicy.DENY)

    async def invoke(self, request: Request) -> Response:
        return await self._begin(request, request.path_params["agent"], ExecutionPolicy.AUTO)

    async def describe(self, request: Request) -> Response:
        return json_response(self._run(request).description())

    async def events(self, request: Request) -> Response:
        if request.method != "GET":  # Starlette routes a HEAD here too, and that stream would never end
            raise HTTPException(405, headers={"allow": "GET"})
        run = self._run(request)
        place = _place(request.headers.get("last-event-id"), run)
        if run.is_over and place == len(run.entries):
            return Response(status_code=204)  # otherwise an EventSource would reconnect forever
        return self._stream(run, place)

    async def cancel(self, request: Request) -> Response:
        user = self._user(request)
        return json_response({"canceled": self._runs.cancel(user, request.path_params["run_id"])})

    async def _begin(self, request: Request, agent: str | None, policy: ExecutionPolicy) -> Response:
        user = self._user(request)
        if "last-event-id" in request.headers:
            raise InvalidCommand("Last-Event-ID: goes on with a run only at GET /api/runs/{run_id}/events.")
        wanted, streams = _read(request, agent, policy)
        try:
            run = await self._runs.begin(user, wanted)
        except InvalidCommand as error:
            raise Refused(422, error) from None
        if streams:
            return self._stream(run, 0)
        await while_connected(request.receive, run.wait_over)
        return json_response(run.answer())

    def _stream(self, run: Run, place: int) -> RunStream:
        return RunStream(RunReader(run, place), self._access.policy.limits.keep_alive)

    def _run(self, request: Request) -> Run:
        return self._runs.find(self._user(request), request.path_params["run_id"])

    def _user(self, request: Request) -> User:
        return authenticate(request, self._access)


async def tell_dexi_error(_: Request, error: Exception) -> Response:
    """The response for a run or an agent that does not exist."""
    unknown = cast("DexiError", error)
    return json_response({"error": {"code": unknown.code, "message": str(unknown)}}, 404)


class RunStream(Response):
    """A run as Server-Sent Events, until it is over or the client disconnects."""

    media_type = "text/event-stream"

    def __init__(self, reader: RunReader, keep_alive: float) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._reader = reader
        self._keep_alive = keep_alive

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await while_connected(receive, lambda: self._pump(send))
        # Outside while_connected: to it, the end of the response looks like a client that disconnects.
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pump(self, send: Send) -> None:
        while True:
            text = KEEP_ALIVE
            with trio.move_on_after(self._keep_alive):
                text = await self._reader.receive()
            if not text:
                return
            await send({"type": "http.response.body", "body": text, "more_body": True})


_FIELDS: Mapping[str, Reader] = {
    "message": values.name,
    "execution_policy": values.member_of(ExecutionPolicy),
    "stream": values.flag,
    "session_id": values.text,
}
"""The fields of a request. All but the first may be missing or null."""


def _read(request: Request, agent: str | None, policy: ExecutionPolicy) -> tuple[RunRequest, bool]:
    """The run that a request asks for, and whether as a stream. Raises `Refused`."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise Refused(415, InvalidCommand("A body must be JSON: Content-Type: application/json"))
    body = body_of(request)
    fields = read_object(body)
    try:
        parse_line(body)
    except ValueError as error:  # read_object accepted it, so a field is named twice
        raise Refused(400, InvalidCommand(f"The body cannot be read: {parse_fault(error)}.")) from None
    given: dict[str, Any] = {}
    for name, read in _FIELDS.items():
        value = fields.pop(name, None)
        try:
            given[name] = read(value, None) if value is not None or name == "message" else None
        except Unfit as error:
            raise Refused(422, InvalidCommand(f"{name}: {error}")) from None
    if fields:
        raise Refused(422, InvalidCommand("The body has a field that this request does not know."))
    wanted = RunRequest(
        message=given["message"],
        policy=given["execution_policy"] or policy,
        agent=agent,
        session_id=given["session_id"],
    )
    return wanted, given["stream"] is not False


def _place(last_id: str | None, run: Run) -> int:
    """The place in the log after the event with this id. Raises `InvalidCommand`."""
    if last_id is None:
        return 0
    if last_id.isascii() and last_id.isdigit() and len(last_id) < 10 and int(last_id) < len(run.entries):
        return int(last_id) + 1
    raise InvalidCommand("Last-Event-ID: is not the id of an event of this run.")
