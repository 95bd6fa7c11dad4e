"""Read-only access to a world in PostgreSQL, also while a stage writes it, and on a replica.

A reader is one transaction, so all its data belongs to one moment, and it locks nothing.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from footlights.authority.audit.reader import Altered, Entry, LedgerUnreadable, ToolRow
from footlights.authority.ledger.postgres.connection import WorldConnection, connect, translated
from footlights.authority.ledger.postgres.schema import EXPECTED, check_tables, shape
from footlights.authority.ledger.sql.reader import COMMITS, SqlReader, entry_of
from footlights.errors import LedgerUnavailable

if TYPE_CHECKING:
    from collections.abc import Generator

    from footlights.authority.ledger.address import LedgerUrl

_FIND = b"SELECT world FROM footlights.heads WHERE name = $1"


class PostgresReader(SqlReader):
    """A `LedgerReader` of a world in PostgreSQL; use it in a `with` block, in one thread.

    Raises `LedgerUnreadable` if the database cannot be read or does not have the world.
    """

    def __init__(self, url: LedgerUrl) -> None:
        self._url = url
        with self._readable(), ExitStack() as undo:
            self._raw = connect(url)
            undo.callback(self._raw.close)
            self._raw.execute(b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            check_tables(self._raw, writes=False)
            found = self._raw.execute(_FIND, (url.world,)).fetchone()
            if found is None:
                raise LedgerUnreadable(f"The database has no world {url.world}.")
            undo.pop_all()
        self._connection = WorldConnection(self._raw, found[0])

    def close(self) -> None:
        self._raw.close()

    def check_schema(self) -> None:
        with self._readable():
            found = shape(self._raw)
        if found != EXPECTED:
            raise Altered("schema", "The tables and indexes are not those that the ledger was made with.")

    def check_file(self) -> None:
        """A server checks its own pages, if it was made with checksums."""

    def mentioning(self, words: str) -> list[Entry]:
        query = f"{COMMITS} WHERE position(CAST(? AS bytea) IN record) > 0 ORDER BY position"
        return [entry_of(row) for row in self._rows(query, words.encode())]

    def _tool_row(self, row: tuple[Any, ...]) -> ToolRow:
        position, epoch, key, step, digest = row
        return super()._tool_row((position, epoch, key.decode(errors="surrogateescape"), step, digest))

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._readable():
            return self._connection.execute(query, values)

    @contextmanager
    def _readable(self) -> Generator[None]:
        try:
            with translated(self._url):
                yield
        except LedgerUnavailable as error:
            raise LedgerUnreadable(str(error)) from None
