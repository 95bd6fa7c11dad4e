"""One connection of the HTTP server: how many requests it may make, and how long it may take nothing.

Hypercorn shields what it sends from every cancel, so a client that stops reading could hold it for ever. Here each
piece has its time, and `abort` ends the connection at once. It would also speak HTTP/2 with anybody who begins with it,
and keep who then asks for nothing: here that has its time too.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.trio.tcp_server import TCPServer

from footlights_transports.gate import Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from hypercorn.events import Event

    from footlights_transports.desk import FrontDesk
    from footlights_transports.gate import User

_PIECE = 65_536


class HttpConnection:
    """What is known of a connection besides its bytes. `on_first_request` may raise `Busy`."""

    user: User | None = None
    """Whose it is: the user of its latest request with a token that counts."""

    def __init__(self, desk: FrontDesk, on_first_request: Callable[[HttpConnection], None]) -> None:
        limits = desk.gate.limits
        self._desk = desk
        self._pace = Pace(limits.commands_per_second, limits.command_burst, trio.current_time())
        self._on_first_request = on_first_request
        self._is_silent = True
        self._is_heard_out = False
        self._requests = 0
        self._handshake_timeout = limits.handshake_timeout
        self.scope = trio.CancelScope()
        """Cancelled when the client sends nothing more and everything was answered."""

    def take_request(self) -> None:
        """Raises `RateLimited` or `Busy`."""
        if self._is_silent:
            self._on_first_request(self)
            self._is_silent = False
        self._pace.take(trio.current_time())

    def belong_to(self, user: User) -> None:
        """A request of this user's came over it. Raises `Busy` if that one has connections enough."""
        if user != self.user:
            self._desk.connect(user)
            self.leave()
            self.user = user

    def leave(self) -> None:
        """It is nobody's any more."""
        if self.user is not None:
            self._desk.disconnect(self.user)
            self.user = None

    @contextmanager
    def answering(self) -> Generator[None]:
        """Around the answer to a request."""
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

    def speak_http_2(self) -> None:
        """The client speaks HTTP/2: it has time to ask and to be refused, and no more."""
        self.scope.deadline = min(self.scope.deadline, trio.current_time() + self._handshake_timeout)

    def _end_if_done(self) -> None:
        # Hypercorn would keep it until it has been idle for long enough.
        if self._is_heard_out and not self._requests:
            self.scope.cancel(reason="the client is gone")


class HttpServer(TCPServer):
    """Hypercorn's side of a connection. Whatever it says in HTTP/2 is told to `on_http_2` first."""

    on_http_2: Callable[[], None]

    async def protocol_send(self, event: Event) -> None:
        if isinstance(self.protocol.protocol, H2Protocol):
            self.on_http_2()
        await super().protocol_send(event)


class HttpStream:
    """The bytes of a connection, as Hypercorn wants them; it does not learn whether they are encrypted."""

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
                raise trio.BrokenResourceError("The client takes nothing.")

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
            await self._stream.send_eof()

    async def aclose(self) -> None:
        with trio.move_on_after(self._send_timeout):
            await self._stream.aclose()

    def abort(self) -> None:
        """End it now, whoever is sending or receiving."""
        self.socket.close()
