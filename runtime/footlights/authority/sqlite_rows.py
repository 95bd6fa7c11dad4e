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
from footlights.authority.tool_steps import ToolStep
from footlights.authority.world import JsonWorld
from footlights.ids import MAX_DIGITS, MIN_DIGITS, in_order

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
    """The end of the chain of epochs and commits."""
    world_digest: str
    tool_position: int
    """Of the last step of a tool; 0 before the first."""
    tool_digest: str
    """The end of the chain of those steps."""

    def is_in(self, connection: sqlite3.Connection) -> bool:
        return read_head(connection) == self

    def in_epoch(self, epoch: int) -> Head:
        """The head after the beginning of `epoch`."""
        digest = chain.link_epoch(self.entry_digest, epoch, self.position + 1)
        return evolve(self, epoch=epoch, entry_digest=digest)

    def after_step(self, key: str, step: ToolStep) -> Head:
        """The head after a tool took this step."""
        position = self.tool_position + 1
        digest = chain.link_tool(self.tool_digest, position, self.epoch, key, step.value)
        return evolve(self, tool_position=position, tool_digest=digest)


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
    world_digest = genesis if record is None else _read(record).world_after
    return Head(epoch, position, entry_digest, world_digest, *_read_tool_head(connection, chain.seed(genesis)))


def _read_tool_head(connection: sqlite3.Connection, seed: str) -> tuple[int, str]:
    position, digest = _first(
        connection.execute("SELECT position, entry_digest FROM tools ORDER BY position DESC LIMIT 1"),
        default=(0, seed),
    )
    if _first(connection.execute("SELECT entry_digest FROM tools_end"), default=(None,)) != (digest,):
        # A stage that went on from here would run a tool again of which the last step is missing.
        raise LedgerDamaged("The last step of a tool in the ledger is not the last that was written.")
    return position, digest


def link_all(head: Head, records: Iterable[CommitRecord]) -> tuple[Head, list[CommitRow]]:
    """The rows that `records` become, and the head after them."""
    position, digest, world, rows = head.position, head.entry_digest, head.world_digest, list["CommitRow"]()
    for record in records:
        position += 1
        digest = chain.link(digest, position, head.epoch, record.commit_digest)
        world = record.world_after
        names = (record.session_id, record.turn_id)
        rows.append((position, head.epoch, *names, record.written, record.commit_digest, digest))
    return evolve(head, position=position, entry_digest=digest, world_digest=world), rows


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


def records_after(
    connection: sqlite3.Connection, last_epoch: int, session_id: str, turn_id: str, limit: int
) -> list[CommitRecord]:
    """Of the session's turns that began after this one, the first, in the order in which they began."""
    # The only index sorts ids as text: right for those of one epoch that have equally many digits, and only for them.
    query = """SELECT record FROM commits
        WHERE session_id = ? AND turn_id > ? AND turn_id < ? AND length(turn_id) = ? ORDER BY turn_id LIMIT ?"""
    of_epoch, number = in_order(turn_id)
    found: list[CommitRecord] = []
    for epoch in range(max(of_epoch, 1), last_epoch + 1):
        after = number if epoch == of_epoch else 0
        for digits in range(max(MIN_DIGITS, len(str(after))), MAX_DIGITS + 1):
            lowest = 0 if digits == MIN_DIGITS else 10 ** (digits - 1) - 1
            bounds = (f"t{epoch}-{max(after, lowest):0{digits}d}", f"t{epoch}-:")
            values = (session_id, *bounds, len(f"t{epoch}-") + digits, limit - len(found))
            found += [_read(data) for (data,) in connection.execute(query, values)]
    return found


def find_tool(connection: sqlite3.Connection, key: str) -> ToolRecord | None:
    query = "SELECT step FROM tools WHERE key = ? ORDER BY position DESC LIMIT 1"
    (step,) = _first(connection.execute(query, (key,)), default=(ToolStep.RELEASED,))
    return None if step == ToolStep.RELEASED else ToolRecord(key, ToolState(step))


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
