"""What the rows of a ledger file mean: where it ends, what a commit's row holds, which world it leaves.

Functions of a connection that read and believe only what proves itself. Nothing here writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import orjson
from attrs import evolve, frozen

from footlights.authority import chain, patch
from footlights.authority.digest import NotCanonical
from footlights.authority.ledger import ToolRecord, ToolState
from footlights.authority.patch import PatchFailed
from footlights.authority.record import InvalidRecord, recompute_digest, record_from_json
from footlights.authority.sqlite_schema import LedgerDamaged
from footlights.authority.world import JsonWorld

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World

    CommitRow: TypeAlias = tuple[int, int, str, str, bytes, str, str]


@frozen
class Head:
    """Where a ledger ends."""

    epoch: int
    """The last that began; 0 before the first."""
    position: int
    """Of the last commit; 0 before the first."""
    entry_digest: str
    """The end of the chain over everything."""
    world_digest: str

    def is_in(self, connection: sqlite3.Connection) -> bool:
        return read_head(connection) == self

    def in_epoch(self, epoch: int) -> Head:
        """The head after the beginning of `epoch`."""
        digest = chain.link_epoch(self.entry_digest, epoch, self.position + 1)
        return evolve(self, epoch=epoch, entry_digest=digest)


def read_head(connection: sqlite3.Connection) -> Head:
    ((genesis,),) = connection.execute("SELECT genesis_digest FROM meta")
    epoch, first_position, entry_digest = _first(
        connection.execute("SELECT epoch, first_position, entry_digest FROM epochs ORDER BY epoch DESC LIMIT 1"),
        default=(0, 1, chain.seed(genesis)),
    )
    position, record, digest = _first(
        connection.execute("SELECT position, record, entry_digest FROM commits ORDER BY position DESC LIMIT 1"),
        default=(0, None, None),
    )
    if position >= first_position:
        entry_digest = digest
    return Head(epoch, position, entry_digest, genesis if record is None else _read(record).world_after)


def link_all(head: Head, records: Iterable[CommitRecord]) -> tuple[Head, list[CommitRow]]:
    """The rows that `records` become, and the head after them."""
    position, digest, world, rows = head.position, head.entry_digest, head.world_digest, list["CommitRow"]()
    for record in records:
        position += 1
        digest = chain.link(digest, position, head.epoch, record.commit_digest)
        world = record.world_after
        names = (record.session_id, record.turn_id)
        rows.append((position, head.epoch, *names, record.written, record.commit_digest, digest))
    return Head(head.epoch, position, digest, world), rows


def last_digest(connection: sqlite3.Connection, session_id: str) -> str | None:
    """The commit_digest of the session's last commit."""
    # It walks the session's part of the only index: 10 ms for 50,000 turns, once for each session that comes back.
    # With an index of its own for this, a batch took 1.3 times as long to write, in a ledger of 100,000 commits.
    last = "SELECT max(position) FROM commits WHERE session_id = ?"
    query = f"SELECT commit_digest FROM commits WHERE position = ({last})"
    digest: str | None = _first(connection.execute(query, (session_id,)), default=(None,))[0]
    return digest


def find_record(connection: sqlite3.Connection, session_id: str, turn_id: str) -> CommitRecord | None:
    query = "SELECT record FROM commits WHERE session_id = ? AND turn_id = ?"
    (data,) = _first(connection.execute(query, (session_id, turn_id)), default=(None,))
    return None if data is None else _read(data)


def latest_records(connection: sqlite3.Connection, session_id: str, limit: int) -> list[CommitRecord]:
    query = "SELECT record FROM commits WHERE session_id = ? ORDER BY position DESC LIMIT ?"
    return [_read(data) for (data,) in connection.execute(query, (session_id, limit))][::-1]


def find_tool(connection: sqlite3.Connection, key: str) -> ToolRecord | None:
    (state,) = _first(connection.execute("SELECT state FROM tools WHERE key = ?", (key,)), default=(None,))
    return None if state is None else ToolRecord(key, ToolState(state))


def document_of(world: World) -> bytes | None:
    """The world as the ledger keeps it: canonical JSON, or nothing for a world of the host's own kind."""
    return world.written if isinstance(world, JsonWorld) else None


def restore(connection: sqlite3.Connection, head: Head, genesis: World) -> World:
    """The world that the ledger ends with: a JSON world as it is kept, any other made again from `genesis`.

    Raises `LedgerDamaged` if it is not the one that was committed, and `TooLarge` if `genesis` allows less.
    """
    ((document,),) = connection.execute("SELECT document FROM world")
    try:
        if document is not None and isinstance(genesis, JsonWorld):
            world: World = genesis.changed((patch.replace("", orjson.loads(document)),))
        else:
            world = _replayed(connection, genesis)
    except (orjson.JSONDecodeError, NotCanonical, PatchFailed) as error:
        raise LedgerDamaged("The ledger's world cannot be read.") from error
    if world.digest() != head.world_digest:
        raise LedgerDamaged(
            "The world is not the one that was committed last. "
            "A world of the host's own kind must begin from the genesis with which the ledger was made."
        )
    return world


def _replayed(connection: sqlite3.Connection, world: World) -> World:
    for (data,) in connection.execute("SELECT record FROM commits ORDER BY position"):
        record = _read(data)
        if record.changes:
            world = world.changed(record.changes)
    return world


def _read(data: bytes) -> CommitRecord:
    try:
        record = record_from_json(orjson.loads(data))
        intact = recompute_digest(record) == record.commit_digest
    except (orjson.JSONDecodeError, InvalidRecord, NotCanonical) as error:
        raise LedgerDamaged("A commit in the ledger cannot be read.") from error
    if not intact:
        raise LedgerDamaged(f"The commit {record.commit_id} is not what was written.")
    return record


def _first(rows: Iterable[tuple[Any, ...]], default: tuple[Any, ...]) -> tuple[Any, ...]:
    return next(iter(rows), default)
