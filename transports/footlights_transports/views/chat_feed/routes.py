"""Routes of the chat feed: read or drop the messages of a session.

    GET    /v1/sessions/{session_id}/chat       the messages; the first read begins the feed
    DELETE /v1/sessions/{session_id}/chat       forget them

There is no route to write a message. The answer to an approval is a new turn, like everything else that a player says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from footlights_transports.http.errors import json_response
from footlights_transports.http.openapi import TEXT, answer, list_of, object_of, ref
from footlights_transports.http.operations import Operation
from footlights_transports.http.requests import path_of
from footlights_transports.views.chat_feed.feeds import MAX_FEEDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request

    from footlights import InteractionSession
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.http.openapi import Json
    from footlights_transports.views.chat_feed.feeds import ChatFeeds

CHAT_SCHEMAS: Mapping[str, Json] = {
    "ChatMessage": object_of(
        {
            "timestamp": {"type": "string", "format": "date-time"},
            "role": {"type": "string", "enum": ["system", "agent", "user"]},
            "content": TEXT,
        }
    )
}

_CHAT = "/v1/sessions/{session_id}/chat"
_HEADERS = {"cache-control": "no-store"}


class ChatRoutes:
    """The two routes of one server."""

    def __init__(self, access: SessionAccess, feeds: ChatFeeds, max_per_user: int) -> None:
        self._access = access
        self._feeds = feeds
        self.max_per_user = max_per_user

    @Operation("GET", _CHAT, {200: answer("Messages.", object_of({"messages": list_of(ref("ChatMessage"))}))}, (404,))
    async def read_chat(self, request: Request, user: User) -> Response:
        """What people may be shown of the session, in messages. The feed begins when it is first read, keeps the newest
        messages, and may lose any of them: nothing depends on them.
        """
        session = self._session(request, user)
        messages = await self._feeds.read(session, MAX_FEEDS if user.game_server else self.max_per_user)
        return json_response({"messages": [each.document for each in messages]}, headers=_HEADERS)

    @Operation("DELETE", _CHAT, {204: answer("They are forgotten.")}, (404,))
    async def drop_chat(self, request: Request, user: User) -> Response:
        """Forget the messages."""
        self._feeds.drop(self._session(request, user).session_id)
        return Response(status_code=204)

    def _session(self, request: Request, user: User) -> InteractionSession:
        return self._access.session(user, path_of(request)["session_id"])
