"""Fenced ledger: several handles on one ledger, of which the one that opened it last is the owner.

They stand for the nodes of a cluster, without a database. The write of a handle that is not the owner raises
`LedgerFenced` and changes nothing, and its `hold` raises it too.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal

import trio

from footlights.errors import LedgerFenced

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from footlights.authority.ledger.protocol import Ledger, Opening, ToolRecord, TurnRequest
    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World


class Fence:
    """The owner of a ledger: pass one to each handle."""

    def __init__(self) -> None:
        self.owner: FencedLedger | None = None
        self.lock = trio.Lock()
        """Held by each write, so that no other handle becomes the owner between its check and its effect."""


class FencedLedger:
    """A handle on `ledger`, which other handles with the same `fence` share."""

    def __init__(self, ledger: Ledger, fence: Fence) -> None:
        self._ledger = ledger
        self._fence = fence
        self._lost = trio.Event()
        self.doubtful: Callable[[bool], None] | None = None
        """What the stage gave to `hold`: a test calls it to make the lease doubtful."""
        self.last_digests = ledger.last_digests
        self.find = ledger.find
        self.commits_after = ledger.commits_after
        self.latest = ledger.latest
        self.position_of = ledger.position_of
        self.commits_from = ledger.commits_from
        self.find_request = ledger.find_request

    async def begin_epoch(self, genesis: World) -> Opening:
        """Open the ledger, and take it from its owner."""
        async with self._fence.lock:
            opening = await self._ledger.begin_epoch(genesis)
            before, self._fence.owner = self._fence.owner, self
            if before not in (None, self):
                before._lost.set()
            return opening

    async def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        async with self._owned():
            await self._ledger.append(records, world, requests)

    async def begin_tool(self, key: str, request: TurnRequest | None = None) -> ToolRecord | None:
        async with self._owned():
            return await self._ledger.begin_tool(key, request)

    async def complete_tool(self, key: str, outcome: Literal["ok", "error"]) -> None:
        async with self._owned():
            await self._ledger.complete_tool(key, outcome)

    async def release_tool(self, key: str) -> None:
        async with self._owned():
            await self._ledger.release_tool(key)

    async def hold(self, doubtful: Callable[[bool], None]) -> None:
        self.doubtful = doubtful
        await self._lost.wait()
        raise _fenced()

    @asynccontextmanager
    async def _owned(self) -> AsyncGenerator[None]:
        async with self._fence.lock:
            if self._fence.owner is not self:
                raise _fenced()
            yield


def _fenced() -> LedgerFenced:
    return LedgerFenced("Another stage has taken the ledger over.")
