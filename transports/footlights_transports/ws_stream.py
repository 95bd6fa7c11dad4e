"""The bytes of one WebSocket connection, and the frames that we write ourselves.

trio-websocket reads, shakes hands, answers pings and closes. Events do not pass through it: what waits is
written as many frames in one send, and its own way of one send a message would be most of the cost.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

from footlights_transports.ws_frames import FrameGate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PING = b"\x89\x00"

_TEXT = 0x81
_CLOSE = b"\x88"
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


def close_frame(code: int, reason: str) -> bytes:
    """The last frame that is sent. The reason is short."""
    payload = code.to_bytes(2, "big") + reason.encode()
    return _CLOSE + bytes((len(payload),)) + payload


class WireStream(trio.abc.Stream):
    """A stream that several tasks may send on: what each sends arrives in one piece.

    A send that was cut off leaves half a frame behind, so nothing is sent after it. What is received ends where a
    message is too much. `on_end` is called when nothing more will come. Closing it leaves the stream below open, so
    that a last word can be said by `refuse`.
    """

    def __init__(self, stream: trio.abc.Stream, on_end: Callable[[], None], max_message_bytes: int) -> None:
        self._stream = stream
        self._on_end = on_end
        self._frames = FrameGate(max_message_bytes)
        self._socket = _socket_below(stream)
        self._lock = trio.Lock()
        self._unsent = b""
        """What `send_nowait` could not send. It goes out before anything else."""
        self._is_torn = False
        self._is_closed = False
        self._receiving = trio.CancelScope()
        self.has_said_goodbye = False
        """Whether a close frame was sent."""
        self.alive_at = trio.current_time()
        """When the peer last gave a sign of life."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send it. A checkpoint only if it has to wait: whoever is given what is sent here has waited for that."""
        began = trio.current_time()
        if self._lock.locked():
            await self._lock.acquire()
        else:
            self._lock.acquire_nowait()
        try:
            self._check_is_whole()
            self._is_torn = True
            says_goodbye = bytes(data[:1]) == _CLOSE
            if self._unsent:
                data, self._unsent = self._unsent + data, b""
            sent = self._send_at_once(data)
            if sent < len(data):
                await self._stream.send_all(memoryview(data)[sent:])
            self._is_torn = False
            self.has_said_goodbye = says_goodbye
        finally:
            self._lock.release()
        now = trio.current_time()
        if now - began > _NOTICEABLE:
            self.alive_at = now

    @property
    def takes_at_once(self) -> bool:
        """Whether `send_nowait` can be used at all: not if what is sent is enciphered on the way."""
        return self._socket is not None

    @property
    def is_clear(self) -> bool:
        """Whether nobody is in the middle of a frame, and nothing is left of what was sent."""
        return not self._is_torn and not self._unsent

    def send_nowait(self, data: bytes) -> bool:
        """Whether all of it is sent; the rest goes out with the next send. Only while it is clear."""
        self._check_is_whole()
        self._unsent = data[self._send_at_once(data) :]
        return not self._unsent

    def _check_is_whole(self) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError("The connection is closed.")
        if self._is_torn:
            raise trio.BrokenResourceError("A frame was cut off.")

    def _send_at_once(self, data: bytes | bytearray | memoryview) -> int:
        """How many bytes the system takes now. trio would go once around its loop for every send."""
        if self._socket is None:
            return 0
        try:
            return os.write(self._socket.fileno(), data)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise trio.BrokenResourceError("The connection is gone.") from error

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        passed = b""
        try:
            while not passed and not self._frames.is_too_much:
                data = await self._receive(max_bytes)
                if not data:
                    break
                self.alive_at = trio.current_time()
                passed = self._frames.pass_on(data)
        finally:
            if not passed:
                self._on_end()
        return passed

    async def _receive(self, max_bytes: int | None) -> bytes | bytearray:
        if not self._is_closed:
            with trio.CancelScope() as self._receiving:
                return await self._stream.receive_some(max_bytes)
        raise trio.ClosedResourceError("The connection is closed.")

    @property
    def was_sent_too_much(self) -> bool:
        """Whether the peer sent a message of more bytes or pieces than it may."""
        return self._frames.is_too_much

    async def aclose(self) -> None:
        self._is_closed = True
        self._receiving.cancel(reason="the connection is closed")
        self._on_end()
        await trio.lowlevel.checkpoint()

    async def refuse(self, code: int, reason: str) -> None:
        """Say why this ends. Then read and forget what still comes: closing before could take back what was said."""
        try:
            if not (self._is_torn or self._unsent):
                await self._stream.send_all(close_frame(code, reason))
            if isinstance(self._stream, trio.abc.HalfCloseableStream):
                await self._stream.send_eof()
            while await self._stream.receive_some():
                pass
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass


def _socket_below(stream: trio.abc.Stream) -> trio.socket.SocketType | None:
    return stream.socket if os.name == "posix" and isinstance(stream, trio.SocketStream) else None
