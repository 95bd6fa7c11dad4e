"""Loading of a new world from the rows of another ledger. It exists from the last statement on."""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any

from footlights.authority.ledger.postgres.arrays import Bodies, Numbers, Texts
from footlights.authority.ledger.postgres.connection import connect, translated
from footlights.authority.ledger.postgres.schema import check_tables
from footlights.authority.ledger.postgres.statements import MAKE, NEXT_WORLD
from footlights.authority.ledger.sql.reader import COLUMNS
from footlights.errors import InvalidCommand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights.authority.ledger.address import LedgerUrl
    from footlights.authority.ledger.sql.reader import SqlReader

_PAGE = 1_024
_EXISTS = b"SELECT 1 FROM footlights.heads WHERE name = $1"
_NUMBERS = {"position", "epoch", "id", "root", "first", "first_position", "tool_position"}
_BODIES = {"record", "body", "kids", "key"}


def load_world(url: LedgerUrl, reader: SqlReader) -> None:
    """Raises `InvalidCommand` if the database has a world of that name, and `LedgerUnavailable`."""
    genesis, ends = reader.genesis(), reader.ends()
    with translated(url), closing(connect(url)) as raw:
        check_tables(raw)
        if raw.execute(_EXISTS, (url.world,)).fetchone():
            raise _exists(url)
        ((world,),) = raw.execute(NEXT_WORLD).fetchall()
        for table in COLUMNS:
            rows = reader.raw_rows(table)
            while page := list(islice(rows, _PAGE)):
                statement, values = _insert(table, page)
                raw.execute(statement, (world, *values))
        head = (genesis.format, genesis.digest, int(genesis.is_json), ends.entry_digest, ends.tool_digest)
        if raw.execute(MAKE, (world, url.world, *head)).rowcount == 0:
            raise _exists(url)


def _insert(table: str, page: Sequence[tuple[Any, ...]]) -> tuple[bytes, list[object]]:
    columns = dict(zip(COLUMNS[table], zip(*page, strict=True), strict=True))
    if table == "requests":  # their numbers are those of the database
        del columns["position"]
    packed = [_packed(name, values) for name, values in columns.items()]
    arrays = ", ".join(f"${number}::{kind}[]" for number, (kind, _) in enumerate(packed, start=2))
    names = ", ".join(columns)
    statement = f"INSERT INTO footlights.{table} (world, {names}) SELECT $1, * FROM unnest({arrays})"
    return statement.encode(), [values for _, values in packed]


def _packed(name: str, values: Sequence[Any]) -> tuple[str, object]:
    if name in _NUMBERS:
        return "bigint", Numbers(values)
    return ("bytea", Bodies(values)) if name in _BODIES else ("text", Texts(values))


def _exists(url: LedgerUrl) -> InvalidCommand:
    return InvalidCommand(f"The database has a world {url.world} already. A copy is a new one.")
