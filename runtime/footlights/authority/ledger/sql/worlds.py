"""Worlds of a ledger in a database: checkpoints of nodes, a portion with each batch, and the removal of dead rows.

The idea: a checkpoint is begun every `CHECKPOINT_EVERY` commits, and each batch writes some of its rows in its own
transaction, until the root is written. The world is immutable, so that the batches in between do not disturb it.

Why it is correct: only the row of `worlds`, which comes with the root, makes a checkpoint count. Nodes remember their
rows only when the transaction is durable, so after a failure the rest is written as if nothing had happened. Numbers
are not used twice while the file is open. When it is opened, rows above the last root are removed; they belong to a
checkpoint that was not finished.

A generation is the rows from one whole checkpoint on. When it has become twice as large as that one, or as the world
can be now, most of it may be dead. Then the next checkpoint is a whole one, and the rows before it are removed, except
those of the genesis, with which every audit begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from footlights.authority.audit.reader import WorldRow
from footlights.authority.audit.rebuild import generation_of
from footlights.authority.ledger.sql.rows import first, kept_worlds
from footlights.authority.world.checkpoint import Checkpoint, RowSpace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights.authority.ledger.sql.rows import Connection
    from footlights.authority.world import JsonWorld
    from footlights.authority.world.checkpoint import NodeRow

CHECKPOINT_EVERY = 4_096
"""Commits between two checkpoints."""
MAX_ROWS = 256
"""The most rows that a small batch of commits writes, and removes."""
_BYTES_A_ROW = 20
"""Fewer than the JSON of a world has for each of its rows, so that a world that became small is noticed."""
LONGEST = 16_384
"""Commits over which larger batches divide a whole checkpoint. Opening in the middle makes those commits again."""


class NodeTable(Protocol):
    """Where the rows are written, as a part of the write of a batch."""

    def insert_nodes(self, checkpoint: Checkpoint, rows: Sequence[NodeRow]) -> None:
        """Insert rows that a checkpoint gave, and with the last of them the world."""
        ...

    def delete_nodes(self, after: int, before: int, limit: int) -> bool:
        """Delete the first `limit` rows between these two. Whether there may be more."""
        ...


class WorldRows:
    """The rows of a world in an open ledger. `write` is part of the write of a batch, and `settle` follows it."""

    def __init__(self) -> None:
        self.space = RowSpace()
        self._next_id = 0
        self._checkpoint: Checkpoint | None = None
        self._rows_a_commit = 1
        self._kept: list[WorldRow] | None = None
        self._has_dead = True
        """Whether rows between the genesis and the generation may be left."""

    def begin(self, connection: Connection) -> int | None:
        """The number from which on rows are to be removed, because an unfinished checkpoint left them."""
        kept = kept_worlds(connection)
        if not kept:
            return None
        self._next_id = kept[-1].root + 1
        found = first(connection.execute("SELECT 1 FROM nodes WHERE id >= ? LIMIT 1", (self._next_id,)))
        return None if found is None else self._next_id

    def forget(self) -> None:
        """The transaction was rolled back, or it is unknown whether it was."""
        self._checkpoint, self._kept, self._has_dead = None, None, True

    def write(self, connection: Connection, table: NodeTable, position: int, commits: int, world: JsonWorld) -> None:
        """Write rows of the checkpoint that is due, and remove dead ones. The batch has this many commits."""
        if self._kept is None:
            self._kept = kept_worlds(connection)
        if not self._kept:  # the ledger began with a world of the host's own kind
            return
        if self._checkpoint is None and position - self._kept[-1].position >= CHECKPOINT_EVERY:
            whole = generation_of(self._kept)[0]
            self._rows_a_commit = (whole.root - whole.first) // LONGEST + 1
            begin = self._first(whole, world.root.size)
            self._checkpoint = Checkpoint(world, position, self.space, begin, self._next_id)
        portion = max(MAX_ROWS, self._rows_a_commit * commits)
        if self._checkpoint is not None:
            rows = self._checkpoint.take(portion)
            self._next_id = self._checkpoint.next_id
            table.insert_nodes(self._checkpoint, rows)
        if self._has_dead:
            self._has_dead = table.delete_nodes(self._kept[0].root, self._kept[-1].first, portion)

    def _first(self, whole: WorldRow, size: int) -> int:
        """The first row of the generation to which the next checkpoint belongs."""
        live = min(whole.root + 1 - whole.first, size // _BYTES_A_ROW + 1)
        return self._next_id if self._next_id - whole.first >= 2 * live else whole.first

    def settle(self) -> None:
        """What was written is durable."""
        done = self._checkpoint
        if done is None:
            return
        done.settle()
        if done.root:
            assert self._kept is not None
            row = WorldRow(done.position, done.root, done.first, done.digest)
            self._kept = [*self._kept[: 1 if done.is_first else None], row]
            self._has_dead = self._has_dead or done.is_first
            self._checkpoint = None
