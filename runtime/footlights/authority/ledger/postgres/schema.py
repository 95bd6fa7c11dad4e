"""Schema of the ledgers in a database: the tables of all worlds, and their version.

`create` makes it once for each database. A database without it, or with another version, is refused before anything is
written.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from footlights.authority.digest import digest
from footlights.authority.ledger.postgres.connection import NO_TABLES, SCHEMA, connect, translated
from footlights.authority.ledger.sql.errors import LedgerFormat
from footlights.errors import LedgerUnavailable

if TYPE_CHECKING:
    from footlights.authority.ledger.address import LedgerUrl
    from footlights.authority.ledger.postgres.connection import Raw

VERSION = 1

TABLES = f"""
    CREATE SCHEMA {SCHEMA};
    CREATE TABLE {SCHEMA}.about (version integer NOT NULL);
    INSERT INTO {SCHEMA}.about VALUES ({VERSION});
    CREATE TABLE {SCHEMA}.heads (
        world bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text COLLATE "C" NOT NULL UNIQUE,
        format integer NOT NULL,
        genesis_digest text NOT NULL,
        is_json integer NOT NULL,
        entry_digest text NOT NULL,
        tool_digest text NOT NULL,
        owner text NOT NULL,
        link bigint NOT NULL,
        node text NOT NULL,
        address text NOT NULL,
        until timestamptz NOT NULL
    ) WITH (fillfactor = 50);
    CREATE TABLE {SCHEMA}.epochs (
        world bigint, epoch bigint, first_position bigint NOT NULL, entry_digest text NOT NULL,
        PRIMARY KEY (world, epoch)
    );
    CREATE TABLE {SCHEMA}.commits (
        world bigint, position bigint, epoch bigint NOT NULL, session_id text COLLATE "C" NOT NULL,
        turn_id text COLLATE "C" NOT NULL, record bytea NOT NULL, commit_digest text NOT NULL,
        entry_digest text NOT NULL, PRIMARY KEY (world, position), UNIQUE (world, session_id, turn_id)
    );
    CREATE TABLE {SCHEMA}.nodes (
        world bigint, id bigint, body bytea NOT NULL, kids bytea NOT NULL, PRIMARY KEY (world, id)
    );
    CREATE TABLE {SCHEMA}.worlds (
        world bigint, position bigint, root bigint NOT NULL, first bigint NOT NULL, digest text NOT NULL,
        PRIMARY KEY (world, position)
    );
    CREATE TABLE {SCHEMA}.tools (
        world bigint, position bigint, epoch bigint NOT NULL, key bytea NOT NULL, step text NOT NULL,
        entry_digest text NOT NULL, PRIMARY KEY (world, position)
    );
    CREATE INDEX tools_by_key ON {SCHEMA}.tools (world, sha256(key));
    CREATE TABLE {SCHEMA}.requests (
        world bigint, position bigint GENERATED ALWAYS AS IDENTITY, session_id text COLLATE "C" NOT NULL,
        request_id text COLLATE "C" NOT NULL, turn_id text NOT NULL, tool_position bigint,
        PRIMARY KEY (world, position), UNIQUE (world, session_id, request_id)
    );
"""

_SERVER = """SELECT current_setting('server_version_num')::integer, current_setting('server_encoding'),
    pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on',
    to_regclass('footlights.about') IS NOT NULL"""
_OLDEST = 140_000


def init(url: LedgerUrl) -> bool:
    """Make the tables in this database. Whether they were missing. Raises `LedgerUnavailable`."""
    with translated(url), closing(connect(url)) as raw:
        return create(raw)


def create(raw: Raw) -> bool:
    """Make the tables in a database. Whether they were missing. Raises `LedgerFormat`."""
    if check_server(raw):
        check_version(raw)
        return False
    with raw.transaction():
        raw.execute("SELECT pg_advisory_xact_lock(hashtext('footlights ledger init'))")
        if check_server(raw):  # made by another one meanwhile
            return False
        for statement in TABLES.split(";")[:-1]:
            raw.execute(statement.encode())
    return True


def check_server(raw: Raw, *, writes: bool = True) -> bool:
    """Whether the database has tables of Footlights. Raises `LedgerUnavailable` for a server that cannot be used."""
    ((version, encoding, is_read_only, has_tables),) = raw.execute(_SERVER).fetchall()
    if version < _OLDEST:
        raise LedgerUnavailable(f"The ledger needs PostgreSQL {_OLDEST // 10_000} or newer.")
    if encoding != "UTF8":
        raise LedgerUnavailable("The database of the ledger must have the encoding UTF8.")
    if is_read_only and writes:
        raise LedgerUnavailable("The server is a replica, or read-only: a stage needs the primary.")
    return bool(has_tables)


def check_tables(raw: Raw, *, writes: bool = True) -> None:
    """Raises `LedgerUnavailable` for a server that cannot be used, and `LedgerFormat` for other tables, or none."""
    if not check_server(raw, writes=writes):
        raise LedgerFormat(NO_TABLES)
    check_version(raw)


def check_version(raw: Raw) -> None:
    """Raises `LedgerFormat` unless the tables have the version that this one knows."""
    rows = raw.execute(f"SELECT version FROM {SCHEMA}.about".encode()).fetchall()
    if rows != [(VERSION,)]:
        found = rows[0][0] if len(rows) == 1 else "no"
        raise LedgerFormat(f"The tables have version {found}, and this version of Footlights knows only {VERSION}.")


_SHAPE = """SELECT c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, NULL) || CASE WHEN a.attnotnull
        THEN ' not null' ELSE '' END || CASE WHEN l.collname = 'C' THEN ' C' ELSE '' END
    FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
    LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
    WHERE c.relnamespace = 'footlights'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'footlights'
    UNION ALL SELECT 'trigger ' || t.tgname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
    WHERE c.relnamespace = 'footlights'::regnamespace
    UNION ALL SELECT 'rule ' || rulename FROM pg_rules WHERE schemaname = 'footlights'"""

EXPECTED = "cd3b74b76a9cd6b3f94ef3e6939068e7f7018369b4f43a406415dae82d74268e"
"""The digest of the columns, the indexes, the triggers and the rules that `TABLES` makes."""


def shape(raw: Raw) -> str:
    """The digest of what the schema has."""
    return digest(sorted(row[0] for row in raw.execute(_SHAPE.encode()).fetchall()))
