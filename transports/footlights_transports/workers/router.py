"""Router: accepts connections, looks at their first bytes without taking them, and passes them to the workers.

It parses no HTTP and carries no event: a connection that was passed is the worker's, whole. The bytes wait in the
socket (MSG_PEEK) until its descriptor has been passed (SCM_RIGHTS), so this costs nothing for each token. Clients that
send nothing, or half a line, have the limits of every server: `handshake_timeout` and `max_handshakes`.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import trio

from footlights_transports.server.acceptor import Acceptor, PendingConnection
from footlights_transports.workers.first_bytes import ENOUGH, is_for_the_server, world_in
from footlights_transports.workers.worker import HTTP

if TYPE_CHECKING:
    from collections.abc import Collection

    from footlights_transports.access.admission import Admission
    from footlights_transports.access.policy import User
    from footlights_transports.workers.process import WorkerProcess
    from footlights_transports.workers.spread import Spread

_UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class RouterDoor(Acceptor):
    """One of the two ports. `kind` says which; `server_itself` answers what concerns all workers."""

    def __init__(
        self,
        admission: Admission,
        workers: list[WorkerProcess],
        spread: Spread,
        kind: bytes,
        server_itself: Acceptor,
    ) -> None:
        super().__init__(admission, goodbye=0.0)
        self._workers = workers
        self._spread = spread
        self._kind = kind
        self._server_itself = server_itself

    async def serve_socket(self, client: socket.socket) -> None:
        pending = PendingConnection()
        pending.scope.deadline = trio.current_time() + self.limits.handshake_timeout
        self.add_pending(pending)
        first = None
        try:
            with client, pending.scope:
                first = await _first_bytes(client)
                if first is None:
                    return
                if self._kind == HTTP and is_for_the_server(first):
                    self._server_itself.give(client.dup())
                else:
                    await self._workers[self._spread.owner(world_in(first) or "")].take(self._kind, client)
                return
        except OSError:
            return  # the client is gone
        finally:
            self.remove_pending(pending)
            if pending.scope.cancelled_caught:
                self.admission.incidents.refused("router_incomplete" if first is None else "router_worker_busy")

    async def serve(self, stream: trio.SocketStream) -> None:
        raise AssertionError("a router reads from no stream")

    def revoke(self, users: Collection[User]) -> None:
        """Workers close the connections of their users."""

    async def leave(self) -> None:
        for pending in self.pending:
            pending.drop("the server shuts down")


async def _first_bytes(client: socket.socket) -> bytes | None:
    """The first bytes, as soon as they tell the world. They stay in the socket. None if the client ends before."""
    seen = 0
    while True:
        await trio.lowlevel.wait_readable(client)
        first = client.recv(ENOUGH, socket.MSG_PEEK)
        if len(first) == seen:
            return None
        if world_in(first) is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
            return first
        seen = len(first)
        # What was seen stays, so that the socket would be readable all the time.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, seen + 1)
