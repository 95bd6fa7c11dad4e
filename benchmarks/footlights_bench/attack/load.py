"""Load of a flood: connections that come back when they are closed, and a tally of what was sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import trio
from attrs import define

from footlights_bench.attack.frames import Talk, talking
from footlights_bench.attack.sockets import BROKEN, Wire, connected, storm_source
from footlights_bench.attack.target import WEBSOCKET_PATH, CannotAttack

if TYPE_CHECKING:
    from footlights_bench.attack.target import Address, Target

MAX_CONNECTIONS = 20_000
"""Of one flood. The ports of a machine are limited, and a storm must not take the last."""
PAUSE_AFTER_REFUSAL = 0.005
_GONE = (*BROKEN, trio.TooSlowError, CannotAttack)


@define
class Tally:
    units: int = 0
    """Frames or requests, as a flood counts them."""
    size: int = 0
    connections: int = 0
    refused: int = 0

    def told(self, seconds: float) -> str:
        sent = f"{self.units / seconds:,.0f} sent/s, {self.size / seconds / 1e6:,.1f} MB/s"
        return f"{sent}, {self.connections:,} connections" + (f", {self.refused:,} refused" if self.refused else "")


class Load:
    """The means of one flood. Every loop ends when the flood's time is over, or after `MAX_CONNECTIONS`."""

    def __init__(self, target: Target, tally: Tally) -> None:
        self.target = target
        self.tally = tally
        self._sources = {address: storm_source(address) for address in (target.websocket, target.http)}

    async def send(self, to: Wire | Talk, data: bytes, units: int) -> None:
        await to.send(data)
        self.tally.units += units
        self.tally.size += len(data)

    async def wires(
        self, many: int, address: Address, use: Callable[[Wire], Awaitable[None]], *, each_after: float = 0
    ) -> None:
        """Keep so many connections in use, each again when it ends.

        `each_after` seconds lie between the first connections, and before each comes again: for floods that are no
        storm of connections.
        """

        async def once() -> None:
            async with connected(address, source=self._sources[address]) as wire:
                self.tally.connections += 1
                await use(wire)

        await self._keep(many, once, each_after)

    async def talks(
        self, many: int, use: Callable[[Talk], Awaitable[None]], *, path: str = WEBSOCKET_PATH, reads: bool = True
    ) -> None:
        """The same with WebSocket connections of the attacker's user. What the server says is read and forgotten."""
        address = self.target.websocket

        async def once() -> None:
            async with talking(address, self.target.token, path=path, source=self._sources[address]) as talk:
                self.tally.connections += 1
                async with trio.open_nursery() as nursery:
                    if reads:
                        nursery.start_soon(self._forget, talk.wire, nursery.cancel_scope)
                    with suppress(*_GONE):
                        await use(talk)
                    nursery.cancel_scope.cancel()

        await self._keep(many, once)

    @staticmethod
    async def _forget(wire: Wire, scope: trio.CancelScope) -> None:
        await wire.discard()
        scope.cancel()

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
