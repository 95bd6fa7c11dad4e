"""A session's events as an HTTP response that goes on until the session is closed or the client goes away.

Losing the connection cancels nothing: the client comes back with the id of the last event that it got.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from starlette.responses import Response

from footlights.errors import Detached, FootlightsError
from footlights_transports.views.native.sse_cursor import Cursor
from footlights_transports.views.native.sse_stream import KEEP_ALIVE, SseWriter, notice
from footlights_transports.websocket.encodings import Encodings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeVar

    from starlette.types import Receive, Scope, Send

    from footlights import StreamEvent, Subscription

    _T = TypeVar("_T")

_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class OpenStreams:
    """Every event stream that is being sent. When the server goes away, each is sent what waits for it, and ends."""

    def __init__(self, encodings: Encodings | None = None) -> None:
        self.encodings = encodings or Encodings()
        self._leaving = False
        self._waits: dict[trio.CancelScope, None] = {}

    def leave(self) -> None:
        self._leaving = True
        for wait in self._waits:
            wait.cancel(reason="the server goes away")

    async def next_batch(self, stream: Subscription, patience: float) -> list[StreamEvent] | None:
        """What comes next: nothing at the end of the stream or after so many seconds of silence; None to leave."""
        while not (self._leaving and _would_wait(stream)):
            with trio.move_on_after(patience) as wait:
                self._waits[wait] = None
                try:
                    return await stream.receive_batch()
                finally:
                    del self._waits[wait]
            if not self._leaving:
                return []
        return None


class EventStream(Response):
    """The response. Entering the subscription may raise; then nothing was sent yet."""

    media_type = "text/event-stream"

    def __init__(
        self,
        subscription: Subscription,
        session_id: str,
        terminal_seen: frozenset[str],
        streams: OpenStreams,
        keep_alive: float,
        server_goes: Callable[[], bool] = lambda: False,
    ) -> None:
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._subscription = subscription
        self._session_id = session_id
        self._terminal_seen = terminal_seen
        self._streams = streams
        self._keep_alive = keep_alive
        self._server_goes = server_goes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._subscription as stream:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await while_connected(receive, lambda: self._pump(stream, send))
        # Not while the client is watched: the end of an answer looks as if it went away, and must not be cut short.
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pump(self, stream: Subscription, send: Send) -> None:
        async def put(text: bytes) -> None:
            await send({"type": "http.response.body", "body": text, "more_body": True})

        writer = SseWriter(Cursor(stream.cursor, self._terminal_seen), self._streams.encodings.encode)
        await put(writer.opening())
        try:
            while (batch := await self._streams.next_batch(stream, self._keep_alive)) is not None:
                if batch:
                    await put(writer.events(batch))
                    writer.forget_all_but(stream.cursor.keys())
                elif stream.is_exhausted:
                    if not self._server_goes():
                        await put(notice("ended", self._session_id))
                    break
                else:
                    await put(KEEP_ALIVE)
        except Detached as error:
            await put(notice("detached", self._session_id, error.reason))


def _would_wait(stream: Subscription) -> bool:
    return stream.is_empty and stream.outbox.detached is None and not stream.is_exhausted


async def while_connected(receive: Receive, work: Callable[[], Awaitable[_T]]) -> _T | None:
    """What the work returns or raises; None if the client goes away before, and then the work is cancelled."""
    result: _T | None = None
    refused: FootlightsError | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_cancel_when_gone, receive, nursery.cancel_scope)
        try:
            result = await work()
        except FootlightsError as error:  # carried around the nursery, which would wrap it
            refused = error
        nursery.cancel_scope.cancel(reason="the request is answered")
    if refused is not None:
        raise refused
    return result


async def _cancel_when_gone(receive: Receive, scope: trio.CancelScope) -> None:
    await receive()  # the body was read long ago, so this is the end
    scope.cancel(reason="the client is gone")
