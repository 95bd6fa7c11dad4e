"""Raw TCP connections to a server, with a deadline on every wait."""

from __future__ import annotations

import socket
import struct
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from footlights_bench.attack.target import Address

PATIENCE = 5.0
"""Seconds that an answer may take before it counts as missing."""

BROKEN = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)

# Closed connections of a storm keep their ports for a while. A source address of their own spares those of others.
_STORM_SOURCE = "127.0.0.2"
_CHUNK = 65_536
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Connection:
    """A connection. Bytes that were received and not consumed are in `buffer`."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self.buffer = bytearray()
        self.is_closed = False
        """Whether the server has closed or reset the connection."""

    async def send(self, data: bytes) -> None:
        """Raises one of `BROKEN` if the server has closed the connection."""
        await self._stream.send_all(data)

    async def try_send(self, data: bytes) -> bool:
        """Whether the data could be sent within `PATIENCE`."""
        with trio.move_on_after(PATIENCE):
            try:
                await self.send(data)
            except BROKEN:
                return False
            return True
        return False

    async def receive(self) -> bool:
        """Wait for more bytes; False when the server has closed the connection."""
        try:
            data = await self._stream.receive_some(_CHUNK)
        except BROKEN:
            data = b""
        self.buffer += data
        self.is_closed = not data
        return bool(data)

    async def receive_until_closed(self, seconds: float = PATIENCE) -> bool:
        """Whether the server closed the connection in time. What it sent is in `buffer`."""
        with trio.move_on_after(seconds):
            while await self.receive():
                pass
        return self.is_closed

    async def discard(self) -> None:
        """Discard what comes until the server closes the connection."""
        while await self.receive():
            self.buffer.clear()

    async def discard_then_cancel(self, scope: trio.CancelScope) -> None:
        await self.discard()
        scope.cancel()

    def finish_sending(self) -> None:
        self._stream.socket.shutdown(socket.SHUT_WR)


@asynccontextmanager
async def open_connection(address: Address, *, source: str | None = None) -> AsyncGenerator[Connection]:
    """Raises `OSError` if nothing listens there. The connection is reset on exit, which frees its port."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with trio.socket.socket(family, socket.SOCK_STREAM) as raw:
        if source is not None:
            await raw.bind((source, 0))
        with trio.fail_after(PATIENCE):
            await raw.connect((address.host, address.port))
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        yield Connection(trio.SocketStream(raw))


def storm_source(address: Address) -> str | None:
    """The source address of attacking connections; None if the system has no second loopback address."""
    if ":" in address.host:
        return None
    with socket.socket() as probe:
        try:
            probe.bind((_STORM_SOURCE, 0))
        except OSError:
            return None
    return _STORM_SOURCE
