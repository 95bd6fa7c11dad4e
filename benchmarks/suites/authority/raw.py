"""Raw SQLite: the peer of the ledger, which writes the same rows and knows nothing of their meaning.

It has the same tables and indexes, writes the same bytes in as many transactions, and is as durable. Every row is made
before the clock starts: it does not judge, digest, encode or check anything, and it runs in the caller's thread.
"""

from __future__ import annotations

import gc
import sqlite3
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

import trio
from attrs import frozen

from footlights.authority import canonical, chain
from footlights.authority.ledger.sqlite.schema import TABLES
from footlights.authority.record import record_to_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Self

    from footlights.authority import World
    from suites.authority.work import Batch

    Row: TypeAlias = tuple[int, int, str, str, bytes, str, str]

_EPOCH = 1


@frozen
class _Rows:
    """The rows of one batch."""

    commits: Sequence[Row]
    end: str
    """The digest of the last commit."""


class RawSqlite:
    """A ledger file in its first epoch. Use it in a `with` block, in one thread."""

    def __init__(self, path: Path, genesis: World) -> None:
        self._position = 0
        seed = chain.seed(genesis.digest())
        self._head = chain.link_epoch(seed, _EPOCH, 1)
        self._connection = sqlite3.connect(path, isolation_level=None)
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "fullfsync = ON"):
            self._connection.execute(f"PRAGMA {pragma}")
        for table in TABLES:
            self._connection.execute(table)
        self._connection.execute("INSERT INTO meta VALUES (1, ?, ?, TRUE)", (chain.FORMAT, genesis.digest()))
        self._connection.execute("INSERT INTO ends VALUES (1, ?, ?)", (self._head, seed))
        self._connection.execute("INSERT INTO epochs VALUES (?, 1, ?)", (_EPOCH, self._head))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    async def write(self, batches: Sequence[Batch]) -> float:
        """Write these batches in one transaction each; return the seconds without the time to make the rows."""
        await trio.lowlevel.checkpoint()
        made = [self._rows(batch) for batch in batches]
        gc.collect()
        began = perf_counter()
        for rows in made:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?, ?)", rows.commits)
            self._connection.execute("UPDATE ends SET entry_digest = ?", (rows.end,))
            self._connection.execute("COMMIT")
        return perf_counter() - began

    def _rows(self, batch: Batch) -> _Rows:
        commits: list[Row] = []
        for record in batch.records:
            self._position += 1
            self._head = chain.link(self._head, self._position, _EPOCH, record.commit_digest)
            data = canonical(record_to_json(record))
            names = (record.session_id, record.turn_id)
            commits.append((self._position, _EPOCH, *names, data, record.commit_digest, self._head))
        return _Rows(commits, self._head)
