"""Durable ledger of one world in PostgreSQL, with one owner at a time on any machine, and any number of readers.

    async with PostgresLedger("postgresql://game@db/game?world=tavern") as ledger, open_stage(cast, ledger=ledger):
        ...

`footlights ledger init URL` makes the tables once. The world is made when it is opened for the first time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights.authority.ledger.address import LedgerUrl, parse_url
from footlights.authority.ledger.postgres.node import PostgresNode
from footlights.authority.ledger.postgres.store import PostgresStore
from footlights.authority.ledger.sql.ledger import SqlLedger
from footlights.errors import LedgerInUse

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights.authority.ledger.protocol import Opening
    from footlights.authority.world import World

_GLANCE = 0.1
"""Seconds between two looks of a standby."""


class PostgresLedger(SqlLedger):
    """Implements `footlights.Ledger` and `LeasedLedger`.

    `node` shares its connections and one task for the leases between the ledgers of a process. `begin_epoch` waits
    `patience` seconds until the world has no owner, before it raises `LedgerInUse`; a standby has `math.inf`.
    """

    _longest_pause = 1.0
    _attempts = 4

    def __init__(self, url: str | LedgerUrl, *, node: PostgresNode | None = None, patience: float = 0.0) -> None:
        url = parse_url(url) if isinstance(url, str) else url
        self._shares_node = node is not None
        self._node = node or PostgresNode(url)
        self._postgres = PostgresStore(url, self._node)
        super().__init__(self._postgres, self._node.limiter)
        self._patience = patience

    async def begin_epoch(self, genesis: World) -> Opening:
        until = trio.current_time() + self._patience
        while True:
            try:
                return await super().begin_epoch(genesis)
            except LedgerInUse:
                if trio.current_time() >= until:
                    raise
            await trio.sleep(_GLANCE)

    async def hold(self, doubtful: Callable[[bool], None]) -> None:
        await self._node.hold(self._postgres.world, self._postgres.owner, doubtful)

    async def close(self) -> None:
        """Release the world, so that a standby has it at once. Shielded from cancellation."""
        await super().close()
        if not self._shares_node:
            self._node.close()
