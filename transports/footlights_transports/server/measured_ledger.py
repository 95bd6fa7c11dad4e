"""Measured ledger: another ledger, with the size of each batch of commits reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from footlights.errors import InvalidCommand
from footlights_transports.server.readiness import SelfCheckingLedger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from footlights import Ledger
    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World


@runtime_checkable
class CommitHistory(Protocol):
    """A ledger that can list the commits of a session."""

    async def latest(self, session_id: str, limit: int) -> Sequence[CommitRecord]:
        """The newest commits of this session, at most `limit`, in their order."""
        ...


def history_of(ledger: object) -> CommitHistory:
    """The same ledger. Raises `InvalidCommand` if it cannot list commits."""
    if not isinstance(ledger, CommitHistory):
        raise InvalidCommand("This ledger cannot list the commits of a session.")
    return ledger


class MeasuredLedger:
    """Satisfies `footlights.Ledger`. `batch_written` is called with the size of each batch that is durable.

    Every other method is the ledger's own, so what the ledger cannot do, this one cannot either.
    """

    def __init__(self, ledger: Ledger, batch_written: Callable[[int], None]) -> None:
        self._append = ledger.append
        self._batch_written = batch_written
        self.begin_epoch = ledger.begin_epoch
        self.last_digests = ledger.last_digests
        self.find = ledger.find
        self.commits_after = ledger.commits_after
        self.begin_tool = ledger.begin_tool
        self.complete_tool = ledger.complete_tool
        self.release_tool = ledger.release_tool
        if isinstance(ledger, CommitHistory):
            self.latest = ledger.latest
        if isinstance(ledger, SelfCheckingLedger):
            self.check_writable = ledger.check_writable

    async def append(self, records: Sequence[CommitRecord], world: World) -> None:
        await self._append(records, world)
        self._batch_written(len(records))
