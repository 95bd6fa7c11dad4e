"""TCP proxy that simulates network faults: it cuts, splits, delays and throttles bytes where a test says so.

Nothing is random: the fate of each connection is chosen by the test, and is counted in bytes.
"""

from __future__ import annotations

import socket
import struct
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio
import trio.testing
from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator

_ALL_AT_ONCE = 65_536


@frozen(kw_only=True)
class Fate:
    """What becomes of one connection."""

    cut_up: int | None = None
    """It is cut when the client has sent so many bytes."""
    cut_down: int | None = None
    """It is cut when the client has been sent so many bytes."""
    hold_down: int | None = None
    """After so many bytes the client is sent nothing more until the proxy is told to let go."""
    piece: int = _ALL_AT_ONCE
    """No more bytes than this are sent at once."""
    slow: bool = False
    """Everybody else gets a turn before each piece, and little is read ahead."""
    rude: bool = True
    """A cut is a reset; otherwise the proxy hangs up in order."""


UNHARMED = Fate()


class Proxy:
    def __init__(self, port: int, fates: Iterable[Fate]) -> None:
        self._target = port
        self._fates: Iterator[Fate] = iter(fates)
        self.port = 0
        self.connections = 0
        self.cuts = 0
        self.carried: list[int] = []
        """How many bytes the client was sent, for each connection."""
        self.held = trio.Event()
        """Something is being held back."""
        self.let_go = trio.Event()
        """Set it, and what was held back goes on."""
        self._living: dict[trio.CancelScope, None] = {}

    def cut_all(self) -> None:
        """Cut every connection there is now."""
        for connection in self._living:
            connection.cancel()

    async def serve(self, client: trio.SocketStream) -> None:
        number = self.connections
        self.connections += 1
        self.carried.append(0)
        fate = next(self._fates, UNHARMED)
        try:
            server = await trio.open_tcp_stream("127.0.0.1", self._target)
        except OSError:
            return
        if fate.slow:
            for each in (client, server):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
                each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        with trio.CancelScope() as cut:
            self._living[cut] = None
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._carry, client, server, None, fate, cut)
                    nursery.start_soon(self._carry, server, client, number, fate, cut)
            finally:
                del self._living[cut]
                if fate.rude:
                    for each in (client, server):
                        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                await trio.aclose_forcefully(server)

    async def _carry(
        self,
        source: trio.SocketStream,
        sink: trio.SocketStream,
        down: int | None,
        fate: Fate,
        connection: trio.CancelScope,
    ) -> None:
        """`down` is the number of the connection if this is the way to the client."""
        carried = 0
        cut_at, hold_at = (fate.cut_up, None) if down is None else (fate.cut_down, fate.hold_down)
        try:
            while data := await source.receive_some(self._room(fate.piece, carried, cut_at, hold_at)):
                if fate.slow:
                    await trio.testing.wait_all_tasks_blocked()
                await sink.send_all(data)
                carried += len(data)
                if down is not None:
                    self.carried[down] = carried
                if carried == hold_at:
                    self.held.set()
                    await self.let_go.wait()
                if carried == cut_at:
                    self.cuts += 1
                    break
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        connection.cancel()

    @staticmethod
    def _room(piece: int, carried: int, *stops: int | None) -> int:
        return min([piece, *(stop - carried for stop in stops if stop is not None and stop > carried)])


@asynccontextmanager
async def open_proxy(port: int, fates: Iterable[Fate] = ()) -> AsyncGenerator[Proxy, None]:
    """A proxy in front of that port. Each connection takes the next fate; when none is left, they are unharmed."""
    proxy = Proxy(port, fates)
    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, proxy.serve, 0, host="127.0.0.1"))
        proxy.port = listeners[0].socket.getsockname()[1]
        yield proxy
        nursery.cancel_scope.cancel()
