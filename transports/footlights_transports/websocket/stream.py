"""Byte stream of one WebSocket connection, and the frames that this server writes itself.

trio-websocket reads, performs the handshake, answers pings and closes. Events do not pass through it: it would send
each message by itself, which would be most of the cost. Here all waiting frames are written in one send.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

from footlights_transports.websocket.frame_gate import MAX_AT_ONCE, FrameGate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from footlights.token_bucket import TokenBucket

FRAME_COST = 1_024
"""Charge for a frame besides its bytes: handling an empty one costs about as much as a kilobyte of text."""
PING = b"\x89\x00"

_TEXT = 0x81
_CLOSE = b"\x88"
_TWO_BYTES_OF_LENGTH = 126
_EIGHT_BYTES_OF_LENGTH = 127
_NOTICEABLE = 0.1
"""A send that took so many seconds waited for the peer, so its end is a sign of life."""


def text_frames(payloads: Iterable[bytes]) -> bytes:
    """One text frame, as servers send them, for each payload, which must be UTF-8."""
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
    """A close frame. The reason must be short."""
    payload = code.to_bytes(2, "big") + reason.encode()
    return _CLOSE + bytes((len(payload),)) + payload


class WireStream(trio.abc.Stream):
    """A stream on which several tasks may send: the data of each send stays in one piece.

    A cancelled send leaves half a frame behind, so nothing is sent after it. Received data is the head of the handshake
    and, after `let_frames_pass`, frames; it ends at a message that is too large. `on_end` is called when nothing more
    will be received. Closing it leaves the stream below open, so that `refuse` can still send a close frame.
    """

    def __init__(self, stream: trio.abc.Stream, on_end: Callable[[], None], max_message_bytes: int) -> None:
        self._stream = stream
        self._on_end = on_end
        self._frames = FrameGate(max_message_bytes)
        self._socket = _socket_below(stream)
        self._lock = trio.Lock()
        self._unsent = b""
        """The rest of a `send_nowait`. It is sent before anything else."""
        self._is_torn = False
        self._is_closed = False
        self._receiving = trio.CancelScope()
        self._is_accepted = trio.Event()
        self._budgets: tuple[TokenBucket, ...] = ()
        self.has_said_goodbye = False
        """Whether a close frame was sent."""
        self.alive_at = trio.current_time()
        """When the peer last gave a sign of life."""

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send it. A checkpoint only if it has to wait, because the callers have waited for what they send."""
        await self.send_next(lambda: bytes(data))

    async def send_next(self, take: Callable[[], bytes]) -> None:
        """Send what `take` returns when no other task is sending, and before it what `send_nowait` left."""
        began = trio.current_time()
        if self._lock.locked():
            await self._lock.acquire()
        else:
            self._lock.acquire_nowait()
        try:
            self._check_is_whole()
            data = take()
            if not (data or self._unsent):
                return
            says_goodbye = data[:1] == _CLOSE
            data, self._unsent = self._unsent + data, b""
            self._is_torn = True
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
    def is_clear(self) -> bool:
        """Whether no task is in the middle of a send, and nothing is left of what was sent."""
        return not self._is_torn and not self._unsent

    def send_nowait(self, data: bytes) -> bool:
        """Send what the socket takes now; the rest goes out with the next send. Only while it is clear.

        Returns whether all of it is sent. A stream that is not a plain socket, such as TLS, takes nothing now.
        """
        self._check_is_whole()
        self._unsent = data[self._send_at_once(data) :]
        return not self._unsent

    def _check_is_whole(self) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError("The connection is closed.")
        if self._is_torn:
            raise trio.BrokenResourceError("A frame was cut off.")

    def _send_at_once(self, data: bytes | bytearray | memoryview) -> int:
        """Write what the socket takes now; return how many bytes. trio would pass a checkpoint for every send."""
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

    def let_frames_pass(self, *budgets: TokenBucket) -> None:
        """Accept frames from now on. Each byte, and `FRAME_COST` for each frame, is charged to these budgets.

        While one of them is in debt, nothing is read, so the peer is slowed down.
        """
        self._budgets = budgets
        self._is_accepted.set()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        passed: bytes | None = None
        try:
            if not self._is_closed:
                with trio.CancelScope() as self._receiving:
                    passed = await self._receive_frames(max_bytes)
        finally:
            if not passed:
                self._on_end()
        if passed is None:
            raise trio.ClosedResourceError("The connection is closed.")
        return passed

    async def _receive_frames(self, max_bytes: int | None) -> bytes:
        """A part of the head, or some frames; no bytes at the end."""
        if not self._frames.is_in_head and not self._is_accepted.is_set():
            # wsproto would drop frames that arrive before the handshake is answered.
            await self._is_accepted.wait()
        data: bytes | bytearray = b""
        while True:
            await self._wait_until_paid()
            passed = self._frames.pass_on(data)
            if passed or self._frames.is_too_much:
                self._charge(FRAME_COST * self._frames.frames_passed)
                return passed
            data = await self._stream.receive_some(max_bytes)
            if not data:
                return b""
            self._charge(len(data))

    def _charge(self, amount: int) -> None:
        self.alive_at = now = trio.current_time()
        for each in self._budgets:
            each.settle(0, amount, now)

    async def _wait_until_paid(self) -> None:
        """Wait while there is a debt. Also a checkpoint if more frames may wait: one peer must not hold the loop."""
        now = trio.current_time()
        delay = max((each.seconds_in_debt(now) for each in self._budgets), default=0.0)
        if delay or self._frames.frames_passed == MAX_AT_ONCE:
            self.alive_at = now + delay  # nothing is read meanwhile, so silence is no sign
            await trio.sleep(delay)

    @property
    def was_sent_too_much(self) -> bool:
        """Whether the peer sent a message with more bytes or fragments than allowed."""
        return self._frames.is_too_much

    async def aclose(self) -> None:
        self._is_closed = True
        self._receiving.cancel(reason="the connection is closed")
        self._on_end()
        await trio.lowlevel.checkpoint()

    async def refuse(self, code: int, reason: str) -> None:
        """Send a close frame, then discard what still arrives: closing before could destroy the frame on its way."""
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
