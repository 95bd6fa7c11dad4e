"""Routes of a notebook: what characters remember of the player of a session."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from starlette.responses import Response

from footlights_transports.access.notes import notes_of
from footlights_transports.http.disconnect import while_connected
from footlights_transports.http.errors import json_response
from footlights_transports.http.openapi import answer, ref
from footlights_transports.http.operations import Operation
from footlights_transports.http.requests import json_body_of, path_of
from footlights_transports.views.native.protocol import Notes, read_fields

if TYPE_CHECKING:
    from starlette.requests import Request

    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess

_NOTES = "/v1/sessions/{session_id}/notes"
_ANSWER = {200: answer("The notebook.", ref("Notebook"))}


class NoteRoutes:
    """Routes of a notebook."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access

    @Operation("GET", _NOTES, _ANSWER, (404, 409))
    async def list_notes(self, request: Request, user: User) -> Response:
        """What is remembered of the player of the session, and what waits for an approval. All of it: an export."""
        session = self._access.session(user, path_of(request)["session_id"])
        return json_response(await notes_of(self._access.stage, session, "list"))

    @Operation("POST", _NOTES, _ANSWER, (404, 409, 415), body="NoteAct")
    async def change_notes(self, request: Request, user: User) -> Response:
        """Erase all notes, or give a standing yes to notes, or take it back."""
        command = read_fields("notes", {**json_body_of(request), **path_of(request)})
        assert isinstance(command, Notes)
        session = self._access.session(user, command.session_id)
        work = partial(notes_of, self._access.stage, session, command.act)
        found = await while_connected(request.receive, work)
        return Response() if found is None else json_response(found)
