"""HTTP connection: HTTP/1.1 and nothing else, a rate limit, a send timeout, and a lingering close.

This module restricts Hypercorn in three ways. Hypercorn switches to HTTP/2 or WebSocket if a client asks for it; here
no frame of either is parsed. It shields its sends from cancellation, so a client that stops reading could hold it for
ever; here each piece of 64 KiB has a timeout, and `abort` ends the connection at once. It closes a connection while
the client may still be sending, which can destroy the response on its way; here the rest is read and discarded, within
limits (RFC 9112, 9.6).
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

import h11
import trio
from hypercorn.events import Closed, RawData, Updated
from hypercorn.protocol.events import Request
from hypercorn.protocol.h11 import STREAM_ID, H11Protocol
from hypercorn.protocol.http_stream import HTTPStream
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.tcp_server import MAX_RECV, TCPServer
from hypercorn.typing import ConnectionState

from footlights_transports.access.policy import RateLimiter
from footlights_transports.server.acceptor import PendingConnection

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from hypercorn.events import Event
    from hypercorn.typing import H11SendableEvent

    from footlights_transports.access.admission import Admission
    from footlights_transports.access.policy import User

_PIECE = 65_536
_LINGER_SECONDS = 2.0
_LINGER_BYTES = 16_777_216
"""Bytes that a client may still send, and time for it, if it was answered before it had sent its whole request."""
_READ_WHOLE = frozenset({h11.DONE, h11.MUST_CLOSE, h11.CLOSED})


class HttpConnection(PendingConnection):
    """The state of a connection besides its bytes. `on_served` is called when a user's request came over it.

    `user` is the one of the latest request with a valid token. `scope` is cancelled when the client sends nothing more
    and everything was answered.
    """

    stream: HttpStream
    server: LingeringServer | None = None

    def __init__(self, admission: Admission, on_served: Callable[[HttpConnection], None]) -> None:
        super().__init__()
        limits = admission.policy.limits
        self._admission = admission
        self._rate = RateLimiter(limits.commands_per_second, limits.command_burst, trio.current_time())
        self._on_served = on_served
        self._is_heard_out = False
        self._requests = 0

    def drop(self, reason: str) -> None:
        super().drop(reason)
        self.stream.abort()  # Hypercorn shields what it sends from cancellation

    def take_request(self) -> None:
        """Count one more request. Raises `RateLimited`."""
        self._rate.take(trio.current_time())

    def belong_to(self, user: User) -> None:
        """Count the connection for this user, who has sent a request over it. Raises `Busy` if that is one too many."""
        if user != self.user:
            self._admission.connect(user)
            self.leave()
            self.user = user
            self._on_served(self)

    def leave(self) -> None:
        """Count it for no user any more."""
        if self.user is not None:
            self._admission.disconnect(self.user)
            self.user = None

    async def want_body(self) -> None:
        """Send 100 (Continue) to a client that waits for it, because the body will be read."""
        assert self.server is not None, "a request comes over a server"
        await self.server.http.want_body()

    @contextmanager
    def answering(self) -> Generator[None]:
        """A context manager around the response to a request."""
        self._requests += 1
        try:
            yield
        finally:
            self._requests -= 1
            self._end_if_done()

    def hear_out(self) -> None:
        """The client sends nothing more."""
        self._is_heard_out = True
        self._end_if_done()

    def _end_if_done(self) -> None:
        # Hypercorn would keep the connection until its idle timeout.
        if self._is_heard_out and not self._requests:
            self.scope.cancel(reason="the client is gone")


class _Connection(h11.Connection):
    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        # Data after the last request of a connection is no reason to break off the response.
        if self.their_state is h11.MUST_CLOSE and self.trailing_data[0]:
            return h11.PAUSED
        return super().next_event()


class _Http1(H11Protocol):
    async def _check_protocol(self, event: h11.Request) -> None:
        """Do not switch to HTTP/2, as Hypercorn would. The guard refuses such a request."""

    async def _create_stream(self, request: h11.Request) -> None:
        """Create the stream of a request. Hypercorn's method may begin a WebSocket, and fails at non-ASCII headers."""
        self.stream = HTTPStream(
            self.app,
            self.config,
            self.context,
            self.task_group,
            self.ssl,
            self.client,
            self.server,
            self.stream_send,
            STREAM_ID,
        )
        headers, version, method = list(request.headers), request.http_version.decode(), request.method.decode().upper()
        state = self.connection_state
        await self.stream.handle(Request(STREAM_ID, headers, version, method, request.target, state))
        self.keep_alive_requests += 1

    async def _send_h11_event(self, event: H11SendableEvent) -> None:
        # Hypercorn would send 100 (Continue) for every request, also for one that the guard refuses.
        if not isinstance(event, h11.InformationalResponse):
            await super()._send_h11_event(event)

    async def want_body(self) -> None:
        if self.connection.they_are_waiting_for_100_continue:
            await super()._send_h11_event(h11.InformationalResponse(status_code=100, headers=[]))

    @property
    def is_answering(self) -> bool:
        """Whether a response was begun and is not finished."""
        return self.stream is not None and self.connection.our_state is h11.SEND_BODY

    @property
    def has_read_everything(self) -> bool:
        """Whether the client has sent its whole request, and nothing after it."""
        return self.connection.their_state in _READ_WHOLE and not self.connection.trailing_data[0]


class LingeringServer(TCPServer):
    """Hypercorn's TCP server for one connection, with a lingering close."""

    http: _Http1

    async def run(self) -> None:
        self._lingering = False
        self._reading = trio.CancelScope()
        self._parsing = trio.CancelScope()
        try:
            async with TaskGroup() as self._task_group:
                state = ConnectionState(self.state)
                group, send = self._task_group, self.protocol_send
                self.http = _Http1(self.app, self.config, self.context, group, state, False, None, None, send)
                size = self.config.h11_max_incomplete_size
                self.http.connection = _Connection(h11.SERVER, max_incomplete_event_size=size)
                self.protocol = cast("Any", self.http)
                await self.protocol_send(Updated(idle=True))
                await self._read_data()
        finally:
            await self._close()

    async def protocol_send(self, event: Event) -> None:
        if not isinstance(event, Closed):
            await super().protocol_send(event)
            return
        self._lingering = True
        if self.http.has_read_everything:
            await super().protocol_send(event)
        elif not self.http.is_answering:  # else this is called again at the end of the response
            async with self.send_lock:
                await self.stream.send_eof()
            self._reading.deadline = trio.current_time() + _LINGER_SECONDS
            await self.protocol.handle(event)
        self._parsing.cancel(reason="the rest is discarded")

    async def _read_data(self) -> None:
        discarded = 0
        with self._reading:
            while discarded <= _LINGER_BYTES:
                try:
                    data = bytes(await self.stream.receive_some(MAX_RECV))
                except (trio.ClosedResourceError, trio.BrokenResourceError):
                    break
                if self._lingering:
                    discarded += len(data)
                else:
                    with trio.CancelScope() as self._parsing:
                        await self.protocol.handle(RawData(data))
                if not data:
                    break
        await self.protocol.handle(Closed())


class HttpStream:
    """The byte stream of a connection, plain or TLS, with a timeout for each piece that is sent."""

    def __init__(
        self,
        stream: trio.SocketStream | trio.SSLStream[trio.SocketStream],
        send_timeout: float,
        on_end: Callable[[], None],
    ) -> None:
        self._stream = stream
        self._send_timeout = send_timeout
        self._on_end = on_end
        self.socket = stream.socket if isinstance(stream, trio.SocketStream) else stream.transport_stream.socket

    async def send_all(self, data: bytes) -> None:
        view = memoryview(data)
        for start in range(0, len(view), _PIECE):
            with trio.move_on_after(self._send_timeout) as patience:
                await self._stream.send_all(view[start : start + _PIECE])
            if patience.cancelled_caught:
                self.abort()
                raise trio.BrokenResourceError("The client reads nothing.")

    async def receive_some(self, max_bytes: int) -> bytes | bytearray:
        data: bytes | bytearray = b""
        try:
            data = await self._stream.receive_some(max_bytes)
        finally:
            if not data:
                self._on_end()
        return data

    async def send_eof(self) -> None:
        if isinstance(self._stream, trio.SocketStream):
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self._stream.send_eof()

    async def aclose(self) -> None:
        with trio.move_on_after(self._send_timeout):
            await self._stream.aclose()

    def abort(self) -> None:
        """Close the socket now, also during a send or a receive."""
        self.socket.close()
