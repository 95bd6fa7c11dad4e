"""Routes of AG-UI: run an agent, and cancel a run.

    POST /ag-ui/{agent}                          run it: RunAgentInput in, AG-UI events out
    POST /ag-ui/{agent}/runs/{run_id}/cancel     cancel a run
    GET  /footlights-ag-ui.js                    the client that resumes and cancels, an ES module

The same request again continues the run after Last-Event-ID, or shows it from its beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.errors import InvalidCommand
from footlights_transports.http.errors import Refused, json_response
from footlights_transports.http.javascript import SOURCE, javascript
from footlights_transports.http.operations import Operation
from footlights_transports.http.requests import json_body_of, path_of
from footlights_transports.views.ag_ui.openapi import CANCELED, LAST_ID, RUN
from footlights_transports.views.ag_ui.pure.position import read_position
from footlights_transports.views.ag_ui.pure.request import read_request
from footlights_transports.views.ag_ui.runs import AgUiStream

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.views.ag_ui.runs import AgUiRuns


class AgUiRoutes:
    """The routes, for one server."""

    def __init__(self, access: SessionAccess, runs: AgUiRuns) -> None:
        self._access = access
        self._runs = runs

    @Operation("POST", "/ag-ui/{agent}", RUN, (409, 415), body="RunAgentInput", parameters=[LAST_ID])
    async def run_agent(self, request: Request, user: User) -> Response:
        """Say the last message of the user to an agent, and follow the run."""
        last_id = request.headers.get("last-event-id")
        try:
            wanted = read_request(json_body_of(request))
            after = None if last_id is None else read_position(last_id)
            run, place = await self._runs.open(user, path_of(request)["agent"], wanted, after)
        except InvalidCommand as error:
            raise Refused(422, error) from None
        return AgUiStream(self._runs, run, place, self._access.policy.limits.keep_alive)

    @Operation("POST", "/ag-ui/{agent}/runs/{run_id}/cancel", CANCELED, (409,))
    async def cancel_agent_run(self, request: Request, user: User) -> Response:
        """Cancel a run, unless it is ending or has ended."""
        names = path_of(request)
        return json_response({"canceled": self._runs.cancel_by_id(user, names["agent"], names["run_id"])})

    @Operation("GET", "/footlights-ag-ui.js", SOURCE, (404,), public=True)
    async def ag_ui_javascript(self, request: Request) -> Response:
        """A client for AG-UI that resumes and cancels, an ES module."""
        return await javascript("footlights-ag-ui.js")
