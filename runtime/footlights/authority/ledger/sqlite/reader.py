"""Read-only access to a ledger file, also while a stage writes it.

All data of one reader belongs to the moment at which it was opened. It trusts nothing: a malformed row raises
`Altered`, and a file that is not a ledger raises `LedgerUnreadable`.

SQLite creates a file beside a database with a write-ahead log. A user without write permission in that folder can still
read a ledger that no stage has open: then there is no log, and the reader detects a write of a stage by the file's time
and size.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from footlights.authority.audit.reader import (
    Altered,
    EndsRow,
    Entry,
    EpochRow,
    GenesisRow,
    LedgerUnreadable,
    RequestRow,
    ToolRow,
    WorldRow,
)
from footlights.authority.ledger.sqlite.schema import has_expected_schema, is_new, translated
from footlights.errors import LedgerUnavailable

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from os import PathLike

    from footlights.authority.world.checkpoint import NodeRow

_COMMITS = "SELECT position, epoch, session_id, turn_id, record, commit_digest, entry_digest FROM commits"
_NODES = "SELECT id, body, kids FROM nodes WHERE id BETWEEN ? AND ? ORDER BY id"
_PAGE = 256
_BEFORE_ALL = -(2**63)
_COMMIT_ID = re.compile(r"(?:c-)?([0-9a-f]{8,64})")
_POSITION = re.compile(r"[0-9]{1,15}")


class SqliteReader:
    """A `LedgerReader` of a ledger file; use it in a `with` block, in one thread.

    Raises `LedgerUnreadable` if the file does not exist or is not a ledger.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = Path(path)
        if not self._path.is_file():
            raise LedgerUnreadable("There is no such file.")
        self._as_found: tuple[int, int] | None = None
        """Time and size of the file when it was opened, if SQLite does not isolate this reader from a writer."""
        try:
            self._connection = _opened(self._path, "mode=ro")
        except LedgerUnreadable as error:
            if not _lacks_permission(error):
                raise
            with _readable():
                self._as_found = self._stamp()
            self._connection = _opened_without_log(self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    # -- structure

    def check_schema(self) -> None:
        with _readable():
            ours = has_expected_schema(self._connection)
        if not ours:
            raise Altered("schema", "The tables and indexes are not those that the ledger was made with.")

    def check_file(self) -> None:
        ((found,),) = self._rows("PRAGMA integrity_check(1)")
        if found != "ok":
            raise Altered("file", f"SQLite finds it damaged: {' '.join(found.split())}.")

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
        return map(_entry, self._in_order(_COMMITS, after))

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
            _check_shape(f"tool step {row[0]}", row, int, int, str, str, str)
            yield ToolRow(*row)

    def requests(self) -> Iterator[RequestRow]:
        for row in self._in_order("SELECT position, session_id, turn_id, tool_position FROM requests"):
            _check_shape(f"request {row[0]}", row, int, str, str, int | None)
            yield RequestRow(*row)

    def ends(self) -> EndsRow:
        row = self._only_row("ends", "SELECT id, entry_digest, tool_digest FROM ends")
        _check_shape("ends", row, str, str)
        return EndsRow(*row)

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
        rows = self._rows(f"{_COMMITS} ORDER BY position DESC LIMIT ?", number)
        return [_entry(row) for row in rows][::-1]

    def named(self, name: str) -> list[Entry]:
        """The commits that match a position, an id or digest or a prefix of one, or a turn, in order."""
        if _POSITION.fullmatch(name):
            found = [_entry(row) for row in self._rows(f"{_COMMITS} WHERE position = ?", int(name))]
            if found:
                return found
        commit_id = _COMMIT_ID.fullmatch(name)
        if commit_id is not None:
            where, value = "commit_digest GLOB ?", f"{commit_id[1]}*"
        else:
            where, value = "turn_id = ?", name
        return [_entry(row) for row in self._rows(f"{_COMMITS} WHERE {where} ORDER BY position", value)]

    def of_session(self, session_id: str) -> list[Entry]:
        """The commits of this session, in order."""
        return [_entry(row) for row in self._rows(f"{_COMMITS} WHERE session_id = ? ORDER BY position", session_id)]

    def mentioning(self, words: str) -> list[Entry]:
        """The commits whose record contains this text, in order. It scans all of them."""
        query = f"{_COMMITS} WHERE instr(record, CAST(? AS BLOB)) ORDER BY position"
        return [_entry(row) for row in self._rows(query, words)]

    def _in_order(self, query: str, after: int = _BEFORE_ALL) -> Iterator[tuple[Any, ...]]:
        # In pages, so that an iteration that stops early leaves no open statement, which would keep the file open.
        while page := self._rows(f"{query} WHERE position > ? ORDER BY position LIMIT {_PAGE}", after):
            yield from page
            after = page[-1][0]

    def _only_row(self, place: str, query: str) -> tuple[Any, ...]:
        rows = self._rows(query)
        if [row[0] for row in rows] != [1]:
            raise Altered(place, "Its row is missing, or is not the only one.")
        return rows[0][1:]

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with _readable():
            rows = self._connection.execute(query, values).fetchall()
            if self._as_found is not None and self._as_found != self._stamp():
                raise LedgerUnreadable("A stage has written to it meanwhile. Read it again.")
        return rows

    def _stamp(self) -> tuple[int, int]:
        status = self._path.stat()
        return status.st_mtime_ns, status.st_size


def _lacks_permission(error: LedgerUnreadable) -> bool:
    code = getattr(getattr(error.__cause__, "__cause__", None), "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


def _opened_without_log(path: Path) -> sqlite3.Connection:
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise LedgerUnreadable(
            "Reading it needs write permission in its folder while its write-ahead log exists. "
            f"Copy both files, {path.name} and {log.name}, to a folder of your own and read them there."
        )
    return _opened(path, "mode=ro&immutable=1")


def _opened(path: Path, how: str) -> sqlite3.Connection:
    with _readable(), ExitStack() as undo:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, isolation_level=None)
        undo.callback(connection.close)
        connection.execute("BEGIN")
        if is_new(connection):
            raise LedgerUnreadable("The file is empty.")
        undo.pop_all()
    # Invalid bytes in a text can be read, and are then reported as altered.
    connection.text_factory = _text
    return connection


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


@contextmanager
def _readable() -> Generator[None]:
    try:
        with translated():
            yield
    except LedgerUnavailable as error:
        raise LedgerUnreadable(str(error)) from error


def _entry(row: tuple[Any, ...]) -> Entry:
    _check_shape(f"commit {row[0]}", row, int, int, str, str, bytes, str, str, position=row[0])
    return Entry(*row)


def _check_shape(place: str, row: tuple[Any, ...], *kinds: Any, position: int | None = None) -> None:
    # A column of SQLite accepts a value of any type.
    if not all(isinstance(value, kind) for value, kind in zip(row, kinds, strict=True)):
        raise Altered(place, "Its row holds a value of the wrong kind.", position)
