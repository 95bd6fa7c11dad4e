"""Reader of a ledger in a database: the rows for an audit, and lookups, also while a stage writes.

All data of one reader belongs to the moment at which it was opened. It trusts nothing: a malformed row raises
`Altered`, and what is not a ledger raises `LedgerUnreadable`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from footlights.authority.audit.reader import (
    Altered,
    EndsRow,
    Entry,
    EpochRow,
    GenesisRow,
    RequestRow,
    ToolRow,
    WorldRow,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights.authority.world.checkpoint import NodeRow

COMMITS = "SELECT position, epoch, session_id, turn_id, record, commit_digest, entry_digest FROM commits"
_NODES = "SELECT id, body, kids FROM nodes WHERE id BETWEEN ? AND ? ORDER BY id"
_PAGE = 256
_BEFORE_ALL = -(2**63)
_COMMIT_ID = re.compile(r"(?:c-)?([0-9a-f]{8,64})")
_POSITION = re.compile(r"[0-9]{1,15}")


COLUMNS = {
    "epochs": ("epoch", "first_position", "entry_digest"),
    "commits": ("position", "epoch", "session_id", "turn_id", "record", "commit_digest", "entry_digest"),
    "nodes": ("id", "body", "kids"),
    "worlds": ("position", "root", "first", "digest"),
    "tools": ("position", "epoch", "key", "step", "entry_digest"),
    "requests": ("position", "session_id", "request_id", "turn_id", "tool_position"),
}
"""The tables of a ledger, besides its genesis and its ends. The rows are in the order of the first column."""


class SqlReader(ABC):
    """A `LedgerReader`; use it in a `with` block, in one thread."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def check_schema(self) -> None: ...

    @abstractmethod
    def check_file(self) -> None: ...

    @abstractmethod
    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Raises `LedgerUnreadable`."""

    # -- whole tables

    def genesis(self) -> GenesisRow:
        row = self._only_row("genesis", "SELECT id, format, genesis_digest, is_json FROM meta")
        _check_shape("genesis", row, int, str, int)
        if row[2] not in (0, 1):
            raise Altered("genesis", "It is said to be of no kind of world.")
        return GenesisRow(row[0], row[1], row[2] == 1)

    def epochs(self) -> Iterator[EpochRow]:
        for row in self._rows("SELECT epoch, first_position, entry_digest FROM epochs ORDER BY epoch"):
            _check_shape(f"epoch {row[0]}", row, int, int, str)
            yield EpochRow(*row)

    def entries(self, after: int = _BEFORE_ALL) -> Iterator[Entry]:
        return map(entry_of, self._in_order(COMMITS, after))

    def worlds(self) -> list[WorldRow]:
        rows = self._rows("SELECT position, root, first, digest FROM worlds ORDER BY position")
        for row in rows:
            _check_shape("world", row, int, int, int, str)
        return [WorldRow(*row) for row in rows]

    def nodes(self, first: int, last: int) -> Iterator[NodeRow]:
        while rows := self._rows(f"{_NODES} LIMIT {_PAGE}", first, last):
            yield from rows
            first = rows[-1][0] + 1

    def tools(self) -> Iterator[ToolRow]:
        for row in self._in_order("SELECT position, epoch, key, step, entry_digest FROM tools"):
            yield self._tool_row(row)

    def _tool_row(self, row: tuple[Any, ...]) -> ToolRow:
        _check_shape(f"tool step {row[0]}", row, int, int, str, str, str)
        return ToolRow(*row)

    def requests(self) -> Iterator[RequestRow]:
        for row in self._in_order("SELECT position, session_id, turn_id, tool_position FROM requests"):
            _check_shape(f"request {row[0]}", row, int, str, str, int | None)
            yield RequestRow(*row)

    def ends(self) -> EndsRow:
        row = self._only_row("ends", "SELECT id, entry_digest, tool_digest FROM ends")
        _check_shape("ends", row, str, str)
        return EndsRow(*row)

    def raw_rows(self, table: str) -> Iterator[tuple[Any, ...]]:
        """All rows of a table of `COLUMNS`, as they are, with keys as bytes."""
        columns = COLUMNS[table]
        named = ", ".join("CAST(key AS BLOB)" if each == "key" else each for each in columns)
        return self._in_order(f"SELECT {named} FROM {table}", by=columns[0])

    # -- lookups

    def count(self) -> int:
        """The number of commits."""
        ((number,),) = self._rows("SELECT count(*) FROM commits")
        return int(number)

    def count_tool_steps(self) -> int:
        """The number of tool steps."""
        ((number,),) = self._rows("SELECT count(*) FROM tools")
        return int(number)

    def latest(self, number: int) -> list[Entry]:
        """The last commits, in order."""
        rows = self._rows(f"{COMMITS} ORDER BY position DESC LIMIT ?", number)
        return [entry_of(row) for row in rows][::-1]

    def named(self, name: str) -> list[Entry]:
        """The commits that match a position, an id or digest or a prefix of one, or a turn, in order."""
        if _POSITION.fullmatch(name):
            found = [entry_of(row) for row in self._rows(f"{COMMITS} WHERE position = ?", int(name))]
            if found:
                return found
        commit_id = _COMMIT_ID.fullmatch(name)
        if commit_id is not None:
            where, value = f"substr(commit_digest, 1, {len(commit_id[1])}) = ?", commit_id[1]
        else:
            where, value = "turn_id = ?", name
        return [entry_of(row) for row in self._rows(f"{COMMITS} WHERE {where} ORDER BY position", value)]

    def of_session(self, session_id: str) -> list[Entry]:
        """The commits of this session, in order."""
        return [entry_of(row) for row in self._rows(f"{COMMITS} WHERE session_id = ? ORDER BY position", session_id)]

    @abstractmethod
    def mentioning(self, words: str) -> list[Entry]:
        """The commits whose record contains this text, in order. It scans all of them."""

    def _in_order(self, query: str, after: int = _BEFORE_ALL, by: str = "position") -> Iterator[tuple[Any, ...]]:
        # In pages, so that an iteration that stops early leaves no open statement, which would keep the file open.
        while page := self._rows(f"{query} WHERE {by} > ? ORDER BY {by} LIMIT {_PAGE}", after):
            yield from page
            after = page[-1][0]

    def _only_row(self, place: str, query: str) -> tuple[Any, ...]:
        rows = self._rows(query)
        if [row[0] for row in rows] != [1]:
            raise Altered(place, "Its row is missing, or is not the only one.")
        return rows[0][1:]


def entry_of(row: tuple[Any, ...]) -> Entry:
    _check_shape(f"commit {row[0]}", row, int, int, str, str, bytes, str, str, position=row[0])
    return Entry(*row)


def _check_shape(place: str, row: tuple[Any, ...], *kinds: Any, position: int | None = None) -> None:
    # A column of SQLite accepts a value of any type.
    if not all(isinstance(value, kind) for value, kind in zip(row, kinds, strict=True)):
        raise Altered(place, "Its row holds a value of the wrong kind.", position)
