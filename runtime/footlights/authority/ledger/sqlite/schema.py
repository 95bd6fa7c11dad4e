"""Schema of a ledger file: its tables, its identification, and the settings of a connection.

A file of another application, of a later version, or with another schema is refused before anything in it is changed.
The text of `TABLES`, comments included, is part of the version: SQLite stores it, and it is compared literally.

The version of the file counts changes of the tables. It is not the format of the chains, which is part of every digest.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from functools import cache
from typing import TYPE_CHECKING

from footlights.authority.chain import FORMAT, seed
from footlights.authority.ledger.sql.errors import LedgerDamaged, LedgerFormat
from footlights.authority.world.checkpoint import Checkpoint, RowSpace
from footlights.errors import LedgerUnavailable
from footlights.private_files import create_for_owner_only

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from footlights.authority.world import JsonWorld
    from footlights.authority.world.checkpoint import NodeRow

APPLICATION_ID = 0x466F6F74
"""Marks the file as a ledger: "Foot"."""

VERSION = 6
"""Version of the tables, in the header of the file."""

TABLES = (
    """CREATE TABLE meta (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        format INTEGER NOT NULL,
        genesis_digest TEXT NOT NULL,
        is_json INTEGER NOT NULL CHECK (is_json IN (0, 1))  -- 0 for a world of the host's own kind
    )""",
    """CREATE TABLE epochs (
        epoch INTEGER PRIMARY KEY,
        first_position INTEGER NOT NULL,
        entry_digest TEXT NOT NULL
    )""",
    """CREATE TABLE commits (
        position INTEGER PRIMARY KEY,
        epoch INTEGER NOT NULL REFERENCES epochs,
        session_id TEXT NOT NULL,
        turn_id TEXT NOT NULL,
        record BLOB NOT NULL,  -- canonical JSON
        commit_digest TEXT NOT NULL,
        entry_digest TEXT NOT NULL,
        UNIQUE (session_id, turn_id)
    )""",
    """CREATE TABLE nodes (
        id INTEGER PRIMARY KEY,
        body BLOB NOT NULL,  -- the bytes that are hashed
        kids BLOB NOT NULL  -- the ids of the nodes below, 8 bytes each
    )""",
    """CREATE TABLE worlds (
        position INTEGER PRIMARY KEY,  -- of the last commit that it contains
        root INTEGER NOT NULL,
        first INTEGER NOT NULL,  -- no node of it is below
        digest TEXT NOT NULL
    )""",
    """CREATE TABLE tools (
        position INTEGER PRIMARY KEY,
        epoch INTEGER NOT NULL REFERENCES epochs,
        key TEXT NOT NULL,
        step TEXT NOT NULL CHECK (step IN ('started', 'ok', 'error', 'released')),
        entry_digest TEXT NOT NULL
    )""",
    "CREATE INDEX tools_by_key ON tools (key)",
    """CREATE TABLE ends (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        entry_digest TEXT NOT NULL,  -- of the last epoch or commit, so that it is missed
        tool_digest TEXT NOT NULL  -- of the last step of a tool, likewise
    )""",
    """CREATE TABLE requests (
        position INTEGER PRIMARY KEY,
        session_id TEXT NOT NULL,
        request_id TEXT NOT NULL,
        turn_id TEXT NOT NULL,
        tool_position INTEGER REFERENCES tools,  -- of the step with which it was written; NULL: with the commit
        UNIQUE (session_id, request_id)
    )""",
)

_PAGE = 256
# A reader that opens the file after a crash locks it for a moment. A longer lock is an error.
_BUSY_SECONDS = 0.1


def connect(path: Path) -> sqlite3.Connection:
    """A connection that any thread may use, one at a time, without implicit transactions."""
    create_for_owner_only(path)  # SQLite copies the mode to the files beside it
    return sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def is_new(connection: sqlite3.Connection) -> bool:
    """Whether the file is empty. Changes nothing. Raises `LedgerFormat` if it is neither empty nor a ledger."""
    ((application_id,),) = connection.execute("PRAGMA application_id")
    version = version_of(connection)
    ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_master")
    if (application_id, version, tables) == (0, 0, 0):
        return True
    if application_id != APPLICATION_ID:
        raise LedgerFormat("The file is a database, but not a ledger.")
    if version != VERSION:
        raise LedgerFormat(f"The ledger has version {version}, and this version of Footlights knows only {VERSION}.")
    return False


def version_of(connection: sqlite3.Connection) -> int:
    """The version of the tables; 0 in an empty file."""
    version: int
    ((version,),) = connection.execute("PRAGMA user_version")
    return version


def has_expected_schema(connection: sqlite3.Connection) -> bool:
    """Whether the file has exactly our tables and indexes, literally, and no trigger or view."""
    found, expected = _schema_of(connection), _expected_schema()
    # A set, because VACUUM changes the order.
    return len(found) == len(expected) and set(found) == set(expected)


def _schema_of(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()


@cache
def _expected_schema() -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        for table in TABLES:
            connection.execute(table)
        return _schema_of(connection)


def make_durable(connection: sqlite3.Connection) -> None:
    """Make every COMMIT durable when it returns, and let readers and the writer work without waiting for each other."""
    ((mode,),) = connection.execute("PRAGMA journal_mode = WAL")
    if mode != "wal":
        raise LedgerUnavailable("The ledger is in a place where SQLite cannot keep a write-ahead log.")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")  # on macOS a plain fsync does not reach the disk
    connection.execute("PRAGMA foreign_keys = ON")


def create(connection: sqlite3.Connection, genesis_digest: str, genesis: JsonWorld | None) -> None:
    """Create the tables in an empty file, in one transaction. `genesis` is None for a world of the host's own kind."""
    end = seed(genesis_digest)
    create_tables(connection, genesis_digest, genesis is not None, end, end)
    if genesis is not None:
        checkpoint = Checkpoint(genesis, 0, RowSpace(), 1, 1)
        while not checkpoint.root:
            insert_nodes(connection, checkpoint, checkpoint.take(_PAGE))
    connection.execute("COMMIT")


def create_tables(
    connection: sqlite3.Connection,
    genesis_digest: str,
    is_json: bool,
    entry_digest: str,
    tool_digest: str,
) -> None:
    """Begin a transaction, and make the tables in it, with the genesis and the ends."""
    connection.execute("BEGIN IMMEDIATE")
    for table in TABLES:
        connection.execute(table)
    connection.execute("INSERT INTO meta VALUES (1, ?, ?, ?)", (FORMAT, genesis_digest, is_json))
    connection.execute("INSERT INTO ends VALUES (1, ?, ?)", (entry_digest, tool_digest))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    write_version(connection)


def insert_nodes(connection: sqlite3.Connection, checkpoint: Checkpoint, rows: Sequence[NodeRow]) -> None:
    """Insert rows that a checkpoint gave, and with the last of them the world."""
    connection.executemany("INSERT INTO nodes VALUES (?, ?, ?)", rows)
    if checkpoint.root:
        world = (checkpoint.position, checkpoint.root, checkpoint.first, checkpoint.digest)
        connection.execute("INSERT INTO worlds VALUES (?, ?, ?, ?)", world)
        connection.execute("DELETE FROM worlds WHERE first < ? AND position > 0", (checkpoint.first,))


def write_version(connection: sqlite3.Connection) -> None:
    """Write the version into the file's header, even if it is there already."""
    connection.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def translated() -> Generator[None]:
    """Converts errors of SQLite and the system to `LedgerUnavailable` or a subclass."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise _as_ledger_error(error) from error


def _as_ledger_error(error: Exception) -> LedgerUnavailable:
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_NOTADB:
            return LedgerFormat("The file is not a ledger.")
        case sqlite3.SQLITE_CORRUPT:
            return LedgerDamaged("The ledger's file is damaged.")
        case _:
            return LedgerUnavailable(f"The ledger's file cannot be used: {error}.")
