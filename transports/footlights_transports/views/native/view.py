"""Native view: its routes and its WebSocket endpoint."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from footlights_transports.views.base.view import Mount, View
from footlights_transports.views.native.connection import NativeConnection
from footlights_transports.views.native.note_routes import NoteRoutes
from footlights_transports.views.native.openapi import NATIVE_SCHEMAS
from footlights_transports.views.native.protocol import MAX_CURSORS, SUBPROTOCOL
from footlights_transports.views.native.routes import ClientRoutes, HostRoutes, SessionRoutes, TurnRoutes
from footlights_transports.websocket.endpoint import Accepted, Endpoint

if TYPE_CHECKING:
    from footlights import Cast, Limits
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.config.source import Source
    from footlights_transports.websocket.endpoint import Visitor


class NativeView(View):
    """The events of sessions as they are, and every command."""

    routes = (SessionRoutes, TurnRoutes, NoteRoutes, HostRoutes, ClientRoutes)
    schemas = NATIVE_SCHEMAS

    @classmethod
    def read(cls, source: Source, cast: Cast | None, limits: Limits) -> NativeView:
        # A client that resumes names every turn that it has received, and the protocol limits their number.
        named = limits.replay_turns + limits.max_queued_turns + limits.max_concurrent_turns
        if named > MAX_CURSORS:
            source.complain(
                ("limits", "replay_turns"),
                f"is too much: with max_queued_turns and max_concurrent_turns a client that resumes could have to name "
                f"{named:,} turns, and may name {MAX_CURSORS:,}.",
            )
        return cls()

    def mount(self, access: SessionAccess) -> Mount:
        def accept(visitor: Visitor) -> Accepted:
            return Accepted(partial(NativeConnection, access, visitor))

        handlers = [SessionRoutes(access), TurnRoutes(access), NoteRoutes(access), HostRoutes(access), ClientRoutes()]
        return Mount(view=self, handlers=handlers, endpoints=[Endpoint("/v1", SUBPROTOCOL, accept)])
