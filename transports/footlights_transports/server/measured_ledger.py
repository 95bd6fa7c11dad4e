"""Measured ledger: another ledger, with the size of each batch of commits reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from footlights.authority.ledger.protocol import LeasedLedger
from footlights_transports.server.readiness import SelfCheckingLedger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from footlights import Ledger
    from footlights.authority.ledger.protocol import TurnRequest
    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World


@runtime_checkable
class FileLedger(Protocol):
    """A ledger in a file, which others may read meanwhile."""

    path: Path


class MeasuredLedger:
    """Satisfies `footlights.Ledger`. `batch_written` is called with the size of each batch that is durable.

    Every other method is the ledger's own.
    """

    def __init__(self, ledger: Ledger, batch_written: Callable[[int], None]) -> None:
        self._append = ledger.append
        self._batch_written = batch_written
        self.begin_epoch = ledger.begin_epoch
        self.last_digests = ledger.last_digests
        self.find = ledger.find
        self.commits_after = ledger.commits_after
        self.latest = ledger.latest
        self.position_of = ledger.position_of
        self.commits_from = ledger.commits_from
        self.find_request = ledger.find_request
        self.begin_tool = ledger.begin_tool
        self.complete_tool = ledger.complete_tool
        self.release_tool = ledger.release_tool
        if isinstance(ledger, SelfCheckingLedger):
            self.check_writable = ledger.check_writable
        if isinstance(ledger, FileLedger):
            self.path = ledger.path
        if isinstance(ledger, LeasedLedger):
            self.hold = ledger.hold

    async def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        await self._append(records, world, requests)
        self._batch_written(len(records))
