"""SQL store: what the stores of all databases share, as plain calls for one caller at a time, which `SqlLedger` runs in
a thread.

It remembers the head that it left and the last digests of recently used sessions, checks each batch and each group of
tool steps against them, and leaves the write to the store of the database.

A write whose outcome is not known raises `InDoubt`. The caller asks `took_effect` until there is an answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeAlias

from footlights.authority.ledger.sql.errors import LedgerDamaged
from footlights.authority.ledger.sql.head import Head, link_all
from footlights.authority.ledger.sql.rows import (
    find_record,
    find_request,
    find_tool,
    last_digest,
    latest_records,
    position_of,
    records_after,
    records_from,
)
from footlights.authority.ledger.sql.worlds import WorldRows
from footlights.authority.world import JsonWorld
from footlights.errors import InvalidCommand, LedgerFenced
from footlights.ids import in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from contextlib import AbstractContextManager

    from footlights.authority.ledger.protocol import Opening, ToolRecord, TurnRequest
    from footlights.authority.ledger.sql.head import CommitRow
    from footlights.authority.ledger.sql.rows import Connection
    from footlights.authority.ledger.sql.tool_group import WaitingStep
    from footlights.authority.record import CommitRecord
    from footlights.authority.world import World

    Question: TypeAlias = Callable[[Connection], bool]
    ToolStepRow: TypeAlias = tuple[int, int, str, str, str]
    """Position, epoch, key, step and digest."""

MAX_KNOWN_SESSIONS = 10_000


class InDoubt(Exception):
    """A write failed, and it is unknown whether it took effect. `took_effect` asks the database."""

    def __init__(self, took_effect: Question) -> None:
        super().__init__("a write is in doubt")
        self.took_effect = took_effect


class SqlStore(ABC):
    def __init__(self, max_known_sessions: int = MAX_KNOWN_SESSIONS) -> None:
        self._head: Head | None = None
        self._first_epoch: int | None = None
        """The first epoch that was begun since the ledger was opened."""
        self._worlds = WorldRows()
        self._max_known_sessions = max_known_sessions
        self._known_sessions: OrderedDict[str, str | None] = OrderedDict()
        """The last digests of recently used sessions; None for a session without a commit."""

    # -- what the database does

    @abstractmethod
    def open(self, genesis: World) -> Opening:
        """Open the ledger, make it if it does not exist, and return the next epoch, which has not begun yet."""

    @abstractmethod
    def begin_epoch(self, epoch: int) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def check_writable(self) -> None:
        """A durable write that changes nothing. Raises `LedgerUnavailable`."""

    @abstractmethod
    def took_effect(self, question: Question) -> bool:
        """Whether a write in doubt took effect. The answer is final."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[tuple[Connection, Head]]:
        """The open ledger. An error of the database in the block becomes a `LedgerUnavailable`."""

    @abstractmethod
    def _write_commits(
        self, after: Head, rows: Sequence[CommitRow], requests: Sequence[TurnRequest], world: World
    ) -> None:
        """Write a batch that leaves the head `after`: all of it or nothing."""

    @abstractmethod
    def _write_steps(self, after: Head, rows: Sequence[ToolStepRow], requests: Sequence[TurnRequest | None]) -> None:
        """Write tool steps, each with its request, that leave the head `after`: all of them or none."""

    def _stored_key(self, key: str) -> str | bytes:
        """The key of a tool, as the database has it."""
        return key

    # -- reading

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

    def forget(self) -> None:
        """Forget what a write that failed may have changed."""
        self._known_sessions.clear()
        self._worlds.forget()

    # -- writing

    def append(self, records: Sequence[CommitRecord], world: World, requests: Sequence[TurnRequest] = ()) -> None:
        sessions = self.last_digests(dict.fromkeys(record.session_id for record in records))
        head = self._current_head()
        self._check_epochs(records, head.epoch)
        _check_sessions(records, sessions)
        _check_worlds(records, head.world_digest, world)
        after, rows = link_all(head, records)
        self._write_commits(after, rows, requests, world)
        self._worlds.settle()
        for session_id, commit_digest in sessions.items():  # the last ones, since they were checked
            self._remember(session_id, commit_digest)

    def _check_epochs(self, records: Sequence[CommitRecord], last: int) -> None:
        """Raises `LedgerFenced` for an earlier stage on this ledger, which a ledger of the host may wrap twice."""
        first = self._first_epoch or last
        if first < last and any(first <= in_order(record.turn_id)[0] < last for record in records):
            raise LedgerFenced("Another stage has opened this ledger since.")

    def take_steps(self, group: Sequence[WaitingStep]) -> None:
        """Answer each step as if it were alone, in this order, and write what is to be written at once."""
        steps = self._decided(group)
        if not steps:
            return
        after, rows = self._current_head(), list["ToolStepRow"]()
        for each in steps:
            after = after.after_step(each.key, each.step)
            rows.append((after.tool_position, after.epoch, each.key, each.step.value, after.tool_digest))
        self._write_steps(after, rows, [each.request for each in steps])

    def _decided(self, group: Sequence[WaitingStep]) -> list[WaitingStep]:
        """The steps that are to be written. The others have their answers."""
        written: list[WaitingStep] = []
        known: dict[str, ToolRecord | None] = {}
        turns: dict[tuple[str, str], str] = {}
        with self._reading() as (connection, _):
            for each in group:
                try:
                    if each.key not in known:
                        known[each.key] = find_tool(connection, each.key, self._stored_key(each.key))
                    if each.decide(known[each.key]):
                        _check_request(connection, each.request, turns)
                        known[each.key] = each.leaves
                        written.append(each)
                except (InvalidCommand, LedgerDamaged) as error:
                    each.refused = error
        return written


def _check_request(connection: Connection, request: TurnRequest | None, turns: dict[tuple[str, str], str]) -> None:
    """Raises `InvalidCommand` if the id of this request belongs to another turn, also to one in `turns`."""
    if request is not None:
        names = (request.session_id, request.request_id)
        if names not in turns:
            turns[names] = find_request(connection, *names) or request.turn_id
        if turns[names] != request.turn_id:
            raise other_turns(request)


def already_committed() -> InvalidCommand:
    return InvalidCommand("A turn of the batch is already committed.")


def other_turns(request: TurnRequest) -> InvalidCommand:
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
