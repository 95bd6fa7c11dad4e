"""PostgreSQL store: one world in a database as plain calls for one caller at a time, which `PostgresLedger` runs in a
thread.

Each write is one statement with the fence in it (`statements`). It returns no row if another stage owns the world:
`LedgerFenced`. If the server says that it failed, nothing was written. If the connection ends without an answer, it may
have been written, or may still arrive: `InDoubt` is raised, and the caller asks `took_effect` until the database
answers.

Why the answer is true: `took_effect` first raises the link in the world's row. The row's lock makes that wait for a
write that is under way, and a write that arrives later compares the old link and changes nothing. Then the last digest
tells whether the write in doubt was made, and nothing can change it any more. A plain read would overtake the write. A
link that was tried before is not used again, so a late update of the link does no harm either.
"""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg

from footlights.authority.chain import FORMAT, seed
from footlights.authority.ledger.postgres import statements
from footlights.authority.ledger.postgres.arrays import Bodies, Numbers, Texts
from footlights.authority.ledger.postgres.connection import WorldConnection, as_ledger_error, is_definite, translated
from footlights.authority.ledger.postgres.schema import check_tables
from footlights.authority.ledger.protocol import Opening
from footlights.authority.ledger.sql.errors import LedgerDamaged, LedgerUnreachable
from footlights.authority.ledger.sql.head import Head, read_head
from footlights.authority.ledger.sql.rows import initial_digest, restore
from footlights.authority.ledger.sql.store import InDoubt, SqlStore, already_committed, other_turns
from footlights.authority.ledger.sql.worlds import WorldRows
from footlights.authority.world import JsonWorld, checked_digest
from footlights.authority.world.checkpoint import Checkpoint, RowSpace
from footlights.errors import InvalidCommand, LedgerFenced, LedgerInUse, LedgerUnavailable

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from footlights.authority.ledger.address import LedgerUrl
    from footlights.authority.ledger.postgres.connection import Raw
    from footlights.authority.ledger.postgres.node import PostgresNode
    from footlights.authority.ledger.protocol import TurnRequest
    from footlights.authority.ledger.sql.head import CommitRow
    from footlights.authority.ledger.sql.store import Question, ToolStepRow
    from footlights.authority.world import World
    from footlights.authority.world.checkpoint import NodeRow

_PAGE = 1_024
_FIND = b"""SELECT world, owner, link, node, extract(epoch FROM until - clock_timestamp())::float8
    FROM footlights.heads WHERE name = $1"""


class PostgresStore(SqlStore):
    def __init__(self, url: LedgerUrl, node: PostgresNode) -> None:
        super().__init__()
        self._url = url
        self._node = node
        self.world = 0
        """The number of the world in the database; 0 before it was opened."""
        self.owner = ""
        """The token of this owner, new in each epoch."""
        self._link = 0
        self._found = ("", 0)
        """Owner and link of the world when it was opened."""
        self._unfinished: int | None = None

    # -- opening and closing

    def open(self, genesis: World) -> Opening:
        checked_digest(genesis)
        with self._borrowed() as raw:
            check_tables(raw)
            row = self._find(raw)
            if row is None:
                self._make(raw, genesis)
                row = self._find(raw)
                assert row is not None
            self.world, owner, link, node, seconds = row
            if seconds > 0 and owner != self.owner:
                raise LedgerInUse(
                    f"The world {self._url.world} belongs to the node {node}, whose lease ends in {seconds:.1f} s."
                )
            self.forget()
            connection = WorldConnection(raw, self.world)
            with raw.transaction():
                raw.execute(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                ((owner, link),) = raw.execute(
                    b"SELECT owner, link FROM footlights.heads WHERE world = $1", (self.world,)
                ).fetchall()
                self._found = (owner, link)
                self._head = head = read_head(connection)
                self._worlds = WorldRows()
                world = restore(connection, self._worlds.space, head, genesis)
                self._unfinished = self._worlds.begin(connection)
                return Opening(head.epoch + 1, world, initial_digest(connection))

    def _find(self, raw: Raw) -> tuple[Any, ...] | None:
        return raw.execute(_FIND, (self._url.world,)).fetchone()

    def _make(self, raw: Raw, genesis: World) -> None:
        """Make the world. It exists from its last statement on; a crash before leaves rows that belong to no world."""
        ((world,),) = raw.execute(statements.NEXT_WORLD).fetchall()
        if isinstance(genesis, JsonWorld):
            checkpoint = Checkpoint(genesis, 0, RowSpace(), 1, 1)
            while not checkpoint.root:
                ids, bodies, kids = zip(*checkpoint.take(_PAGE), strict=True)
                raw.execute(statements.MAKE_NODES, (world, Numbers(ids), Bodies(bodies), Bodies(kids)))
            raw.execute(statements.MAKE_WORLD, (world, checkpoint.root, checkpoint.digest))
        digest = genesis.digest()
        values = (world, self._url.world, FORMAT, digest, int(isinstance(genesis, JsonWorld)), *[seed(digest)] * 2)
        raw.execute(statements.MAKE, values)

    def begin_epoch(self, epoch: int) -> None:
        head = self._current_head()
        after = head.in_epoch(epoch)
        self._first_epoch = self._first_epoch or epoch
        before, self.owner, self._link = self.owner, uuid.uuid4().hex, 0
        values = (
            *(self.world, self.owner, after.entry_digest, self._node.name, self._node.address, self._lease),
            *(*self._found, head.entry_digest, head.tool_digest, before),
            *(epoch, head.position + 1, self._unfinished or 2**62),
        )
        try:
            with self._borrowed() as raw:
                taken = raw.execute(statements.BEGIN, values).fetchall()
        except LedgerUnreachable as error:  # this owner may have the world or not: opened again, it takes it either way
            raise LedgerUnavailable(*error.args) from None
        if not taken:
            raise LedgerInUse(f"Another stage has taken the world {self._url.world} over.")
        self._head = after

    def close(self) -> None:
        """Release the world, so that another stage may have it at once. If that fails, its lease runs out."""
        owner, self.owner, self._head, self._first_epoch = self.owner, "", None, None
        self.forget()
        if owner:
            try:
                with self._borrowed() as raw:
                    raw.execute(statements.RELEASE, (self.world, owner))
            except LedgerUnavailable:
                pass

    @property
    def _lease(self) -> timedelta:
        return timedelta(seconds=self._node.lease)

    # -- reading

    @contextmanager
    def _borrowed(self) -> Generator[Raw]:
        try:
            with translated(self._url), self._node.borrowed() as raw:
                yield raw
        except BaseException:
            self.forget()
            raise

    @contextmanager
    def _reading(self) -> Generator[tuple[WorldConnection, Head]]:
        if self._head is None:
            raise LedgerUnavailable("The ledger is not open: a stage opens it.")
        with self._borrowed() as raw:
            yield WorldConnection(raw, self.world), self._head

    def _current_head(self) -> Head:
        if self._head is None:
            raise LedgerUnavailable("The ledger is not open: a stage opens it.")
        return self._head

    def _stored_key(self, key: str) -> bytes:
        return key.encode()

    # -- writing

    def _write_commits(
        self, after: Head, rows: Sequence[CommitRow], requests: Sequence[TurnRequest], world: World
    ) -> None:
        head = self._current_head()
        columns = list(zip(*rows, strict=True)) or [()] * 7
        statement = self._statement("entry", head.entry_digest, after.entry_digest, head.position, head.epoch)
        statement.values += [Texts(columns[2]), Texts(columns[3]), Bodies(columns[4])]
        statement.values += [Texts(columns[5]), Texts(columns[6])]
        self._add_requests(statement, requests, [None] * len(requests))
        with self._reading() as (connection, _):
            if isinstance(world, JsonWorld):
                self._worlds.write(connection, _Nodes(connection, statement), after.position, len(rows), world)
            self._execute(connection, statement, after)

    def _write_steps(self, after: Head, rows: Sequence[ToolStepRow], requests: Sequence[TurnRequest | None]) -> None:
        head = self._current_head()
        statement = self._statement("tool", head.tool_digest, after.tool_digest, head.tool_position, head.epoch)
        statement.values += [Bodies(row[2].encode() for row in rows), Texts(row[3] for row in rows)]
        statement.values += [Texts(row[4] for row in rows)]
        taken = [(each, row[0]) for each, row in zip(requests, rows, strict=True) if each is not None]
        self._add_requests(statement, [each for each, _ in taken], [position for _, position in taken])
        with self._reading() as (connection, _):
            self._execute(connection, statement, after)

    def _statement(self, chain: str, before: str, after: str, position: int, epoch: int) -> statements.Statement:
        fence = [self.world, self.owner, self._link, before, after, self._lease]
        return statements.Statement(chain, [*fence, position, epoch])

    def _add_requests(
        self, statement: statements.Statement, requests: Sequence[TurnRequest], tools: Sequence[int | None]
    ) -> None:
        turns: dict[tuple[str, str], str] = {}
        for each in requests:
            if turns.setdefault((each.session_id, each.request_id), each.turn_id) != each.turn_id:
                raise other_turns(each)
        if requests:
            names = (Texts(each.session_id for each in requests), Texts(each.request_id for each in requests))
            statement.add_requests(*names, Texts(each.turn_id for each in requests), Numbers(tools))

    def _execute(self, connection: WorldConnection, statement: statements.Statement, after: Head) -> None:
        try:
            made = connection.raw.execute(statement.text, statement.values).fetchall()
        except psycopg.errors.UniqueViolation:
            raise already_committed() from None
        except (psycopg.Error, OSError, MemoryError) as error:
            if is_definite(error):
                raise
            connection.raw.close()
            cause = as_ledger_error(self._url, error) if isinstance(error, psycopg.Error) else error
            raise InDoubt(after.is_in) from cause
        if not made:
            self._explain(connection)
        self._head = after

    def _explain(self, connection: WorldConnection) -> None:
        """Raise the reason why a statement changed nothing."""
        query = b"SELECT owner, link FROM footlights.heads WHERE world = $1"
        if connection.raw.execute(query, (self.world,)).fetchall() != [(self.owner, self._link)]:
            raise _fenced()
        if read_head(connection) != self._head:
            raise LedgerDamaged("The ledger does not hold what was left in it.")
        raise InvalidCommand("A request id of the batch belongs to another turn of its session.")

    def took_effect(self, question: Question) -> bool:
        if self._head is None:
            raise LedgerUnavailable("The ledger is not open: a stage opens it.")
        self._link += 1
        with self._borrowed() as raw:
            if not raw.execute(statements.RELINK, (self.world, self.owner, self._link)).fetchall():
                raise _fenced()
            connection = WorldConnection(raw, self.world)
            answer = question(connection)
            self._head = read_head(connection)
            return answer

    def check_writable(self) -> None:
        self._current_head()
        with self._borrowed() as raw:
            if not raw.execute(statements.TOUCH, (self.world, self.owner, self._link)).fetchall():
                raise _fenced()


class _Nodes:
    """The rows of nodes, as a part of a statement."""

    def __init__(self, connection: WorldConnection, statement: statements.Statement) -> None:
        self._connection = connection
        self._statement = statement

    def insert_nodes(self, checkpoint: Checkpoint, rows: Sequence[NodeRow]) -> None:
        if rows:
            self._statement.add_nodes(rows[0][0], Bodies(row[1] for row in rows), Bodies(row[2] for row in rows))
        if checkpoint.root:
            self._statement.add_world(checkpoint.position, checkpoint.root, checkpoint.first, checkpoint.digest)

    def delete_nodes(self, after: int, before: int, limit: int) -> bool:
        values = (self._connection.world, after, before, limit)
        return self._connection.raw.execute(statements.DELETE_NODES, values).rowcount == limit


def _fenced() -> LedgerFenced:
    return LedgerFenced("Another stage has taken the ledger over.")
