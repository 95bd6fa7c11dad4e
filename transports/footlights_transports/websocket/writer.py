"""Coalescing writer of one connection: everything that is put during a send goes out with the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights_transports.websocket.stream import text_frames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from trio_websocket import WebSocketConnection

    from footlights_transports.websocket.stream import WireStream

GATHERING = 0.02
"""Seconds between two batches to a client that asked for batches. After silence, one is sent at once."""

_MAX_ARRAY_BYTES = 262_144
"""An array of events is closed once it is so long. A single event may be longer."""


class FrameWriter:
    """Frames of one connection: replies and notices as they are, events one by one or in arrays.

    `lose` is called when nothing can be sent any more.
    """

    def __init__(
        self, socket: WebSocketConnection, stream: WireStream, lose: Callable[[], None], *, in_batches: bool
    ) -> None:
        self._socket = socket
        self._stream = stream
        self._lose = lose
        self.in_batches = in_batches
        self._messages: list[bytes] = []
        self._events: list[bytes] = []
        self.due_at = 0.0
        """When the next batch may be sent."""

    async def send(self, message: bytes) -> None:
        """Send a reply or a notice; returns when it is sent."""
        self._messages.append(message)
        await self.flush()

    async def send_events(self, encoded: Iterable[bytes]) -> None:
        """Send events; returns when they are sent."""
        self._events += encoded
        await self.flush()

    def put_events(self, encoded: Iterable[bytes]) -> None:
        """Add events to the next send."""
        self._events += encoded

    @property
    def is_clear(self) -> bool:
        """Whether no task is sending and nothing is left of the last send."""
        return self._stream.is_clear

    def send_nowait(self) -> bool:
        """Send what was put as far as the socket takes it now. Only while it is clear.

        Returns whether everything is sent; else `flush` sends the rest.
        """
        if self.in_batches:
            self.due_at = trio.current_time() + GATHERING
        frames = self._take_frames()
        if self._socket.closed is None:
            try:
                return self._stream.send_nowait(frames)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
        self._lose()
        return False

    async def flush(self) -> None:
        """Return when everything that was put is sent. A checkpoint only if it has to wait.

        Tasks wait for their turn in the order in which they came. The first sends for all of them.
        """
        if self._socket.closed is None:
            try:
                await self._stream.send_next(self._take_frames)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
            else:
                return
        self._lose()
        await trio.lowlevel.checkpoint()

    def _take_frames(self) -> bytes:
        messages, events = self._messages, self._events
        self._messages, self._events = [], []
        return text_frames([*messages, *(arrays(events) if self.in_batches else events)])


def arrays(encoded: Iterable[bytes]) -> Iterator[bytes]:
    """The events as JSON arrays, as few as the size limit allows."""
    waiting: list[bytes] = []
    size = 0
    for event in encoded:
        waiting.append(event)
        size += len(event)
        if size >= _MAX_ARRAY_BYTES:
            yield b"[" + b",".join(waiting) + b"]"
            waiting, size = [], 0
    if waiting:
        yield b"[" + b",".join(waiting) + b"]"
