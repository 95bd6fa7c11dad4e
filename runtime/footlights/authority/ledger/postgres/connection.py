"""Connection to one world in PostgreSQL, which understands the queries of `sql.rows`.

All worlds are in the same tables. A query names the tables as in a file of one ledger, and is translated once: each
table becomes its rows of one world, and the parameters get numbers.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import errors
from psycopg.conninfo import make_conninfo

from footlights.authority.ledger.postgres.arrays import DUMPERS
from footlights.authority.ledger.sql.errors import LedgerFormat, LedgerUnreachable
from footlights.errors import InvalidCommand, LedgerUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from typing import TypeAlias

    from footlights.authority.ledger.address import LedgerUrl

    Raw: TypeAlias = psycopg.Connection[tuple[Any, ...]]
    Connect: TypeAlias = Callable[["LedgerUrl"], Raw]

SCHEMA = "footlights"
_TOKEN = re.compile(
    r"(?P<value>\?)"
    r"|(?P<how>FROM|JOIN) (?P<table>meta|ends|epochs|commits|nodes|worlds|tools|requests)\b(?: AS (?P<alias>\w+))?"
    r"|CAST\((?P<blob>\S+) AS BLOB\)"
    r"|(?P<key>it\.key = \?)"
)
_OF_HEADS = {
    "meta": "1 AS id, format, genesis_digest, is_json",
    "ends": "1 AS id, entry_digest, tool_digest",
}
_SET_UP = """SELECT set_config('statement_timeout', '0', false), set_config('default_transaction_isolation',
    'read committed', false), set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit')
    IN ('off', 'local') THEN 'on' ELSE current_setting('synchronous_commit') END, false)"""
"""A statement that a timeout ends while it waits for a replica would be reported as durable, and is not."""
_DEFAULTS = {
    "application_name": "footlights",
    "client_encoding": "UTF8",
    "connect_timeout": "5",
    "tcp_user_timeout": "10000",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
}
NO_TABLES = "The database has no tables of Footlights. This makes them: footlights ledger init URL"
_REASONS: tuple[tuple[type[psycopg.Error], str], ...] = (
    (errors.UndefinedTable, NO_TABLES),
    (errors.InvalidSchemaName, NO_TABLES),
    (errors.InsufficientPrivilege, "The role lacks rights in the schema footlights of the database."),
    (errors.ReadOnlySqlTransaction, "The server is a replica, or read-only: a stage needs the primary."),
    (errors.DiskFull, "The disk of the database is full."),
)


def connect(url: LedgerUrl) -> Raw:
    """A connection with autocommit, which any thread may use, one at a time. Raises `InvalidCommand`."""
    try:
        conninfo = make_conninfo(**(_DEFAULTS | dict(url.parameters)))
    except psycopg.ProgrammingError:  # it would quote the parameter, which may be a part of a password
        raise InvalidCommand(
            "A parameter in the URL of the ledger is not one of libpq, or not what it can be."
        ) from None
    connection = psycopg.connect(conninfo, autocommit=True, cursor_factory=psycopg.RawCursor)
    for kind, dumper in DUMPERS:
        connection.adapters.register_dumper(kind, dumper)
    connection.execute(_SET_UP)
    return connection


class WorldConnection:
    """Satisfies `sql.rows.Connection`."""

    def __init__(self, raw: Raw, world: int) -> None:
        self.raw = raw
        self.world = world

    def execute(self, sql: str, values: Sequence[object] = (), /) -> list[tuple[Any, ...]]:
        query = in_world(sql)
        return self.raw.execute(query, (self.world, *values), binary=True).fetchall()


@lru_cache(256)
def in_world(sql: str) -> bytes:
    """The query for the rows of the world $1; its own parameters are numbered from $2."""
    number = 1

    def translated(match: re.Match[str]) -> str:
        nonlocal number
        if match["table"]:
            columns = _OF_HEADS.get(match["table"])
            rows = f"SELECT {columns or '*'} FROM {SCHEMA}.{'heads' if columns else match['table']} WHERE world = $1"
            return f"{match['how']} ({rows}) AS {match['alias'] or match['table']}"
        if match["blob"] and match["blob"] != "?":
            return str(match["blob"])
        number += 1
        # An index on the keys themselves could not hold long ones.
        return f"sha256(it.key) = sha256(${number}::bytea) AND it.key = ${number}" if match["key"] else f"${number}"

    return _TOKEN.sub(translated, sql).encode()


def is_definite(error: BaseException) -> bool:
    """Whether the server said that the statement failed. Otherwise it may have taken effect."""
    if not isinstance(error, psycopg.Error):
        return False
    state = error.sqlstate or "08"
    return error.diag.severity_nonlocalized == "ERROR" and not state.startswith("08")


@contextmanager
def translated(url: LedgerUrl) -> Generator[None]:
    """Converts errors of psycopg to `LedgerUnavailable` or a subclass, without a secret in any of them."""
    try:
        yield
    except psycopg.Error as error:
        raise as_ledger_error(url, error) from None


def as_ledger_error(url: LedgerUrl, error: psycopg.Error) -> LedgerUnavailable:
    for kind, sentence in _REASONS:
        if isinstance(error, kind):
            is_format = isinstance(error, errors.UndefinedTable | errors.InvalidSchemaName)
            return LedgerFormat(sentence) if is_format else LedgerUnavailable(sentence)
    raised = LedgerUnavailable if is_definite(error) else LedgerUnreachable
    said = " ".join(url.without_secrets(str(error)).split())
    return raised(f"The database of the ledger cannot be used: {said.rstrip('.')}.")
