"""A ledger that tells how many commits each write holds, and is otherwise the one that it stands in front of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from footlights.errors import InvalidCommand
from footlights_transports.server.readiness import SelfCheckingLedger

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from footlights import Ledger
    from footlights.authority.ledger.protocol import Opening, ToolRecord
    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World


@runtime_checkable
class CommitHistory(Protocol):
    """A ledger that can list what a session committed."""

    async def latest(self, session_id: str, limit: int) -> Sequence[CommitRecord]:
        """The newest commits of this session, no more than `limit`, in their order."""
        ...


def history_of(ledger: object) -> CommitHistory:
    """The same ledger. Raises `InvalidCommand` if it cannot list commits."""
    if not isinstance(ledger, CommitHistory):
        raise InvalidCommand("This ledger cannot list the commits of a session.")
    return ledger


class MeasuredLedger:
    """Satisfies `footlights.Ledger`. `batch_written` is called with the size of each batch that is durable."""

    def __init__(self, ledger: Ledger, batch_written: Callable[[int], None]) -> None:
        self._ledger = ledger
        self._batch_written = batch_written

    async def begin_epoch(self, genesis: World) -> Opening:
        return await self._ledger.begin_epoch(genesis)

    async def last_digests(self, session_ids: Collection[str]) -> Mapping[str, str]:
        return await self._ledger.last_digests(session_ids)

    async def append(self, records: Sequence[CommitRecord], world: World) -> None:
        await self._ledger.append(records, world)
        self._batch_written(len(records))

    async def find(self, session_id: str, turn_id: str) -> CommitRecord | None:
        return await self._ledger.find(session_id, turn_id)

    async def commits_after(self, session_id: str, turn_id: str, limit: int) -> Sequence[CommitRecord]:
        return await self._ledger.commits_after(session_id, turn_id, limit)

    async def latest(self, session_id: str, limit: int) -> Sequence[CommitRecord]:
        return await history_of(self._ledger).latest(session_id, limit)

    async def check_writable(self) -> None:
        if isinstance(self._ledger, SelfCheckingLedger):
            await self._ledger.check_writable()

    async def begin_tool(self, key: str) -> ToolRecord | None:
        return await self._ledger.begin_tool(key)

    async def complete_tool(self, key: str, outcome: Literal["ok", "error"]) -> None:
        await self._ledger.complete_tool(key, outcome)

    async def release_tool(self, key: str) -> None:
        await self._ledger.release_tool(key)
