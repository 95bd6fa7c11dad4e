"""Loading of a new ledger file from the rows of another ledger, in one transaction."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from footlights.authority.ledger.sql.reader import COLUMNS
from footlights.authority.ledger.sqlite.schema import connect, create_tables, is_new, make_durable, translated
from footlights.errors import InvalidCommand

if TYPE_CHECKING:
    from pathlib import Path

    from footlights.authority.ledger.sql.reader import SqlReader


def load_file(path: Path, reader: SqlReader) -> None:
    """Raises `InvalidCommand` if the file exists, and `LedgerUnavailable`."""
    if path.exists():
        raise InvalidCommand(f"{path} exists. A copy is a new ledger.")
    genesis, ends = reader.genesis(), reader.ends()
    with translated(), closing(connect(path)) as connection:
        make_durable(connection)
        if not is_new(connection):  # made by another one meanwhile
            raise InvalidCommand(f"{path} exists. A copy is a new ledger.")
        create_tables(connection, genesis.digest, genesis.is_json, ends.entry_digest, ends.tool_digest)
        for table, columns in COLUMNS.items():
            values = ", ".join("CAST(? AS TEXT)" if each == "key" else "?" for each in columns)
            rows = reader.raw_rows(table)
            if table == "requests":  # their numbers are those of the file
                rows = ((None, *row[1:]) for row in rows)
            connection.executemany(f"INSERT INTO {table} VALUES ({values})", rows)
        connection.execute("COMMIT")
