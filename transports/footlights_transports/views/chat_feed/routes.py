"""Routes of the chat feed: read, follow or drop the messages of a session.

    GET    /v1/sessions/{session_id}/chat       the messages; as Server-Sent Events, also those to come
    DELETE /v1/sessions/{session_id}/chat       forget them

There is no route to write a message. The answer to an approval is a new turn, like everything else that a player says.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import orjson
from starlette.responses import Response

from footlights.errors import SessionClosed
from footlights_transports.http.errors import json_response
from footlights_transports.http.openapi import TEXT, answer, answer_in_forms, last_event_id, list_of, object_of, ref
from footlights_transports.http.operations import Operation
from footlights_transports.http.requests import path_of
from footlights_transports.http.sse import KEEP_ALIVE, SseResponse
from footlights_transports.views.chat_feed.feeds import MAX_FEEDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from footlights import InteractionSession
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.http.openapi import Json
    from footlights_transports.views.chat_feed.feeds import ChatFeeds, OpenFeed
    from footlights_transports.views.chat_feed.pure.feed import ChatMessage

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
_MAX_DIGITS = 15
_MESSAGES = {
    200: answer_in_forms(
        "The messages, the oldest first.",
        {
            "application/json": object_of({"messages": list_of(ref("ChatMessage"))}),
            "text/event-stream": {"description": "Each `data` is a ChatMessage, each `id` says where it stands."},
        },
    )
}
_LAST_ID = last_event_id("The id of the last message that you have.", TEXT)


class ChatRoutes:
    """The two routes of one server."""

    def __init__(self, access: SessionAccess, feeds: ChatFeeds, max_per_user: int) -> None:
        self._access = access
        self._feeds = feeds
        self.max_per_user = max_per_user

    @Operation("GET", _CHAT, _MESSAGES, (404,), parameters=[_LAST_ID])
    async def read_chat(self, request: Request, user: User) -> Response:
        """What people may be shown of the session, in messages: a list, or Server-Sent Events if you accept them. The
        feed keeps the newest messages, and may lose any of them: nothing depends on them.
        """
        session = self._session(request, user)
        limit = MAX_FEEDS if user.game_server else self.max_per_user
        if "text/event-stream" in request.headers.get("accept", ""):
            opened = self._feeds.open(session, limit)
            if opened is None:
                raise SessionClosed("The server is closing.")
            last_id, keep_alive = request.headers.get("last-event-id", ""), self._access.policy.limits.keep_alive
            return ChatStream(opened, _place(last_id, opened), partial(self._feeds.attend, opened), keep_alive)
        messages = await self._feeds.read(session, limit)
        return json_response({"messages": [each.document for each in messages]}, headers=_HEADERS)

    @Operation("DELETE", _CHAT, {204: answer("They are forgotten.")}, (404,))
    async def drop_chat(self, request: Request, user: User) -> Response:
        """Forget the messages."""
        self._feeds.drop(self._session(request, user).session_id)
        return Response(status_code=204)

    def _session(self, request: Request, user: User) -> InteractionSession:
        return self._access.session(user, path_of(request)["session_id"])


class ChatStream(SseResponse):
    """The messages of a feed, each with the feed and its place as the `id`, until the feed is over.

    id: 1700000000123.4
    data: {"timestamp":"...","role":"system","content":"The turn is committed."}
    """

    def __init__(self, opened: OpenFeed, place: int, attend: Callable[[], None], keep_alive: float) -> None:
        super().__init__(keep_alive)
        self._opened = opened
        self._place = place
        self._attend = attend

    @property
    def is_drained(self) -> bool:
        """Whether the client has all messages: it may come back for more."""
        return self._place == self._opened.feed.count

    def opening(self) -> bytes:
        return KEEP_ALIVE

    async def next_text(self) -> bytes | None:
        self._attend()
        feed = self._opened.feed
        if self.is_drained:
            if self._opened.is_over:
                return None
            await self._opened.wait_beyond(self._place)
        messages, self._place = feed.after(self._place), feed.count
        first = feed.count - len(messages) + 1
        return b"".join(self._sse(place, message) for place, message in enumerate(messages, first))

    def _sse(self, place: int, message: ChatMessage) -> bytes:
        return b"id: %d.%d\ndata: %b\n\n" % (self._opened.feed_id, place, orjson.dumps(message.document))


def _place(last_id: str, opened: OpenFeed) -> int:
    """The place after which to go on; the beginning without an id, or if it is that of another feed."""
    feed_id, _, place = last_id.partition(".")
    is_ours = feed_id == str(opened.feed_id) and place.isascii() and place.isdigit() and len(place) < _MAX_DIGITS
    return min(int(place), opened.feed.count) if is_ours else 0
