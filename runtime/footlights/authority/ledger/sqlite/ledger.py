"""Durable ledger: one SQLite file with one writing stage at a time and any number of readers.

    async with SqliteLedger("tavern.ledger") as ledger, open_stage(cast, ledger=ledger) as stage:
        ...

Once the file exists, its world is used instead of the cast's. A JSON world is stored as a document. A world of the
host's own kind is rebuilt from the cast's world by applying all committed changes, so the cast must keep providing the
same one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from footlights.authority.ledger.sql.ledger import SqlLedger
from footlights.authority.ledger.sqlite.schema import connect
from footlights.authority.ledger.sqlite.store import SqliteStore

if TYPE_CHECKING:
    import os

    from footlights.authority.ledger.sqlite.store import Connect


class SqliteLedger(SqlLedger):
    """Implements `footlights.Ledger` in a file. `begin_epoch` opens the file, `close` closes it.

    `connect` opens the connection; tests replace it to inject faults.
    """

    def __init__(self, path: str | os.PathLike[str], *, connect: Connect = connect) -> None:
        self.path = Path(path)
        """The file, which others may read meanwhile."""
        super().__init__(SqliteStore(self.path, connect))
