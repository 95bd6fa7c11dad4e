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

from starlette.responses import Response

from footlights.errors import InvalidCommand
from footlights.laws.recording import parse_fault, parse_line
from footlights.modes import ExecutionPolicy
from footlights.params import TurnParams
from footlights.wire import values
from footlights.wire.values import Unfit
from footlights_transports.http.disconnect import while_connected
from footlights_transports.http.errors import Refused, json_response
from footlights_transports.http.openapi import answer, ref
from footlights_transports.http.operations import Operation
from footlights_transports.http.requests import body_of, json_body_of, path_of
from footlights_transports.views.base.run_log import RunStream
from footlights_transports.views.dexi.openapi import BEGUN, CANCELED, FOLLOWED, LAST_ID, NO_AGENT, NO_RUN
from footlights_transports.views.dexi.pure.heartbeat import SKIPPED_WITHIN
from footlights_transports.views.dexi.pure.recollection import END_EVENTS
from footlights_transports.views.dexi.runs import RunRequest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from starlette.requests import Request

    from footlights.wire.values import Reader
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.views.dexi.pure.events import DexiEvent
    from footlights_transports.views.dexi.run import Run
    from footlights_transports.views.dexi.runs import Runs


_YES_WORKS = 'approvals: a yes is carried out, so it needs "execution_policy": "auto" or "force".'
ALLOW_HEADER = "footlights-allow"
"""Of a stream: what to send with the request so that it is executed, if it was not."""


class DexiRoutes:
    """The routes, for one server."""

    def __init__(self, access: SessionAccess, runs: Runs) -> None:
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
        return json_response((await self._run(request, user)).description())

    @Operation("GET", "/api/runs/{run_id}/events", FOLLOWED, parameters=[LAST_ID])
    async def follow_run(self, request: Request, user: User) -> Response:
        """The events of a run as Server-Sent Events, from its beginning or after Last-Event-ID."""
        run = await self._run(request, user)
        place = _place(request.headers.get("last-event-id"), run)
        if run.is_over and place == len(run.entries):
            return Response(status_code=204)  # otherwise an EventSource would reconnect forever
        return self._stream(run, place)

    @Operation("POST", "/api/runs/{run_id}/cancel", CANCELED, (409,))
    async def cancel_run(self, request: Request, user: User) -> Response:
        """Interrupt a run, unless it is ending or has ended."""
        run = await self._run(request, user)
        return json_response({"canceled": not run.is_over and self._runs.cancel_run(run)})

    async def _begin(self, request: Request, user: User, agent: str | None, policy: ExecutionPolicy) -> Response:
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

    def _stream(self, run: Run, place: int) -> RunStream[DexiEvent]:
        stream = RunStream(run, place, self._access.policy.limits.keep_alive, skips_within=SKIPPED_WITHIN)
        if run.allow is not None:
            stream.headers[ALLOW_HEADER] = "; ".join(f"{name}={value}" for name, value in run.allow.items())
        return stream

    async def _run(self, request: Request, user: User) -> Run:
        return await self._runs.recall(user, path_of(request)["run_id"])


def _answers(value: object, _: object) -> Mapping[str, bool]:
    return TurnParams(approvals=cast("Mapping[str, bool]", value)).approvals


_FIELDS: Mapping[str, Reader] = {
    "message": values.name,
    "execution_policy": values.member_of(ExecutionPolicy),
    "stream": values.flag,
    "session_id": values.text,
    "approvals": _answers,
}
"""The fields of a request. All but the first may be missing or null."""


def _read(request: Request, agent: str | None, policy: ExecutionPolicy) -> tuple[RunRequest, bool]:
    """The run that a request asks for, and whether as a stream. Raises `Refused`."""
    fields = json_body_of(request)
    try:
        parse_line(body_of(request))
    except ValueError as error:  # json_body_of accepted it, so a field is named twice
        raise Refused(400, InvalidCommand(f"The body cannot be read: {parse_fault(error)}.")) from None
    given: dict[str, Any] = {}
    for name, read in _FIELDS.items():
        value = fields.pop(name, None)
        try:
            given[name] = read(value, None) if value is not None or name == "message" else None
        except Unfit as error:
            raise Refused(422, InvalidCommand(f"{name}: {error}")) from None
        except InvalidCommand as error:
            raise Refused(422, error) from None
    if fields:
        raise Refused(422, InvalidCommand("The body has a field that this request does not know."))
    wanted = RunRequest(
        message=given["message"],
        policy=given["execution_policy"] or policy,
        agent=agent,
        session_id=given["session_id"],
        approvals=given["approvals"] or {},
    )
    if wanted.policy is ExecutionPolicy.DENY and any(wanted.approvals.values()):
        raise Refused(422, InvalidCommand(_YES_WORKS))
    return wanted, given["stream"] is not False


def _place(last_id: str | None, run: Run) -> int:
    """The place in the log after the event with this id. Raises `InvalidCommand`."""
    if last_id is None:
        return 0
    if last_id.isascii() and last_id.isdigit() and len(last_id) < 10:
        place = int(last_id) + 1 - run.first_id
        if place <= 0:  # of the run itself, which only the ledger remembers
            return len(run.entries) - END_EVENTS
        if place <= len(run.entries):
            return place
    raise InvalidCommand("Last-Event-ID: is not the id of an event of this run.")
