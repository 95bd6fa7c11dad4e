"""The bytes of one WebSocket connection, and the frames that we write ourselves.

trio-websocket reads, shakes hands, answers pings and closes. Events do not pass through it: what waits is
written as many frames in one send, and its own way of one send a message would be most of the cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PING = b"\x89\x00"

_TEXT = 0x81
_TWO_BYTES_OF_LENGTH = 126
_EIGHT_BYTES_OF_LENGTH = 127
_NOTICEABLE = 0.1
"""A send that took so many seconds had to wait for the peer. That it ended is a sign of life."""


def text_frames(payloads: Iterable[bytes]) -> bytes:
    """One text frame for each payload, which must be UTF-8; one after the other, as a server sends them."""
    parts: list[bytes] = []
    for payload in payloads:
        size = len(payload)
        if size < _TWO_BYTES_OF_LENGTH:
            parts.append(bytes((_TEXT, size)))
        elif size < 1 << 16:
            parts.append(bytes((_TEXT, _TWO_BYTES_OF_LENGTH)) + size.to_bytes(2, "big"))
        else:
            parts.append(bytes((_TEXT, _EIGHT_BYTES_OF_LENGTH)) + size.to_bytes(8, "big"))
        parts.append(payload)
    return b"".join(parts)


class WireStream(trio.abc.Stream):
    """A stream that several tasks may send on: what each sends arrives in one piece.

    A send that was cut off leaves half a frame behind, so nothing is sent after it. `on_end` is called when
    nothing more will come.
    """

    def __init__(self, stream: trio.abc.Stream, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end
        self._lock = trio.Lock()
        self._is_torn = False
        self.alive_at = trio.current_time()
        """When the peer last gave a sign of life."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        began = trio.current_time()
        # Sending is a checkpoint anyway; another one here would be felt.
        if self._lock.locked():
            await self._lock.acquire()
        else:
            self._lock.acquire_nowait()
        try:
            if self._is_torn:
                raise trio.BrokenResourceError("A frame was cut off.")
            self._is_torn = True
            await self._stream.send_all(data)
            self._is_torn = False
        finally:
            self._lock.release()
        now = trio.current_time()
        if now - began > _NOTICEABLE:
            self.alive_at = now

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        data: bytes | bytearray = b""
        try:
            data = await self._stream.receive_some(max_bytes)
        finally:
            if not data:
                self._on_end()
        self.alive_at = trio.current_time()
        return data

    async def aclose(self) -> None:
        self._on_end()
        await self._stream.aclose()

    async def drain(self) -> None:
        """Read and forget what still comes: closing while bytes are unread could take back what was sent last."""
        try:
            if isinstance(self._stream, trio.abc.HalfCloseableStream):
                await self._stream.send_eof()
            while await self._stream.receive_some():
                pass
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
