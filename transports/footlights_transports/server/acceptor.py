"""Acceptor: the lifetime of the connections of one server. The WebSocket and the HTTP server are acceptors.

It listens, bounds the connections that are pending, closes those of revoked tokens, and shuts down in order: when it is
cancelled, it accepts nothing more, and connections have `goodbye` seconds to end.
"""

from __future__ import annotations

import os
import select
import socket
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import trio

from footlights_transports.http.h11_errors import hold_no_input
from footlights_transports.server.listening import Listening

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from footlights_transports.access.admission import Admission
    from footlights_transports.access.policy import User, WireLimits

_MAX_ACCEPTED_IN_A_STEP = 256
_PAUSE_WITHOUT_RESOURCES = 0.1
_HUNG_UP = getattr(select, "POLLRDHUP", 0)
_MAX_LINE = 16_384


class PendingConnection:
    """A connection whose client has shown no valid token or, without tokens, made no whole request."""

    user: User | None = None
    """The user of the connection; None until it is admitted."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()

    def drop(self, reason: str) -> None:
        """End the connection at once."""
        self.scope.cancel(reason=reason)


class Acceptor(ABC):
    """Base class of a server: owns its connections. A connection that fails ends no other."""

    connections: trio.Nursery
    """The nursery in which `serve` must run. Set by `run`."""

    def __init__(self, admission: Admission, goodbye: float) -> None:
        self.admission = admission
        self.goodbye = goodbye
        self.pending: dict[PendingConnection, None] = {}
        """Pending connections, the oldest first."""
        self.closing = trio.Event()
        self._opened = trio.Event()

    @abstractmethod
    async def serve(self, stream: trio.SocketStream) -> None:
        """Serve one connection, from its first byte to its last."""

    @abstractmethod
    def revoke(self, users: Collection[User]) -> None:
        """Close the connections of users whose tokens were revoked."""

    @abstractmethod
    async def leave(self) -> None:
        """Ask all connections to end, because the server shuts down."""

    def start_tasks(self, nursery: trio.Nursery) -> None:  # noqa: B027 - optional
        """Start tasks that end when the server shuts down."""

    def start_senders(self, nursery: trio.Nursery) -> None:  # noqa: B027 - optional
        """Start tasks that connections need, and which outlive them."""

    @property
    def limits(self) -> WireLimits:
        """The limits now: a reload may change them."""
        return self.admission.policy.limits

    async def listen(self, host: str, port: int, task_status: trio.TaskStatus[Listening]) -> None:
        """Serve at this address until cancelled. Port 0 is any free port.

        Raises `RegistrationError` for an address that the policy forbids, and `OSError` for one that cannot be bound.
        """
        hold_no_input()
        self.admission.policy.check_address(host)
        listeners = [_plain(each) for each in await trio.open_tcp_listeners(port, host=host)]
        if port == 0:
            # A name may have several addresses, and each would get a port of its own.
            _close(listeners[1:])
            del listeners[1:]

        async def accept() -> None:
            with trio.CancelScope() as accepting:
                task_status.started(Listening(listeners[0].getsockname()[1], accepting.cancel))
                try:
                    async with trio.open_nursery() as nursery:
                        for each in listeners:
                            nursery.start_soon(self._accept_from, each)
                finally:
                    _close(listeners)

        try:
            await self.run(accept)
        finally:
            _close(listeners)

    async def _accept_from(self, listener: socket.socket) -> None:
        """Accept clients, at most one that is still there in each step of the event loop.

        Those that hung up are closed before anything is built for them. Otherwise whoever only connects and hangs up,
        which costs almost nothing, makes everybody else wait in the kernel's queue.
        """
        while True:
            await trio.lowlevel.wait_readable(listener)
            for _ in range(_MAX_ACCEPTED_IN_A_STEP):
                try:
                    client, _ = listener.accept()
                except (BlockingIOError, ConnectionError):
                    break
                except OSError as error:  # there are no more file descriptors, or no more memory for sockets
                    self.admission.incidents.refused("connection", os.strerror(error.errno or 0))
                    await trio.sleep(_PAUSE_WITHOUT_RESOURCES)
                    break
                if not _has_hung_up(client):
                    client.setblocking(False)
                    self.give(client)
                    break
                client.close()

    def give(self, client: socket.socket) -> None:
        """Serve a connection that was accepted. It is closed at its end."""
        self.connections.start_soon(self.serve_socket, client)

    async def serve_socket(self, client: socket.socket) -> None:
        """Serve one connection, and close it."""
        with client:
            await self.serve(trio.SocketStream(trio.socket.from_stdlib_socket(client)))

    async def wait_for_connections(self, task_status: trio.TaskStatus[None]) -> None:
        """Serve what is given, until cancelled."""

        async def accept() -> None:
            task_status.started()
            await trio.lowlevel.checkpoint()

        await self.run(accept)

    async def run(self, accept: Callable[[], Awaitable[None]]) -> None:
        """Accept, and go on when that ends, until cancelled; then wait for the connections to end."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_connections, name="connections")
            self.admission.revocation_listeners.append(self.revoke)
            try:
                self.start_tasks(nursery)
                await self._opened.wait()
                await accept()
                await trio.sleep_forever()
            finally:
                self.admission.revocation_listeners.remove(self.revoke)
                self.closing.set()

    async def _keep_connections(self) -> None:
        with trio.CancelScope(shield=True) as patience:
            async with trio.open_nursery() as senders:
                self.start_senders(senders)
                async with trio.open_nursery() as self.connections:
                    self._opened.set()
                    await self.closing.wait()
                    patience.deadline = trio.current_time() + self.goodbye
                    await self.leave()
                senders.cancel_scope.cancel(reason="every connection has ended")

    def add_pending(self, connection: PendingConnection) -> None:
        """Add a connection, and drop the one that has been pending longest if there are too many.

        If newcomers were dropped, clients that connect and send nothing, or half a request, would lock out all others.
        An honest client has shown its token long before so many others have come.
        """
        if len(self.pending) >= self.limits.max_handshakes:
            oldest = next(iter(self.pending))
            del self.pending[oldest]
            oldest.drop("too many connections are pending")
        self.pending[connection] = None

    def remove_pending(self, connection: PendingConnection) -> None:
        """The connection is pending no more."""
        self.pending.pop(connection, None)


def _plain(listener: trio.SocketListener) -> socket.socket:
    plain = socket.socket(fileno=listener.socket.detach())
    plain.setblocking(False)
    return plain


def _has_hung_up(client: socket.socket) -> bool:
    """Whether a new client sends nothing more and has not sent even one line. Only Linux tells."""
    if not _HUNG_UP:
        return False
    ready = select.poll()
    ready.register(client, _HUNG_UP)
    try:
        if not ready.poll(0) or b"\n" in client.recv(_MAX_LINE, socket.MSG_PEEK | socket.MSG_DONTWAIT):
            return False
        client.recv(_MAX_LINE, socket.MSG_DONTWAIT)  # closing a socket with unread input would reset the connection
    except OSError:
        pass
    return True


def _close(listeners: Sequence[socket.socket]) -> None:
    for each in listeners:
        each.close()
