"""Load of a flood: connections that are opened again when they end, and a tally of what was sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import trio
from attrs import define

from footlights_bench.attack.raw.sockets import BROKEN, Connection, open_connection, storm_source
from footlights_bench.attack.raw.websocket import WebSocket, open_websocket
from footlights_bench.attack.target import WEBSOCKET_PATH, CannotAttack

if TYPE_CHECKING:
    from footlights_bench.attack.target import Address, Target

MAX_CONNECTIONS = 20_000
"""Connections of one flood: it must not use up the ports of the machine."""
PAUSE_AFTER_REFUSAL = 0.005
_GONE = (*BROKEN, trio.TooSlowError, CannotAttack)


@define
class Tally:
    units: int = 0
    """Frames or requests, depending on the flood."""
    size: int = 0
    connections: int = 0
    refused: int = 0

    def summary(self, seconds: float) -> str:
        sent = f"{self.units / seconds:,.0f} sent/s, {self.size / seconds / 1e6:,.1f} MB/s"
        return f"{sent}, {self.connections:,} connections" + (f", {self.refused:,} refused" if self.refused else "")


class Load:
    """The connections of one flood. Loops end with the flood, or after `MAX_CONNECTIONS`."""

    def __init__(self, target: Target, tally: Tally) -> None:
        self.target = target
        self.tally = tally
        self._sources = {address: storm_source(address) for address in (target.websocket, target.http)}

    async def send(self, to: Connection | WebSocket, data: bytes, units: int) -> None:
        await to.send(data)
        self.tally.units += units
        self.tally.size += len(data)

    async def connections_to(
        self, many: int, address: Address, use: Callable[[Connection], Awaitable[None]], *, each_after: float = 0
    ) -> None:
        """Keep `many` connections open, and open each again when it ends.

        `each_after` seconds lie between the first connections, and before each is opened again, for floods that are
        not a storm of connections.
        """

        async def once() -> None:
            async with open_connection(address, source=self._sources[address]) as connection:
                self.tally.connections += 1
                await use(connection)

        await self._keep(many, once, each_after)

    async def websockets(
        self, many: int, use: Callable[[WebSocket], Awaitable[None]], *, path: str = WEBSOCKET_PATH, reads: bool = True
    ) -> None:
        """The same with WebSocket connections of the attacking user. What the server sends is discarded."""
        address = self.target.websocket

        async def once() -> None:
            async with open_websocket(address, self.target.token, path=path, source=self._sources[address]) as socket:
                self.tally.connections += 1
                async with trio.open_nursery() as nursery:
                    if reads:
                        nursery.start_soon(socket.connection.discard_then_cancel, nursery.cancel_scope)
                    with suppress(*_GONE):
                        await use(socket)
                    nursery.cancel_scope.cancel()

        await self._keep(many, once)

    async def _keep(self, many: int, once: Callable[[], Awaitable[None]], each_after: float = 0) -> None:
        async def again(first: float) -> None:
            await trio.sleep(first)
            while self.tally.connections < MAX_CONNECTIONS:
                try:
                    await once()
                    await trio.sleep(each_after * many)
                except _GONE:
                    self.tally.refused += 1
                    await trio.sleep(max(PAUSE_AFTER_REFUSAL, each_after * many))

        async with trio.open_nursery() as nursery:
            for number in range(many):
                nursery.start_soon(again, each_after * number)


Flood: TypeAlias = Callable[[Load], Awaitable[None]]
