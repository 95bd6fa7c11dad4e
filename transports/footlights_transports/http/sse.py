"""Server-Sent Events response: one class for every stream of events that a route answers with.

A subclass says what is written (`next_text`); for native events that is `views/native/events.py`. This class does the
rest: it sends the headers, sends a comment when nothing was written for `keep_alive` seconds, stops when the client
disconnects, and ends when the server shuts down.
There is no queue here: `next_text` is called again only when the text before was sent, so a slow client
applies backpressure to the source of the subclass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import TYPE_CHECKING

import trio
from starlette.responses import Response

from footlights_transports.http.disconnect import while_connected

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from starlette.types import Receive, Scope, Send

STREAMS = "footlights.streams"
"""Key of the server's `OpenStreams` in the state of a scope."""
KEEP_ALIVE = b":\n\n"
"""A comment. Clients ignore it; it shows that the connection is alive."""

_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class OpenStreams:
    """The responses of one server that wait for events, so that shutdown can wake them."""

    def __init__(self) -> None:
        self.is_leaving = False
        self.waits: dict[trio.CancelScope, None] = {}

    def leave(self) -> None:
        """The server shuts down: each response that is drained ends, the others when they are."""
        self.is_leaving = True
        for wait in self.waits:
            wait.cancel(reason="the server shuts down")


class SseResponse(Response, ABC):
    """A response of Server-Sent Events. Subclasses give the text."""

    media_type = "text/event-stream"
    subscription: AbstractAsyncContextManager[object] = nullcontext()
    """Entered before the first byte is sent, so that what it raises can still become an error response."""

    def __init__(self, keep_alive: float) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._keep_alive = keep_alive

    def opening(self) -> bytes:
        """Text to send first, at once."""
        return b""

    @abstractmethod
    async def next_text(self) -> bytes | None:
        """The text to send next, waiting for it if necessary; None at the end.

        Empty text sends nothing, and the time until the next keep-alive begins anew. A cancelled call loses nothing.
        """

    @property
    def is_drained(self) -> bool:
        """Whether the stream may end now because the server shuts down; never, if it then ends by itself."""
        return False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        streams: OpenStreams = scope.get("state", {}).get(STREAMS) or OpenStreams()
        async with self.subscription:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await while_connected(receive, lambda: self._pump(send, streams))
        # Outside `while_connected`: the end of a response looks like a disconnect, and must not be cancelled by it.
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pump(self, send: Send, streams: OpenStreams) -> None:
        text: bytes | None = self.opening()
        while text is not None:
            if text:
                await send({"type": "http.response.body", "body": text, "more_body": True})
            text = await self._next_or_keep_alive(streams)

    async def _next_or_keep_alive(self, streams: OpenStreams) -> bytes | None:
        while not (streams.is_leaving and self.is_drained):
            with trio.move_on_after(self._keep_alive) as wait:
                streams.waits[wait] = None
                try:
                    return await self.next_text()
                finally:
                    del streams.waits[wait]
            if not streams.is_leaving:
                return KEEP_ALIVE
        return None
