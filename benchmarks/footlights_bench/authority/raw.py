"""The rival: plain sqlite3 that writes the very rows that our ledger writes, and knows nothing of what they mean.

The same tables and indexes, the same bytes, the same number of transactions, as durable as ours. But every row exists
beforehand: it judges nothing, digests nothing, encodes nothing, checks nothing, and stays in the caller's thread.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, TypeAlias

from attrs import frozen

from footlights.authority import canonical, chain
from footlights.authority.ledger.sqlite.schema import TABLES
from footlights.authority.record import record_to_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Self

    from footlights.authority import World
    from footlights_bench.authority.work import Batch

    Row: TypeAlias = tuple[int, int, str, str, bytes, str, str]

_EPOCH = 1


@frozen
class RawBatch:
    rows: Sequence[Row]
    world: tuple[int, bytes]
    """Its position and its document."""
    end: str
    """The digest of the last row."""


class RowMaker:
    """Makes the rows that a ledger in its first epoch must write, by the definition of its format."""

    def __init__(self, genesis: World) -> None:
        self.first_link = chain.link_epoch(chain.seed(genesis.digest()), _EPOCH, 1)
        self._head = self.first_link
        self._position = 0

    def batch(self, batch: Batch) -> RawBatch:
        rows: list[Row] = []
        for record in batch.records:
            self._position += 1
            self._head = chain.link(self._head, self._position, _EPOCH, record.commit_digest)
            data = canonical(record_to_json(record))
            names = (record.session_id, record.turn_id)
            rows.append((self._position, _EPOCH, *names, data, record.commit_digest, self._head))
        return RawBatch(rows, (self._position, canonical(batch.world.view())), self._head)


class RawLedger:
    """Use it in a `with` block, in one thread."""

    def __init__(self, path: Path, genesis: World, first_link: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON"):
            self._connection.execute(f"PRAGMA {pragma}")
        for table in TABLES:
            self._connection.execute(table)
        document = canonical(genesis.view())
        self._connection.execute("INSERT INTO meta VALUES (1, ?, ?, ?)", (chain.FORMAT, genesis.digest(), document))
        self._connection.execute("INSERT INTO world VALUES (1, 0, ?)", (document,))
        self._connection.execute("INSERT INTO ends VALUES (1, ?, ?)", (first_link, chain.seed(genesis.digest())))
        self._connection.execute("INSERT INTO epochs VALUES (?, 1, ?)", (_EPOCH, first_link))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def append(self, batch: RawBatch) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?)", batch.rows)
        self._connection.execute("UPDATE world SET position = ?, document = ?", batch.world)
        self._connection.execute("UPDATE ends SET entry_digest = ?", (batch.end,))
        self._connection.execute("COMMIT")
