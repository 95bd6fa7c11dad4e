"""Event stream of a session as an HTTP response, until the session is closed or the client disconnects.

A lost connection cancels no turn: the client comes back with the id of the last event that it got.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights import wire
from footlights.errors import Detached
from footlights.stream.cursor import Cursor
from footlights_transports.http.sse import SseResponse
from footlights_transports.views.native.sse_stream import SseWriter, notice

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from footlights import StreamEvent, Subscription


class EventStream(SseResponse):
    """The response. Entering the subscription may raise; nothing was sent then."""

    _writer: SseWriter

    def __init__(
        self,
        subscription: Subscription,
        session_id: str,
        terminal_seen: Collection[str],
        keep_alive: float,
        *,
        encode: Callable[[StreamEvent], bytes] = wire.encode,
        server_goes: Callable[[], bool] = lambda: False,
        stall: float = 0.0,
    ) -> None:
        super().__init__(keep_alive)
        self._stream = self.subscription = subscription
        self._session_id = session_id
        self._terminal_seen = terminal_seen
        self._encode = encode
        self._server_goes = server_goes
        self._is_over = False
        self._reads_from = trio.current_time() + stall

    @property
    def is_drained(self) -> bool:
        """Whether nothing is left to send, the notices included."""
        stream = self._stream
        return stream.is_empty and stream.outbox.detached is None and not stream.is_exhausted

    def opening(self) -> bytes:
        # The cursor is known once the subscription was entered.
        self._writer = SseWriter(Cursor(dict(self._stream.cursor), set(self._terminal_seen)), self._encode)
        return self._writer.opening()

    async def next_text(self) -> bytes | None:
        stream = self._stream
        if self._is_over:
            return None
        if trio.current_time() < self._reads_from:
            await trio.sleep_until(self._reads_from)
        try:
            batch = await stream.receive_batch()
        except Detached as error:
            self._is_over = True
            return notice("detached", self._session_id, error.reason)
        if not batch:
            self._is_over = True
            return None if self._server_goes() else notice("ended", self._session_id)
        text = self._writer.events(batch)
        if self._writer.has_committed:
            self._writer.forget_all_but(stream.cursor.keys())
        return text
