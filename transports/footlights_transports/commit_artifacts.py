"""Commit artifacts: the artifacts of a commit that a view shows, read from the ledger."""

from __future__ import annotations

from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

import trio

from footlights.errors import LedgerUnavailable
from footlights.events import CommitFinal

if TYPE_CHECKING:
    from footlights import Ledger, StreamEvent
    from footlights.authority import Artifact, CommitRecord


async def commit_artifacts(event: StreamEvent, ledger: Ledger, timeout: float = inf) -> tuple[Artifact, ...]:
    """The artifacts of a commit; none for any other event, or if the ledger cannot be read within `timeout` seconds."""
    if not isinstance(event.payload, CommitFinal) or not event.payload.artifact_refs:
        return ()
    record: CommitRecord | None = None
    with suppress(LedgerUnavailable), trio.move_on_after(timeout):
        record = await ledger.find(event.session_id, event.turn_id)
    return () if record is None else record.artifacts
