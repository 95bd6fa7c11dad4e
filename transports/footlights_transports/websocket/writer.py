"""What one connection is sent. All that many tasks gave while the wire was busy goes out in one piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from trio.lowlevel import ParkingLot

from footlights_transports.websocket.stream import text_frames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from trio_websocket import WebSocketConnection

    from footlights_transports.websocket.stream import WireStream

_MAX_ARRAY_BYTES = 262_144
"""An array of events is closed once it is so long. One event may be longer."""


GATHERING = 0.02
"""Who asked for batches gets one at most every so many seconds; what comes after a silence comes at once."""
LONGEST_GATHERING = 0.1
_GATHERING_FOR_LATENESS = 8


def gathering(late: float) -> float:
    """How long to gather, where the loop came so many seconds late to the last batch: the busier, the longer.

    For those for whom nobody else sends.
    """
    return min(max(GATHERING, late * _GATHERING_FOR_LATENESS), LONGEST_GATHERING)


class _Write:
    """One send, and those who wait for it."""

    __slots__ = ("is_done", "waiting")

    def __init__(self) -> None:
        self.is_done = False
        self.waiting = ParkingLot()


class FrameWriter:
    """Replies and notices as they are, events one by one or in arrays. `lose` is called when nothing can be sent."""

    def __init__(
        self, socket: WebSocketConnection, stream: WireStream, lose: Callable[[], None], *, in_batches: bool
    ) -> None:
        self._socket = socket
        self._stream = stream
        self._lose = lose
        self.in_batches = in_batches
        self._messages: list[bytes] = []
        self._events: list[bytes] = []
        self._next = _Write()
        self._is_sending = False
        self.due_at = 0.0
        """When the next batch may go out."""

    async def send(self, message: bytes) -> None:
        """Send a reply or a notice; returns when it is sent."""
        self._messages.append(message)
        await self._flush()

    async def send_events(self, encoded: Iterable[bytes]) -> None:
        """Send events; returns when they are sent."""
        self._events += encoded
        await self._flush()

    # -- at once, by one who sends for many

    @property
    def takes_at_once(self) -> bool:
        """Whether anything can be sent without waiting, ever."""
        return self._stream.takes_at_once

    @property
    def is_clear(self) -> bool:
        """Whether nobody is sending, so that what is put may be sent now."""
        return not self._is_sending and self._stream.is_clear

    def put_events(self, encoded: Iterable[bytes]) -> None:
        """These go out with the next send."""
        self._events += encoded

    def send_nowait(self) -> bool:
        """Send what was put, only while it is clear. Whether all of it is sent; the rest is left to `send_rest`."""
        if self.in_batches:
            self.due_at = trio.current_time() + GATHERING
        payloads = self._take_payloads()
        if self._socket.closed is None:
            try:
                return self._stream.send_nowait(text_frames(payloads))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
        self._lose()
        return False

    async def send_rest(self) -> None:
        """Send what `send_nowait` left."""
        if not self._stream.is_clear:
            await self._flush()

    # -- inside

    async def _flush(self) -> None:
        write = self._next
        while self._is_sending and not write.is_done:
            await write.waiting.park()
        if not write.is_done:
            await self._perform(write)

    async def _perform(self, write: _Write) -> None:
        """One of those who wait sends for all of them, and then wakes one of those who came meanwhile."""
        self._is_sending = True
        if self.in_batches and self._stream.is_clear:  # half a frame waits for nothing
            await self._gather()
        self._next = _Write()
        await self._send_frames(self._take_payloads())
        self._is_sending = False
        write.is_done = True
        if write.waiting:
            write.waiting.unpark_all()
        if self._next.waiting:
            self._next.waiting.unpark()

    async def _gather(self) -> None:
        """Wait until a batch is due. Answers alone are none: whoever asks all the time would never get one."""
        due = self.due_at
        is_early = trio.current_time() < due
        await trio.sleep_until(due)
        if self._events:
            now = trio.current_time()
            self.due_at = now + gathering(now - due if is_early else 0.0)

    def _take_payloads(self) -> list[bytes]:
        messages, events = self._messages, self._events
        self._messages, self._events = [], []
        return [*messages, *(arrays(events) if self.in_batches else events)]

    async def _send_frames(self, payloads: list[bytes]) -> None:
        if self._socket.closed is None:
            try:
                await self._stream.send_all(text_frames(payloads))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
            else:
                return
        self._lose()
        await trio.lowlevel.checkpoint()


def arrays(encoded: Iterable[bytes]) -> Iterator[bytes]:
    """The same events as JSON arrays, as few as may be."""
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
