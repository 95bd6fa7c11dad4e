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
from collections import OrderedDict
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

from footlights.authority.ledger.protocol import Opening
from footlights.authority.ledger.sqlite.head import Head, link_all, read_head
from footlights.authority.ledger.sqlite.lock import WriteLock
from footlights.authority.ledger.sqlite.rows import (
    find_record,
    find_request,
    find_tool,
    initial_digest,
    last_digest,
    latest_records,
    position_of,
    records_after,
    records_from,
    restore,
)
from footlights.authority.ledger.sqlite.schema import (
    LedgerDamaged,
    create,
    has_expected_schema,
    is_new,
    make_durable,
    translated,
    write_version,
)
from footlights.authority.ledger.sqlite.worlds import WorldRows
from footlights.authority.world import JsonWorld, checked_digest
from footlights.errors import InvalidCommand, LedgerInUse, LedgerUnavailable
from footlights.ids import in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Sequence
    from pathlib import Path

    from footlights.authority.ledger.protocol import ToolRecord, TurnRequest
    from footlights.authority.ledger.sqlite.tool_group import WaitingStep
    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World

    Connect: TypeAlias = Callable[[Path], sqlite3.Connection]
    Question: TypeAlias = Callable[[sqlite3.Connection], bool]

MAX_KNOWN_SESSIONS = 10_000

# Python raises the last two from inside SQLite: out of memory, and from a virtual file system of the host.
_COMMIT_ERRORS = (sqlite3.Error, MemoryError, OSError)


class InDoubt(Exception):
    """A COMMIT failed, and it is unknown whether it took effect. `took_effect` asks the file."""

    def __init__(self, took_effect: Question) -> None:
        super().__init__("a COMMIT failed")
        self.took_effect = took_effect


class SqliteStore:
    def __init__(self, path: Path, connect: Connect, max_known_sessions: int = MAX_KNOWN_SESSIONS) -> None:
        self._path = path
        self._connect = connect
        self._lock: WriteLock | None = None
        self._connection: sqlite3.Connection | None = None
        self._first_epoch: int | None = None
        """The first epoch that was begun since the lock was taken."""
        self._files: dict[Path, os.stat_result] = {}
        """The open files. SQLite would go on writing to deleted ones, and no later opening would find that."""
        self._head: Head | None = None
        self._left_in_doubt: Head | None = None
        """The head of the file if a failed COMMIT took effect."""
        self._worlds = WorldRows()
        self._max_known_sessions = max_known_sessions
        self._known_sessions: OrderedDict[str, str | None] = OrderedDict()
        """The last digests of recently used sessions; None for a session without a commit."""

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
                self._worlds.begin(connection)
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
        self._known_sessions.clear()  # a failed write may have taken effect
        self._worlds.forget()
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

    def _current_head(self) -> Head:
        with self._reading() as (_, head):
            return head

    def find(self, session_id: str, turn_id: str) -> CommitRecord | None:
        with self._reading() as (connection, _):
            return find_record(connection, session_id, turn_id)

    def commits_after(self, session_id: str, turn_id: str, limit: int) -> list[CommitRecord]:
        with self._reading() as (connection, head):
            return records_after(connection, head.epoch, session_id, turn_id, limit)

    def latest(self, session_id: str, limit: int) -> list[CommitRecord]:
        with self._reading() as (connection, _):
            return latest_records(connection, session_id, limit)

    def position_of(self, commit_id: str | None) -> int | None:
        with self._reading() as (connection, head):
            return head.position if commit_id is None else position_of(connection, commit_id)

    def commits_from(self, position: int, limit: int) -> list[CommitRecord]:
        with self._reading() as (connection, _):
            return records_from(connection, position, limit)

    def find_request(self, session_id: str, request_id: str) -> str | None:
        with self._reading() as (connection, _):
            return find_request(connection, session_id, request_id)

    def known_digests(self, session_ids: Collection[str]) -> dict[str, str] | None:
        """The result of `last_digests` if it is cached, otherwise None. May be called from any thread."""
        known: dict[str, str] = {}
        for session_id in session_ids:
            try:
                digest = self._known_sessions[session_id]
            except KeyError:
                return None
            if digest is not None:
                known[session_id] = digest
        return known

    def last_digests(self, session_ids: Collection[str]) -> dict[str, str]:
        with self._reading() as (connection, _):
            found: dict[str, str] = {}
            for session_id in session_ids:
                if session_id not in self._known_sessions:
                    self._remember(session_id, last_digest(connection, session_id))
                digest = self._known_sessions[session_id]
                if digest is not None:
                    found[session_id] = digest
            return found

    def _remember(self, session_id: str, commit_digest: str | None) -> None:
        self._known_sessions[session_id] = commit_digest
        self._known_sessions.move_to_end(session_id)
        while len(self._known_sessions) > self._max_known_sessions:
            self._known_sessions.popitem(last=False)

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

    def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        sessions = self.last_digests(dict.fromkeys(record.session_id for record in records))
        head = self._current_head()
        self._check_epochs(records, head.epoch)
        _check_sessions(records, sessions)
        _check_worlds(records, head.world_digest, world)
        after, rows = link_all(head, records)
        with self._writing(after) as connection:
            try:
                connection.executemany("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            except sqlite3.IntegrityError:
                raise InvalidCommand("A turn of the batch is already committed.") from None
            for request in requests:
                _keep_request(connection, request, None)
            if isinstance(world, JsonWorld):
                self._worlds.write(connection, after.position, len(records), world)
        self._worlds.settle()
        for session_id, commit_digest in sessions.items():  # the last ones, since they were checked
            self._remember(session_id, commit_digest)

    def _check_epochs(self, records: Sequence[CommitRecord], last: int) -> None:
        """Raises `LedgerInUse` for an earlier stage on this ledger, which a ledger of the host may wrap twice."""
        first = self._first_epoch or last
        if first < last and any(first <= in_order(record.turn_id)[0] < last for record in records):
            raise LedgerInUse("Another stage has opened this ledger since.")

    def take_steps(self, group: Sequence[WaitingStep]) -> None:
        """Answer each step as if it were alone, in this order, and write what is to be written in one transaction."""
        steps = self._decided(group)
        if not steps:
            return
        after, rows = self._current_head(), list[tuple[int, int, str, str, str]]()
        for each in steps:
            after = after.after_step(each.key, each.step)
            rows.append((after.tool_position, after.epoch, each.key, each.step.value, after.tool_digest))
        with self._writing(after) as connection:
            connection.executemany("INSERT INTO tools VALUES (?, ?, ?, ?, ?)", rows)
            for each, row in zip(steps, rows, strict=True):
                if each.request is not None:
                    _keep_request(connection, each.request, row[0])

    def _decided(self, group: Sequence[WaitingStep]) -> list[WaitingStep]:
        """The steps that are to be written. The others have their answers."""
        written: list[WaitingStep] = []
        known: dict[str, ToolRecord | None] = {}
        turns: dict[tuple[str, str], str] = {}
        with self._reading() as (connection, _):
            for each in group:
                try:
                    if each.key not in known:
                        known[each.key] = find_tool(connection, each.key)
                    if each.decide(known[each.key]):
                        _check_request(connection, each.request, turns)
                        known[each.key] = each.leaves
                        written.append(each)
                except (InvalidCommand, LedgerDamaged) as error:
                    each.refused = error
        return written


def _keep_request(connection: sqlite3.Connection, request: TurnRequest, tool_position: int | None) -> None:
    insert = "INSERT INTO requests VALUES (NULL, ?, ?, ?, ?) ON CONFLICT (session_id, request_id) DO NOTHING"
    names = (request.session_id, request.request_id)
    is_new = connection.execute(insert, (*names, request.turn_id, tool_position)).rowcount
    if not is_new and find_request(connection, *names) != request.turn_id:
        raise _other_turns(request)


def _check_request(
    connection: sqlite3.Connection, request: TurnRequest | None, turns: dict[tuple[str, str], str]
) -> None:
    """Raises `InvalidCommand` if the id of this request belongs to another turn, also to one in `turns`."""
    if request is not None:
        names = (request.session_id, request.request_id)
        if names not in turns:
            turns[names] = find_request(connection, *names) or request.turn_id
        if turns[names] != request.turn_id:
            raise _other_turns(request)


def _other_turns(request: TurnRequest) -> InvalidCommand:
    return InvalidCommand(f"The request id of {request.turn_id} belongs to another turn of {request.session_id}.")


def _check_sessions(records: Sequence[CommitRecord], last: dict[str, str]) -> None:
    for record in records:
        if record.previous != last.get(record.session_id):
            raise InvalidCommand(f"The commit {record.commit_id} is not chained to its session's last.")
        last[record.session_id] = record.commit_digest


def _check_worlds(records: Sequence[CommitRecord], before: str, world: World) -> None:
    """Raises `InvalidCommand` for a batch from which the world could not be restored."""
    for record in records:
        if record.world_before != before:
            raise InvalidCommand(f"The commit {record.commit_id} was not judged in the world before it.")
        before = record.world_after
    # Of a world of the host's own kind only its changes are stored.
    if isinstance(world, JsonWorld) and before != world.digest():
        raise InvalidCommand("The world that came with the batch is not the one that its commits leave behind.")
