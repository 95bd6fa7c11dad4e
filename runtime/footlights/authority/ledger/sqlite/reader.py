"""Read-only access to a ledger file, also while a stage writes it.

All data of one reader belongs to the moment at which it was opened. It trusts nothing: a malformed row raises
`Altered`, and a file that is not a ledger raises `LedgerUnreadable`.

SQLite creates a file beside a database with a write-ahead log. A user without write permission in that folder can still
read a ledger that no stage has open: then there is no log, and the reader detects a write of a stage by the file's time
and size.
"""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from footlights.authority.audit.reader import Altered, Entry, LedgerUnreadable
from footlights.authority.ledger.sql.reader import COMMITS, SqlReader, entry_of
from footlights.authority.ledger.sqlite.schema import has_expected_schema, is_new, translated
from footlights.errors import LedgerUnavailable

if TYPE_CHECKING:
    from collections.abc import Generator
    from os import PathLike


class SqliteReader(SqlReader):
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

    def mentioning(self, words: str) -> list[Entry]:
        """The commits whose record contains this text, in order. It scans all of them."""
        query = f"{COMMITS} WHERE instr(record, CAST(? AS BLOB)) ORDER BY position"
        return [entry_of(row) for row in self._rows(query, words)]

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
