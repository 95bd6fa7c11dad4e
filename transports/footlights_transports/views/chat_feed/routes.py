"""Routes of the chat feed: read or drop the messages of a session.

    GET    /v1/sessions/{session_id}/chat       the messages; the first read begins the feed
    DELETE /v1/sessions/{session_id}/chat       forget them

There is no route to write a message. The answer to an approval is a new turn, like everything else that a player says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from starlette.responses import Response
from starlette.routing import Route

from footlights_transports.http.authentication import authenticate
from footlights_transports.http.errors import json_response
from footlights_transports.views.chat_feed.feeds import MAX_FEEDS

if TYPE_CHECKING:
    from starlette.requests import Request

    from footlights import InteractionSession
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.views.chat_feed.feeds import ChatFeeds

_HEADERS = {"cache-control": "no-store"}


class ChatRoutes:
    """The two routes of one server."""

    def __init__(self, access: SessionAccess, feeds: ChatFeeds) -> None:
        self._access = access
        self._feeds = feeds

    def routes(self) -> list[Route]:
        address = "/v1/sessions/{session_id}/chat"
        return [Route(address, self.read, methods=["GET"]), Route(address, self.drop, methods=["DELETE"])]

    async def read(self, request: Request) -> Response:
        user, session = self._session(request)
        limits = self._access.policy.limits
        messages = await self._feeds.read(session, MAX_FEEDS if user.game_server else limits.max_feeds_per_user)
        return json_response({"messages": [each.document for each in messages]}, headers=_HEADERS)

    async def drop(self, request: Request) -> Response:
        self._feeds.drop(self._session(request)[1].session_id)
        return Response(status_code=204)

    def _session(self, request: Request) -> tuple[User, InteractionSession]:
        """The user and the session of a request. Raises `Unauthorized`, `RateLimited` or `UnknownSession`."""
        user = authenticate(request, self._access)
        path = cast("dict[str, str]", request.path_params)
        return user, self._access.session(user, path["session_id"])
