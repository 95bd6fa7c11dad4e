"""SQLite store: a ledger file as plain calls for one caller at a time, which `SqliteLedger` runs in its thread.

Every write is one transaction that moves the file from one `Head` to the next. If anything fails before its COMMIT, the
connection is closed, which rolls it back, and `LedgerUnavailable` is raised. If the COMMIT itself fails, it may have
taken effect all the same: `InDoubt` is raised, and the caller asks `took_effect` until the file answers.

Why this is correct: the store remembers the head that it left and, after a failed COMMIT, the head that the COMMIT
would leave. When the file is opened again its head must be one of the two, so a commit is never lost or made twice, and
a file that another program changed is refused as damaged. `took_effect` answers inside a write of its own, because only
a later successful write makes the answer final (see there).

Rejected: treating a failed COMMIT as rolled back, because a later recovery may still find it; and ending the stage,
because a full disk is often only temporary.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

from footlights.authority.ledger.protocol import Opening
from footlights.authority.ledger.sql.errors import LedgerDamaged
from footlights.authority.ledger.sql.head import Head, read_head
from footlights.authority.ledger.sql.rows import find_request, initial_digest, restore
from footlights.authority.ledger.sql.store import MAX_KNOWN_SESSIONS, InDoubt, SqlStore, already_committed, other_turns
from footlights.authority.ledger.sql.worlds import WorldRows
from footlights.authority.ledger.sqlite.lock import WriteLock
from footlights.authority.ledger.sqlite.schema import (
    create,
    has_expected_schema,
    insert_nodes,
    is_new,
    make_durable,
    translated,
    write_version,
)
from footlights.authority.world import JsonWorld, checked_digest
from footlights.errors import LedgerUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path

    from footlights.authority.ledger.protocol import TurnRequest
    from footlights.authority.ledger.sql.head import CommitRow
    from footlights.authority.ledger.sql.store import Question, ToolStepRow
    from footlights.authority.world import World
    from footlights.authority.world.checkpoint import Checkpoint, NodeRow

    Connect: TypeAlias = Callable[[Path], sqlite3.Connection]

# Python raises the last two from inside SQLite: out of memory, and from a virtual file system of the host.
_COMMIT_ERRORS = (sqlite3.Error, MemoryError, OSError)


class SqliteStore(SqlStore):
    def __init__(self, path: Path, connect: Connect, max_known_sessions: int = MAX_KNOWN_SESSIONS) -> None:
        super().__init__(max_known_sessions)
        self._path = path
        self._connect = connect
        self._lock: WriteLock | None = None
        self._connection: sqlite3.Connection | None = None
        self._files: dict[Path, os.stat_result] = {}
        """The open files. SQLite would go on writing to deleted ones, and no later opening would find that."""
        self._left_in_doubt: Head | None = None
        """The head of the file if a failed COMMIT took effect."""

    # -- opening and closing

    def open(self, genesis: World) -> Opening:
        """Lock the file, create it if it does not exist, and return the next epoch, which has not begun yet.

        Raises `LedgerInUse`, `LedgerFormat`, `LedgerDamaged`, `LedgerUnavailable`, `RegistrationError`.
        """
        checked_digest(genesis)
        taken_now = self._lock is None
        try:
            with self._reading(genesis) as (connection, head):
                self._worlds = WorldRows()
                world = restore(connection, self._worlds.space, head, genesis)
                unfinished = self._worlds.begin(connection)
                if unfinished is not None:
                    connection.execute("DELETE FROM nodes WHERE id >= ?", (unfinished,))
                return Opening(head.epoch + 1, world, initial_digest(connection))
        except BaseException:
            if taken_now:
                self.close()
            raise

    def close(self) -> None:
        self._disconnect()
        self._head = self._left_in_doubt = self._first_epoch = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _disconnect(self) -> None:
        self.forget()  # a failed write may have taken effect
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _opened(self, genesis: World | None) -> tuple[sqlite3.Connection, Head]:
        if self._lock is None:
            if genesis is None:
                raise LedgerUnavailable("The ledger is not open: a stage opens it.")
            self._lock = WriteLock(self._path)
        if self._connection is None:
            if self._head is not None and not self._path.exists():
                raise LedgerDamaged("The ledger's file is gone.")
            self._connection = self._connect(self._path)
            self._prepare(self._connection, genesis)
            path = self._path.resolve()
            self._files = {each: each.stat() for each in (path, path.with_name(f"{path.name}-wal"))}
        assert self._head is not None
        return self._connection, self._head

    def _begin(self, connection: sqlite3.Connection) -> None:
        for path, found in self._files.items():
            try:
                is_there = os.path.samestat(path.stat(), found)
            except FileNotFoundError:
                is_there = False
            if not is_there:
                raise LedgerDamaged("A file of the ledger is gone, or another is in its place.")
        connection.execute("BEGIN IMMEDIATE")

    def _prepare(self, connection: sqlite3.Connection, genesis: World | None) -> None:
        new = is_new(connection)
        if new and (self._head is not None or genesis is None):
            raise LedgerDamaged("The ledger's file has been emptied.")
        if not new and not has_expected_schema(connection):
            raise LedgerDamaged("The tables and indexes in the ledger's file are not those that it was made with.")
        make_durable(connection)
        if new and genesis is not None:
            create(connection, genesis.digest(), genesis if isinstance(genesis, JsonWorld) else None)
        found = read_head(connection)
        if self._head is not None and found not in (self._head, self._left_in_doubt):
            raise LedgerDamaged("The ledger's file does not hold what was left in it.")
        self._head, self._left_in_doubt = found, None

    # -- reading

    @contextmanager
    def _reading(self, genesis: World | None = None) -> Generator[tuple[sqlite3.Connection, Head]]:
        """The open file. After any error the next call opens it again."""
        try:
            with translated():
                yield self._opened(genesis)
        except BaseException:
            self._disconnect()
            raise

    # -- writing

    @contextmanager
    def _writing(self, after: Head) -> Generator[sqlite3.Connection]:
        """One transaction, which leaves the head `after`."""
        with self._reading() as (connection, _):
            self._begin(connection)
            yield connection
            ends = (after.entry_digest, after.tool_digest)
            connection.execute("UPDATE ends SET entry_digest = ?, tool_digest = ?", ends)
        try:
            connection.execute("COMMIT")
        except _COMMIT_ERRORS as error:
            self._disconnect()
            self._left_in_doubt = after
            raise InDoubt(after.is_in) from error
        self._head = after

    def took_effect(self, question: Question) -> bool:
        """Whether a write in doubt took effect. The answer is final.

        A failed COMMIT may be complete in the log without having reached the disk, or invisible now and found by the
        recovery after a crash. A later write that succeeds settles both: it reaches the disk with everything before it,
        and it overwrites an invisible one.
        """
        with self._reading() as (connection, _):
            self._begin(connection)
            answer = question(connection)
            write_version(connection)
            connection.execute("COMMIT")
            return answer

    def check_writable(self) -> None:
        """A durable write that changes nothing. Raises `LedgerUnavailable`."""
        self.took_effect(lambda _: True)

    def begin_epoch(self, epoch: int) -> None:
        head = self._current_head()
        after = head.in_epoch(epoch)
        self._first_epoch = self._first_epoch or epoch
        with self._writing(after) as connection:
            connection.execute("INSERT INTO epochs VALUES (?, ?, ?)", (epoch, head.position + 1, after.entry_digest))

    def _write_commits(
        self, after: Head, rows: Sequence[CommitRow], requests: Sequence[TurnRequest], world: World
    ) -> None:
        with self._writing(after) as connection:
            try:
                connection.executemany("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            except sqlite3.IntegrityError:
                raise already_committed() from None
            for request in requests:
                _keep_request(connection, request, None)
            if isinstance(world, JsonWorld):
                self._worlds.write(connection, self, after.position, len(rows), world)

    def _write_steps(self, after: Head, rows: Sequence[ToolStepRow], requests: Sequence[TurnRequest | None]) -> None:
        with self._writing(after) as connection:
            connection.executemany("INSERT INTO tools VALUES (?, ?, ?, ?, ?)", rows)
            for request, row in zip(requests, rows, strict=True):
                if request is not None:
                    _keep_request(connection, request, row[0])

    def insert_nodes(self, checkpoint: Checkpoint, rows: Sequence[NodeRow]) -> None:
        assert self._connection is not None
        insert_nodes(self._connection, checkpoint, rows)

    def delete_nodes(self, after: int, before: int, limit: int) -> bool:
        assert self._connection is not None
        dead = "SELECT id FROM nodes WHERE id > ? AND id < ? ORDER BY id LIMIT ?"
        removed = self._connection.execute(f"DELETE FROM nodes WHERE id IN ({dead})", (after, before, limit))
        return removed.rowcount == limit


def _keep_request(connection: sqlite3.Connection, request: TurnRequest, tool_position: int | None) -> None:
    insert = "INSERT INTO requests VALUES (NULL, ?, ?, ?, ?) ON CONFLICT (session_id, request_id) DO NOTHING"
    names = (request.session_id, request.request_id)
    is_new = connection.execute(insert, (*names, request.turn_id, tool_position)).rowcount
    if not is_new and find_request(connection, *names) != request.turn_id:
        raise other_turns(request)
