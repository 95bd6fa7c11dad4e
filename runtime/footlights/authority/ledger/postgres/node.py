"""Node: what a process has in a database with worlds: connections that its ledgers share, and the leases of its worlds.

A lease says until when nobody else takes a world over. One statement renews those of all worlds of the node, each third
of a lease. Time is that of the database. By its own clock, which is never ahead of that, a ledger knows when its lease
may have run out: then it is doubtful, until it is renewed or another stage owns the world.
"""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import trio
from attrs import define, field

from footlights.authority.ledger.postgres.arrays import Numbers, Texts
from footlights.authority.ledger.postgres.connection import connect, translated
from footlights.authority.ledger.postgres.statements import RENEW
from footlights.errors import LedgerFenced, LedgerUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from footlights.authority.ledger.address import LedgerUrl
    from footlights.authority.ledger.postgres.connection import Connect, Raw

LEASE = 3.0
"""Seconds after which another stage may take over from an owner that does not answer."""
CONNECTIONS = 4
_RENEWALS = 3
"""Renewals in the time of a lease."""


@define(eq=False)
class _Held:
    """A lease."""

    world: int
    owner: str
    until: float
    """By the clock of this process."""
    renewed: trio.Event = field(factory=trio.Event)
    lost: trio.Event = field(factory=trio.Event)


class PostgresNode:
    """A node of a cluster. Its `name` and `address` are shown to others; `address` is where clients find its worlds."""

    def __init__(
        self,
        url: LedgerUrl,
        *,
        name: str = "",
        address: str = "",
        lease: float = LEASE,
        connections: int = CONNECTIONS,
        connect: Connect = connect,
    ) -> None:
        self.url = url
        self.name = name or f"{socket.gethostname()}-{os.getpid()}"
        self.address = address
        self.lease = lease
        self.limiter = trio.CapacityLimiter(connections)
        """Admits as many threads as there are connections."""
        self._connect = connect
        self._idle: list[Raw] = []
        self._held: dict[int, _Held] = {}
        self._keeper = trio.Lock()
        """Held by the one of the ledgers whose task renews all leases."""
        self._renewing: list[Raw] = []
        """The connection of the renewals, while none is under way."""

    # -- in threads

    @contextmanager
    def borrowed(self) -> Generator[Raw]:
        """A connection for one call. One that failed is not used again."""
        with self._one_of(self._idle) as raw:
            yield raw

    @contextmanager
    def _one_of(self, idle: list[Raw]) -> Generator[Raw]:
        raw = idle.pop() if idle else self._connect(self.url)
        try:
            yield raw
        except BaseException:
            raw.close()
            raise
        if not raw.closed:
            idle.append(raw)

    def _renew(self, worlds: list[tuple[int, str]]) -> set[int]:
        """The worlds among these that still belong to this node."""
        values = (Numbers(each[0] for each in worlds), Texts(each[1] for each in worlds), timedelta(seconds=self.lease))
        with translated(self.url), self._one_of(self._renewing) as raw:
            rows: list[tuple[Any, ...]] = raw.execute(RENEW, values).fetchall()
            return {row[0] for row in rows}

    def close(self) -> None:
        """Close the connections that are not in use. They are opened again when they are needed."""
        for idle in (self._idle, self._renewing):
            while idle:
                idle.pop().close()

    # -- leases

    async def hold(self, world: int, owner: str, doubtful: Callable[[bool], None]) -> None:
        """Keep the lease of a world: see `LeasedLedger`."""
        held = self._held[world] = _Held(world, owner, trio.current_time() + self.lease)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep, name="leases")
                nursery.start_soon(_watch, held, doubtful, name=f"lease of world {world}")
                await held.lost.wait()
                nursery.cancel_scope.cancel(reason="the world has another owner")
        finally:
            del self._held[world]
        raise LedgerFenced("Another stage has taken the ledger over.")

    async def _keep(self) -> None:
        async with self._keeper:
            while True:
                await self._renew_all()
                await trio.sleep(self.lease / _RENEWALS)

    async def _renew_all(self) -> None:
        held, sent = list(self._held.values()), trio.current_time()
        try:
            ours = await trio.to_thread.run_sync(self._renew, [(each.world, each.owner) for each in held])
        except LedgerUnavailable:
            return
        for each in held:
            if each.world in ours:
                each.until = sent + self.lease
                renewed, each.renewed = each.renewed, trio.Event()
                renewed.set()
            else:
                each.lost.set()


async def _watch(held: _Held, doubtful: Callable[[bool], None]) -> None:
    while True:
        await trio.sleep_until(held.until)
        if trio.current_time() >= held.until:
            doubtful(True)
            await held.renewed.wait()
            doubtful(False)
