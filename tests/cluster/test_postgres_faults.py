"""The ledger in PostgreSQL on a wire that loses answers: a reported success is durable, a reported failure is not.

Each fault is tried at every statement of every write. The same checks catch the bugs that they are there for.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, closing, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import psycopg
import pytest

from footlights.authority.audit.audit import audit
from footlights.authority.ledger.address import parse_url
from footlights.authority.ledger.names import reader_at
from footlights.authority.ledger.postgres import statements
from footlights.authority.ledger.postgres.ledger import PostgresLedger
from footlights.authority.ledger.postgres.node import PostgresNode
from footlights.authority.ledger.postgres.store import PostgresStore
from footlights.authority.ledger.sql.store import InDoubt
from footlights.errors import FootlightsError, InvalidCommand, LedgerFenced, LedgerUnavailable
from tests.kit.wire import How, Stopped, Wire
from tests.runtime.authority.ledger.batches import EMPTY, batch

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from footlights.authority.audit.audit import AuditReport

    Urls: TypeAlias = Callable[[str], str]
    Write: TypeAlias = Callable[[PostgresLedger], Awaitable[object]]

pytestmark = pytest.mark.cluster

FIRST, AFTER_FIRST = batch(EMPTY, "t1-000001", "t1-000002")
SECOND, AFTER_SECOND = batch(AFTER_FIRST, "t1-000003", "t1-000004", previous=FIRST[-1].commit_digest)

WRITES: dict[str, Write] = {
    "append": lambda ledger: ledger.append(SECOND, AFTER_SECOND),
    "begin_tool": lambda ledger: ledger.begin_tool("new"),
    "complete_tool": lambda ledger: ledger.complete_tool("open", "ok"),
    "release_tool": lambda ledger: ledger.release_tool("open"),
}
FAULTS: list[tuple[How, int]] = [("before", 0), ("after", 0), ("refused", 0), *(("late", after) for after in range(12))]


def audited(url: str) -> AuditReport:
    with reader_at(url) as reader:
        report = audit(reader)
    assert report.flaw is None, report.flaw
    return report


def content(report: AuditReport) -> tuple[int, int]:
    return report.commits, report.tool_steps


@asynccontextmanager
async def opened(url: str, wire: Wire) -> AsyncGenerator[PostgresLedger]:
    place = parse_url(url)
    node = PostgresNode(place, connect=wire.connect)
    with closing(node):
        async with PostgresLedger(place, node=node) as ledger:
            await ledger.begin_epoch(EMPTY)
            await ledger.append(FIRST, AFTER_FIRST)
            await ledger.begin_tool("open")
            yield ledger


async def check_fault(url: str, write: Write, fail_at: int, how: How, delay: int) -> int:
    """One write with one fault. Returns how many statements it took."""
    wire = Wire()
    async with opened(url, wire) as ledger:
        before = content(audited(url))
        wire.arm(fail_at, how, delay)
        try:
            await write(ledger)
        except LedgerUnavailable:
            is_told = False
        else:
            is_told = True
        number = len(wire.statements)
        wire.fail_at = None
        told = content(audited(url))
        assert is_told == (told != before), "what was told is not what is durable"
        wire.deliver()
        assert content(audited(url)) == told, "a late statement had an effect after the answer"
        if not is_told:
            await write(ledger)
            assert content(audited(url)) != before
        await ledger.begin_tool("last")
    audited(url)
    return number


@pytest.mark.parametrize("how", FAULTS, ids=lambda fault: f"{fault[0]}-{fault[1]}")
@pytest.mark.parametrize("write", WRITES)
async def test_what_is_told_is_what_is_durable_whatever_statement_fails(
    postgres_url: Urls, write: str, how: tuple[How, int]
) -> None:
    fail_at, number = 0, 1
    while fail_at < number:
        number = await check_fault(postgres_url(f"{write}-{fail_at}"), WRITES[write], fail_at, *how)
        fail_at += 1


@pytest.mark.parametrize("how", ["before", "after", "late"])
async def test_a_world_can_be_opened_whatever_statement_of_the_opening_failed(postgres_url: Urls, how: How) -> None:
    fail_at, number = 0, 1
    while fail_at < number:
        url, wire = postgres_url(f"open-{fail_at}"), Wire()
        async with opened(url, wire) as ledger:
            await ledger.close()
            wire.arm(fail_at, how)
            with suppress(FootlightsError):
                await ledger.begin_epoch(EMPTY)
            number = len(wire.statements)
            wire.fail_at = None
            wire.deliver()
            await ledger.begin_epoch(EMPTY)
            await ledger.begin_tool("last")
        assert content(audited(url)) == (2, 2)
        fail_at += 1


@pytest.mark.parametrize("error", ["53100", "58030", "40001", "40P01", "57014", "53200"])
async def test_an_error_of_the_server_leaves_nothing_and_the_next_write_works(postgres_url: Urls, error: str) -> None:
    url, wire = postgres_url("refused"), Wire(error=error)
    async with opened(url, wire) as ledger:
        wire.arm(0, "refused")
        with pytest.raises(LedgerUnavailable):
            await ledger.append(SECOND, AFTER_SECOND)
        assert content(audited(url)) == (2, 1)
        wire.fail_at = None
        await ledger.append(SECOND, AFTER_SECOND)
    assert content(audited(url)) == (4, 1)


async def check_takeover(url: str) -> None:
    """A write of the earlier owner that arrives after a takeover changes nothing, and is told to nobody."""
    wire = Wire()
    async with opened(url, wire) as first, PostgresLedger(url) as second:
        wire.arm(0, "late", 10**6)
        assert _attempt(first._store.append, SECOND, AFTER_SECOND) == "in doubt"
        expire(url)
        await second.begin_epoch(EMPTY)
        taken = content(audited(url))
        wire.deliver()
        assert content(audited(url)) == taken
        with pytest.raises(LedgerFenced):
            first._store.took_effect(lambda _: True)
        with pytest.raises(LedgerFenced):
            await first.append(SECOND, AFTER_SECOND)
        assert content(audited(url)) == taken


def _attempt(append: Callable[..., None], *arguments: object) -> str:
    try:
        append(*arguments)
    except InDoubt:
        return "in doubt"
    return "written"


def expire(url: str) -> None:
    place = parse_url(url)
    with Wire().connect(place) as raw:
        raw.execute("UPDATE footlights.heads SET until = 'epoch' WHERE name = $1", (place.world,))


async def test_a_write_that_arrives_after_a_takeover_changes_nothing(postgres_url: Urls) -> None:
    await check_takeover(postgres_url("ghost"))


# -- the bugs that these checks are there for


async def test_a_statement_without_the_fence_is_caught(postgres_url: Urls, monkeypatch: pytest.MonkeyPatch) -> None:
    unfenced = "WHERE world = $1 AND ($2::text, $3::bigint, $4::text) IS NOT NULL"
    fence = statements._FENCE.partition("WHERE")[0] + unfenced
    monkeypatch.setattr(statements, "_FENCE", fence)
    with pytest.raises((AssertionError, psycopg.errors.UniqueViolation)):
        await check_takeover(postgres_url("unfenced"))


async def test_a_plain_read_of_what_became_of_a_write_is_caught(
    postgres_url: Urls, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(store: PostgresStore, question: Callable[[Any], bool]) -> bool:
        with store._reading() as (connection, _):
            return question(connection)

    monkeypatch.setattr(PostgresStore, "took_effect", read)

    async def every_delay() -> None:
        for delay in range(16):
            await check_fault(postgres_url(f"plain-{delay}"), WRITES["append"], 0, "late", delay)

    with pytest.raises((AssertionError, InvalidCommand)):
        await every_delay()


async def check_that_a_stopped_owner_holds_nothing(url: str) -> None:
    """An owner that stops for ever once its statement was sent does not keep another one from taking over."""
    wire = Wire()
    async with opened(url, wire) as first:
        wire.stop_after = b"WITH head"
        with pytest.raises(Stopped):
            await first.append(SECOND, AFTER_SECOND)
        try:
            expire_or_fail(url)
            async with PostgresLedger(url) as second:
                await second.begin_epoch(EMPTY)
        finally:
            wire.stopped.close()
            wire.stop_after = None


def expire_or_fail(url: str) -> None:
    """Wait for the row as one who takes over would, for a second."""
    place = parse_url(url)
    with Wire().connect(place) as raw:
        raw.execute("SET lock_timeout = '1s'")
        try:
            raw.execute("UPDATE footlights.heads SET until = 'epoch' WHERE name = $1", (place.world,))
        except psycopg.errors.LockNotAvailable:
            raise AssertionError("the stopped owner holds the world") from None


async def test_a_stopped_owner_holds_nothing(postgres_url: Urls) -> None:
    await check_that_a_stopped_owner_holds_nothing(postgres_url("stopped"))


async def test_a_write_in_a_transaction_of_its_own_is_caught(
    postgres_url: Urls, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = PostgresStore._execute

    def in_transaction(store: PostgresStore, connection: Any, statement: Any, after: Any) -> None:
        connection.raw.execute(b"BEGIN")
        execute(store, connection, statement, after)
        connection.raw.execute(b"COMMIT")

    monkeypatch.setattr(PostgresStore, "_execute", in_transaction)
    with pytest.raises(AssertionError, match="holds the world"):
        await check_that_a_stopped_owner_holds_nothing(postgres_url("transaction"))
