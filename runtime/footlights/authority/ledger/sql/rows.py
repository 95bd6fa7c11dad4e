"""Queries of a ledger in a database: commits, tool steps and the world, read through a connection.

They are written once, in SQL that SQLite reads as it is, and that `postgres.connection` translates. Each function
recomputes the digest of what it returns: a commit's record, a tool step, the world. A request has none. A missing row
in between, or a wrong index, is found only by an audit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import orjson

from footlights.authority import chain
from footlights.authority.audit.reader import Altered, ToolRow, WorldRow
from footlights.authority.audit.rebuild import check_kept, generation_of, worlds_of
from footlights.authority.digest import NotCanonical
from footlights.authority.initial_world import taken_in
from footlights.authority.ledger.protocol import ToolRecord, ToolState
from footlights.authority.ledger.sql.errors import LedgerDamaged
from footlights.authority.patch import PatchFailed
from footlights.authority.record import InvalidRecord, recompute_digest, record_from_json
from footlights.authority.tool_steps import ToolStep
from footlights.authority.world import JsonWorld
from footlights.errors import TooLarge
from footlights.ids import MAX_DIGITS, MIN_DIGITS, OPERATOR, in_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights.authority.ledger.sql.head import Head
    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World
    from footlights.authority.world.checkpoint import RowSpace


class Connection(Protocol):
    """A connection to one ledger: `sqlite3.Connection`, or one that understands the same SQL."""

    def execute(self, sql: str, values: Any = (), /) -> Iterable[tuple[Any, ...]]: ...


TOOL_STEPS = """SELECT CAST(it.key AS BLOB), it.position, it.epoch, it.step, it.entry_digest, before.entry_digest
    FROM tools AS it LEFT JOIN tools AS before ON before.position = it.position - 1"""
"""Each step with the digest of the previous one. The key is read as bytes, because it may not be valid text."""


def last_digest(connection: Connection, session_id: str) -> str | None:
    """The commit_digest of the session's last commit."""
    # This scans the session's part of the only index: 10 ms for 50,000 turns, once for each resumed session. With a
    # second index for it, writing a batch took 1.3 times as long in a ledger of 100,000 commits.
    last = "SELECT max(position) FROM commits WHERE session_id = ?"
    row = first(connection.execute(f"SELECT record FROM commits WHERE position = ({last})", (session_id,)))
    return None if row is None else _record_of(session_id, row[0]).commit_digest


def find_record(connection: Connection, session_id: str, turn_id: str) -> CommitRecord | None:
    query = "SELECT record FROM commits WHERE session_id = ? AND turn_id = ?"
    row = first(connection.execute(query, (session_id, turn_id)))
    record = None if row is None else _record_of(session_id, row[0])
    if record is not None and record.turn_id != turn_id:
        raise LedgerDamaged("A commit in the ledger is in the place of another turn's.")
    return record


def find_request(connection: Connection, session_id: str, request_id: str) -> str | None:
    """The turn that this request began."""
    query = "SELECT turn_id FROM requests WHERE session_id = ? AND request_id = ?"
    row = first(connection.execute(query, (session_id, request_id)))
    if row is not None and not isinstance(row[0], str):
        raise LedgerDamaged("A request in the ledger is not what was written.")
    return None if row is None else row[0]


def latest_records(connection: Connection, session_id: str, limit: int) -> list[CommitRecord]:
    query = "SELECT record FROM commits WHERE session_id = ? ORDER BY position DESC LIMIT ?"
    return [_record_of(session_id, data) for (data,) in connection.execute(query, (session_id, limit))][::-1]


def position_of(connection: Connection, commit_id: str) -> int | None:
    # There is no index of digests. It begins at the end, where a follower that resumes was a moment ago.
    query = "SELECT position FROM commits WHERE substr(commit_digest, 1, 16) = ? ORDER BY position DESC LIMIT 1"
    row = first(connection.execute(query, (commit_id.removeprefix("c-"),)))
    return None if row is None else row[0]


def records_from(connection: Connection, position: int, limit: int) -> list[CommitRecord]:
    """The first `limit` commits after this position."""
    query = "SELECT record FROM commits WHERE position > ? ORDER BY position LIMIT ?"
    return [read_record(data) for (data,) in connection.execute(query, (position, limit))]


def records_after(
    connection: Connection, last_epoch: int, session_id: str, turn_id: str, limit: int
) -> list[CommitRecord]:
    """The first `limit` commits of the session's turns that began after this one, in the order of the turns."""
    # The only index sorts ids as text, which is correct only among ids of one epoch with equally many digits.
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
            found += [_record_of(session_id, data) for (data,) in connection.execute(query, values)]
    return found


def _record_of(session_id: str, data: bytes) -> CommitRecord:
    record = read_record(data)
    if record.session_id != session_id:
        raise LedgerDamaged("A commit in the ledger is in the place of another session's.")
    return record


def find_tool(connection: Connection, key: str, stored: str | bytes) -> ToolRecord | None:
    """The state of this key, which the database has as `stored`, by its last step.

    Raises `LedgerDamaged` if that is not linked to the previous step.
    """
    row = first(connection.execute(f"{TOOL_STEPS} WHERE it.key = ? ORDER BY it.position DESC LIMIT 1", (stored,)))
    if row is None:
        return None
    try:
        # With the requested key, not that of the row: a damaged index may lead to another row.
        step = ToolStep(proven_step(connection, key, *row[1:]).step)
    except (TypeError, ValueError, NotCanonical) as error:
        raise LedgerDamaged("A step of a tool in the ledger is not what was written.") from error
    return None if step is ToolStep.RELEASED else ToolRecord(key, ToolState(step))


def proven_step(
    connection: Connection, key: str, position: int, epoch: int, step: str, digest: str, previous: str
) -> ToolRow:
    """A row of `TOOL_STEPS` whose digest is correct. Raises `ValueError` or `NotCanonical`."""
    before = chain.seed(genesis_digest(connection)) if position == 1 else previous
    if chain.link_tool(before, position, epoch, key, step) != digest:
        raise ValueError("its digest is another one")
    return ToolRow(position, epoch, key, step, digest)


def restore(connection: Connection, space: RowSpace, head: Head, genesis: World) -> World:
    """The last committed world: a JSON world from its last checkpoint, any other from `genesis`.

    Every change since is made again. Raises `LedgerDamaged` if a digest on the way is wrong, and `TooLarge` if the
    world exceeds the limits of `genesis`.
    """
    kept = kept_worlds(connection)
    is_json = first(connection.execute("SELECT is_json FROM meta")) == (1,)
    world, position = genesis, 0
    try:
        check_kept(kept, is_json=is_json)
        if kept and isinstance(genesis, JsonWorld):
            world, position = _at_last_checkpoint(connection, space, generation_of(kept)), kept[-1].position
        world = _replayed(connection, world, position)
    except Altered as error:
        raise LedgerDamaged(f"{error} It is part of the world that the ledger keeps.") from error
    except (NotCanonical, PatchFailed) as error:
        raise LedgerDamaged("The ledger's world cannot be read.") from error
    if world.digest() != head.world_digest:
        raise LedgerDamaged(
            "The world is not the one that was committed last. "
            "A world of the host's own kind must begin from the genesis with which the ledger was made."
        )
    return world.limited_as(genesis) if isinstance(world, JsonWorld) and isinstance(genesis, JsonWorld) else world


def kept_worlds(connection: Connection) -> list[WorldRow]:
    """The checkpoints, in order."""
    rows = list(connection.execute("SELECT position, root, first, digest FROM worlds ORDER BY position"))
    # A column of SQLite accepts a value of any type.
    if not all(isinstance(root, int) and isinstance(begin, int) for _, root, begin, _ in rows):
        raise LedgerDamaged("A world in the ledger is not what was written.")
    return [WorldRow(*row) for row in rows]


def _at_last_checkpoint(connection: Connection, space: RowSpace, kept: list[WorldRow]) -> JsonWorld:
    # As bytes, because a column of SQLite accepts text that cannot be read.
    query = "SELECT id, CAST(body AS BLOB), CAST(kids AS BLOB) FROM nodes WHERE id BETWEEN ? AND ? ORDER BY id"
    return worlds_of(kept, connection.execute(query, (kept[0].first, kept[-1].root)), space)[-1]


def _replayed(connection: Connection, world: World, after: int) -> World:
    for (data,) in connection.execute("SELECT record FROM commits WHERE position > ? ORDER BY position", (after,)):
        record = read_record(data)
        if record.changes:
            world = world.changed(record.changes)
            if isinstance(world, JsonWorld) and world.digest() != record.world_after:
                raise LedgerDamaged(f"The changes of the commit {record.commit_id} do not lead to the world it names.")
    return world


def read_record(data: bytes) -> CommitRecord:
    """The record in a row. Raises `LedgerDamaged` if its digest is wrong."""
    try:
        record = record_from_json(orjson.loads(data))
        intact = recompute_digest(record) == record.commit_digest
    except (orjson.JSONDecodeError, InvalidRecord, NotCanonical, TooLarge) as error:
        raise LedgerDamaged("A commit in the ledger cannot be read.") from error
    if not intact:
        raise LedgerDamaged(f"The commit {record.commit_id} is not what was written.")
    return record


def genesis_digest(connection: Connection) -> str:
    """The digest of the genesis world. Raises `ValueError` if there is not exactly one."""
    digest: str
    ((digest,),) = connection.execute("SELECT genesis_digest FROM meta")
    return digest


def initial_digest(connection: Connection) -> str:
    """The digest of the initial world that was taken in last. Raises `LedgerDamaged`."""
    rows = connection.execute("SELECT record FROM commits WHERE session_id = ? ORDER BY position", (OPERATOR,))
    edits = taken_in(read_record(data) for (data,) in rows)
    return edits[-1].digest if edits else genesis_digest(connection)


def first(rows: Iterable[tuple[Any, ...]]) -> tuple[Any, ...] | None:
    return next(iter(rows), None)
