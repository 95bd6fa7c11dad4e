"""Names of ledgers: the path of a file, or the URL of a world in PostgreSQL. What opens a ledger asks here."""

from __future__ import annotations

from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from footlights.authority.ledger.address import LedgerUrl, is_url, parse_url
from footlights.errors import InvalidCommand, LedgerUnavailable

if TYPE_CHECKING:
    import os
    from collections.abc import Generator

    from footlights.authority.ledger.postgres.node import PostgresNode
    from footlights.authority.ledger.sql.ledger import SqlLedger
    from footlights.authority.ledger.sql.reader import SqlReader

LedgerName: TypeAlias = "Path | LedgerUrl"
"""`str` of it can be shown to anybody: it has no password."""


def ledger_name(name: str | os.PathLike[str] | LedgerUrl) -> LedgerName:
    """Read the name of a ledger. Raises `InvalidCommand` for a URL that is none."""
    if isinstance(name, LedgerUrl):
        return name
    return parse_url(name) if isinstance(name, str) and is_url(name) else Path(name)


@contextmanager
def open_node(name: LedgerName) -> Generator[PostgresNode | None]:
    """What ledgers in this database share in one process; None for a file. Raises as `ledger_at`."""
    if not isinstance(name, LedgerUrl):
        yield None
        return
    try:
        from footlights.authority.ledger.postgres.node import PostgresNode
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    with closing(PostgresNode(name)) as node:
        yield node


def ledger_at(
    name: str | os.PathLike[str] | LedgerUrl, *, node: PostgresNode | None = None, patience: float = 0.0
) -> SqlLedger:
    """The ledger of this name, which is not open yet. In a database it waits `patience` seconds for another
    stage to leave it.

    Raises `InvalidCommand`, and `LedgerUnavailable` if what it needs is not installed.
    """
    place = ledger_name(name)
    if isinstance(place, LedgerUrl):
        try:
            from footlights.authority.ledger.postgres.ledger import PostgresLedger
        except ModuleNotFoundError as error:
            raise _missing(error) from None
        return PostgresLedger(place, node=node, patience=patience)
    from footlights.authority.ledger.sqlite.ledger import SqliteLedger  # a stage without a file needs no SQLite

    return SqliteLedger(place)


def reader_at(name: str | os.PathLike[str] | LedgerUrl) -> SqlReader:
    """A reader of the ledger of this name: use it in a `with` block. Raises `LedgerUnreadable`, and as `ledger_at`."""
    place = ledger_name(name)
    if isinstance(place, LedgerUrl):
        try:
            from footlights.authority.ledger.postgres.reader import PostgresReader
        except ModuleNotFoundError as error:
            raise _missing(error) from None
        return PostgresReader(place)
    from footlights.authority.ledger.sqlite.reader import SqliteReader

    return SqliteReader(place)


def init_database(name: str) -> bool:
    """Make the tables of ledgers in a database. Whether they were missing. Raises as `ledger_at`."""
    place = ledger_name(name)
    if not isinstance(place, LedgerUrl):
        raise InvalidCommand("A ledger file needs no preparation: this is for postgresql://USER@HOST/DATABASE.")
    try:
        from footlights.authority.ledger.postgres.schema import init
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    return init(place)


def _missing(error: ModuleNotFoundError) -> Exception:
    if error.name != "psycopg":
        return error
    return LedgerUnavailable("A ledger in PostgreSQL needs: pip install 'footlights[postgres]'")
