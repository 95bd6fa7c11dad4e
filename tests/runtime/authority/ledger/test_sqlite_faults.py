"""SQLite ledger with disk faults: a reported success is durable, a reported failure is not, and the ledger recovers."""

from __future__ import annotations

import resource
import sqlite3
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pytest
import trio
from attrs import Factory, define
from trio.testing import wait_all_tasks_blocked

from footlights.authority import (
    CommitRecord,
    ToolRecord,
    ToolState,
    TurnRequest,
    World,
    chain,
)
from footlights.authority.audit.audit import audit
from footlights.authority.ledger.sql.errors import LedgerDamaged
from footlights.authority.ledger.sqlite.ledger import SqliteLedger
from footlights.authority.ledger.sqlite.reader import SqliteReader
from footlights.authority.ledger.sqlite.schema import connect, write_version
from footlights.errors import InvalidCommand, LedgerUnavailable
from tests.runtime.authority.ledger.batches import EMPTY, batch

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from trio.testing import MockClock

    from footlights.authority.audit.audit import AuditReport

    Write: TypeAlias = Callable[[SqliteLedger], Awaitable[object]]

FIRST, AFTER_FIRST = batch(EMPTY, "t1-000001", "t1-000002")
SECOND, AFTER_SECOND = batch(AFTER_FIRST, "t1-000003", "t1-000004", "t1-000005", previous=FIRST[-1].commit_digest)


@define
class Disk:
    """Opens connections whose statements fail on cue, before they do anything or after all is done."""

    fail_at: int | None = None
    """Which statement from now on, counting from 0."""
    when: Literal["before", "after"] = "before"
    repaired_after: int = 0
    """How many times the file cannot even be opened after that."""
    statements: list[str] = Factory(list[str])

    def arm(self, fail_at: int, when: Literal["before", "after"] = "before", *, repaired_after: int = 0) -> None:
        self.statements.clear()
        self.fail_at, self.when, self.repaired_after = fail_at, when, repaired_after

    def connect(self, path: Path) -> sqlite3.Connection:
        if self.fail_at is not None and len(self.statements) > self.fail_at and self.repaired_after:
            self.repaired_after -= 1
            raise sqlite3.OperationalError("unable to open database file")
        disk = self

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                with disk.carrying_out(sql):
                    return super().execute(sql, *values)

            def executemany(self, sql: str, *values: Any) -> sqlite3.Cursor:
                with disk.carrying_out(sql):
                    return super().executemany(sql, *values)

        return sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False, factory=Connection)

    @contextmanager
    def carrying_out(self, statement: str) -> Iterator[None]:
        fails = len(self.statements) == self.fail_at
        self.statements.append(statement)
        if fails and self.when == "before":
            raise sqlite3.OperationalError("disk I/O error")
        yield
        if fails:
            raise sqlite3.OperationalError("disk I/O error")


def content(path: Path) -> list[list[tuple[object, ...]]]:
    """Everything that is durable, as somebody else sees it."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
        return [
            reader.execute(f"SELECT * FROM {table}").fetchall()
            for table in ("epochs", "commits", "nodes", "worlds", "tools", "ends")
        ]


def audited(path: Path) -> AuditReport:
    with SqliteReader(path) as reader:
        return audit(reader)


def turns(path: Path) -> list[str]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
        return [turn_id for (turn_id,) in reader.execute("SELECT turn_id FROM commits ORDER BY position")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


async def opened(path: Path, disk: Disk) -> SqliteLedger:
    """A ledger with something of everything in it."""
    ledger = SqliteLedger(path, connect=disk.connect)
    await ledger.begin_epoch(EMPTY)
    await ledger.append(FIRST, AFTER_FIRST)
    await ledger.begin_tool("open")
    return ledger


WRITES: dict[str, Write] = {
    "append": lambda ledger: ledger.append(SECOND, AFTER_SECOND),
    "begin_epoch": lambda ledger: ledger.begin_epoch(EMPTY),
    "begin_tool": lambda ledger: ledger.begin_tool("new"),
    "complete_tool": lambda ledger: ledger.complete_tool("open", "ok"),
    "release_tool": lambda ledger: ledger.release_tool("open"),
}


async def told(write: Awaitable[object]) -> bool:
    """Whether the caller is told that it was kept."""
    try:
        await write
    except LedgerUnavailable:
        return False
    return True


@pytest.mark.parametrize("repaired_after", [0, 3])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", WRITES)
async def test_an_error_at_any_statement_of_a_write_leaves_no_doubt(
    tmp_path: Path, quiet_clock: MockClock, name: str, when: Literal["before", "after"], repaired_after: int
) -> None:
    write = WRITES[name]
    outcomes: set[bool] = set()
    for statement in range(100):
        disk, path = Disk(), tmp_path / str(statement)
        ledger = await opened(path, disk)
        before = content(path)
        disk.arm(statement, when, repaired_after=repaired_after)
        kept = await told(write(ledger))
        assert (content(path) != before) == kept
        assert audited(path).ok
        outcomes.add(kept)
        failed = len(disk.statements) > statement
        refusals = 0
        while not kept:
            kept = await told(write(ledger))
            refusals += not kept
        assert refusals <= repaired_after
        await ledger.close()
        assert audited(path).ok
        if not failed:
            break
    assert not failed
    # A COMMIT that was carried out before it failed is a success; every other failure is one.
    assert outcomes == {True, False}


async def test_a_commit_that_failed_after_it_took_effect_is_a_success(path: Path) -> None:
    disk = Disk()
    ledger = await opened(path, disk)
    await measured(disk, ledger)
    commit = disk.statements.index("COMMIT")
    disk.arm(commit, "after")
    (record,), world = next_batch()
    await ledger.append([record], world)
    assert len(disk.statements) > commit
    assert await ledger.last_digests(["s"]) == {"s": record.commit_digest}
    assert turns(path) == ["t1-000001", "t1-000002", "t1-000003", "t1-000004", "t1-000005", "t1-000006"]
    await ledger.close()


def next_batch() -> tuple[list[CommitRecord], World]:
    return batch(AFTER_SECOND, "t1-000006", previous=SECOND[-1].commit_digest)


async def measured(disk: Disk, ledger: SqliteLedger) -> None:
    """Append once, to see which statements that takes."""
    disk.statements.clear()
    await ledger.append(SECOND, AFTER_SECOND)


async def test_while_in_doubt_nothing_is_announced_and_the_file_is_asked_ever_more_rarely(
    path: Path, quiet_clock: MockClock
) -> None:
    disk = Disk()
    ledger = await opened(path, disk)
    await measured(disk, ledger)
    disk.arm(disk.statements.index("COMMIT"), "after", repaired_after=12)
    started = trio.current_time()
    with trio.move_on_after(10):
        await ledger.append(*next_batch())
        pytest.fail("it was told before it was known")
    assert trio.current_time() == started + 10
    assert 3 <= disk.repaired_after <= 6  # of the 12 times that the file cannot be opened
    # The caller has gone; the next one waits for nothing, and finds what is true.
    disk.repaired_after = 0
    found = await ledger.last_digests(["s"])
    assert found == {"s": next_batch()[0][0].commit_digest}
    await ledger.close()


async def test_others_wait_while_a_write_is_in_doubt(path: Path, quiet_clock: MockClock) -> None:
    disk = Disk()
    ledger = await opened(path, disk)
    disk.statements.clear()
    await ledger.begin_tool("measured")
    disk.arm(disk.statements.index("COMMIT"), "before", repaired_after=4)
    answers: list[object] = []

    async def begin() -> None:
        try:
            answers.append(await ledger.begin_tool("contested"))
        except LedgerUnavailable:
            answers.append("refused")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(begin)
        await trio.sleep(0.01)
        for _ in range(2):
            nursery.start_soon(begin)
    assert sorted(map(str, answers)) == sorted(["refused", "None", str(await ledger.begin_tool("contested"))])
    await ledger.close()


# -- steps of tools, in groups


async def begin(ledger: SqliteLedger, key: str, answers: dict[str, object]) -> None:
    try:
        answers[key] = await ledger.begin_tool(key)
    except LedgerUnavailable:
        answers[key] = "refused"


async def test_steps_that_wait_together_are_written_together(path: Path, quiet_clock: MockClock) -> None:
    disk, answers = Disk(), dict[str, object]()
    ledger = await opened(path, disk)
    disk.statements.clear()
    async with trio.open_nursery() as nursery:
        for number in range(100):
            nursery.start_soon(begin, ledger, f"tool-{number}", answers)
    assert answers == {f"tool-{number}": None for number in range(100)}
    assert disk.statements.count("COMMIT") == 1
    await ledger.close()
    assert audited(path).ok


async def test_a_step_that_is_refused_refuses_no_other_of_its_group(path: Path, quiet_clock: MockClock) -> None:
    ledger = await opened(path, Disk())
    told: dict[str, object] = {}

    async def call(name: str, step: Callable[[], Awaitable[object]]) -> None:
        try:
            told[name] = await step()
        except InvalidCommand:
            told[name] = "refused"

    one, other = TurnRequest("s", "r", "t1-000008"), TurnRequest("s", "r", "t1-000009")
    steps: dict[str, Callable[[], Awaitable[object]]] = {
        "first": lambda: ledger.begin_tool("k", one),
        "again": lambda: ledger.begin_tool("k", one),
        "of another turn": lambda: ledger.begin_tool("l", other),
        "completed": lambda: ledger.complete_tool("k", "ok"),
        "never begun": lambda: ledger.complete_tool("m", "ok"),
        "last": lambda: ledger.begin_tool("n"),
    }
    async with trio.open_nursery() as nursery, ledger._call_lock:
        for name, step in steps.items():
            nursery.start_soon(call, name, step)
            await wait_all_tasks_blocked()
    assert told == {
        "first": None,
        "again": ToolRecord("k", ToolState.STARTED),
        "of another turn": "refused",
        "completed": None,
        "never begun": "refused",
        "last": None,
    }
    assert await ledger.find_request("s", "r") == "t1-000008"
    assert await ledger.begin_tool("l") is None
    await ledger.close()
    assert audited(path).ok


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_doubt_that_a_cancelled_call_leaves_is_answered_for_the_others(
    path: Path, quiet_clock: MockClock, when: Literal["before", "after"]
) -> None:
    disk, answers = Disk(), dict[str, object]()
    ledger = await opened(path, disk)
    disk.statements.clear()
    await ledger.begin_tool("measured")
    looked_up_besides = 2  # of the three keys
    disk.arm(disk.statements.index("COMMIT") + looked_up_besides, when, repaired_after=4)
    async with trio.open_nursery() as nursery:
        with trio.move_on_after(0.1) as writer:
            async with trio.open_nursery() as first, ledger._call_lock:
                first.start_soon(begin, ledger, "first", answers)
                await wait_all_tasks_blocked()
                for key in ("second", "third"):
                    nursery.start_soon(begin, ledger, key, answers)
                await wait_all_tasks_blocked()
        assert writer.cancelled_caught
    kept = when == "after"
    assert answers == dict.fromkeys(("second", "third"), None if kept else "refused")
    for key in ("first", "second", "third"):
        assert await ledger.begin_tool(key) == (ToolRecord(key, ToolState.STARTED) if kept else None)
    await ledger.close()
    assert audited(path).ok


# -- causes as they come in life


async def test_a_full_disk_fails_a_batch_as_a_whole_and_goes_on_when_there_is_room(path: Path) -> None:
    pages = 40

    def connect_small(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    async with SqliteLedger(path, connect=connect_small) as ledger:
        world: World = (await ledger.begin_epoch(EMPTY)).world
        previous: str | None = None
        for kept in range(0, 1000, 20):
            records, after = batch(world, *(f"t{kept + n}" for n in range(20)), previous=previous)
            if not await told(ledger.append(records, after)):
                break
            previous, world = records[-1].commit_digest, after
        assert len(turns(path)) == kept > 0
        assert not await told(ledger.append(records, after))
        pages = 1000
        await ledger.append(records, after)
        assert len(turns(path)) == kept + 20


async def test_a_write_that_the_system_refuses_in_commit_is_reported_as_it_is(
    path: Path, quiet_clock: MockClock
) -> None:
    answers: list[bool] = []

    async def append(ledger: SqliteLedger) -> None:
        answers.append(await told(ledger.append(SECOND, AFTER_SECOND)))

    async with SqliteLedger(path) as ledger:
        await ledger.begin_epoch(EMPTY)
        await ledger.append(FIRST, AFTER_FIRST)
        async with trio.open_nursery() as nursery:
            with no_file_may_grow():
                nursery.start_soon(append, ledger)
                await trio.sleep(10)
                assert answers == []
        assert answers == [False]
        assert turns(path) == ["t1-000001", "t1-000002"]
        await ledger.append(SECOND, AFTER_SECOND)
        assert turns(path) == ["t1-000001", "t1-000002", "t1-000003", "t1-000004", "t1-000005"]


@contextmanager
def no_file_may_grow() -> Iterator[None]:
    """Python ignores SIGXFSZ, so a write beyond the limit is an error of the system, as on a broken disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_locked_database_is_unavailable_until_it_is_let_go(path: Path) -> None:
    ledger = await opened(path, Disk())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert not await told(ledger.append(SECOND, AFTER_SECOND))
        assert not await told(ledger.begin_tool("new"))
        assert await ledger.find("s", "t1-000001") == FIRST[0]
        other.execute("ROLLBACK")
    assert turns(path) == ["t1-000001", "t1-000002"]
    await ledger.append(SECOND, AFTER_SECOND)
    await ledger.close()


async def test_a_ledger_knows_whether_it_can_write_and_writes_nothing_new_to_find_out(path: Path) -> None:
    ledger = await opened(path, Disk())
    before = content(path)
    assert await told(ledger.check_writable())
    with no_file_may_grow():
        assert not await told(ledger.check_writable())
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert not await told(ledger.check_writable())
        other.execute("ROLLBACK")
    assert await told(ledger.check_writable())
    assert content(path) == before
    await ledger.append(SECOND, AFTER_SECOND)
    await ledger.close()
    assert not await told(ledger.check_writable())


async def test_a_read_only_file_can_be_read_and_not_written(path: Path) -> None:
    read_only = False

    def connect_as_allowed(path: Path) -> sqlite3.Connection:
        mode = "ro" if read_only else "rwc"
        return sqlite3.connect(f"file:{path}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False)

    async with SqliteLedger(path, connect=connect_as_allowed) as ledger:
        await ledger.begin_epoch(EMPTY)
        await ledger.append(FIRST, AFTER_FIRST)
    read_only = True
    async with SqliteLedger(path, connect=connect_as_allowed) as ledger:
        with pytest.raises(LedgerUnavailable):
            await ledger.begin_epoch(EMPTY)
        assert await ledger.find("s", "t1-000001") == FIRST[0]
        assert not await told(ledger.append(SECOND, AFTER_SECOND))
        read_only = False
        assert (await ledger.begin_epoch(EMPTY)).epoch == 2
        await ledger.append(SECOND, AFTER_SECOND)


async def test_a_place_without_a_write_ahead_log_is_refused(path: Path) -> None:
    def connect_in_memory(path: Path) -> sqlite3.Connection:
        return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)

    with pytest.raises(LedgerUnavailable, match="write-ahead"):
        await SqliteLedger(path, connect=connect_in_memory).begin_epoch(EMPTY)


# -- a file that is not what was left


@pytest.fixture
def moved_away(path: Path) -> Callable[[], None]:
    def move() -> None:
        for each in path.parent.glob("ledger*"):
            if each.suffix != ".lock":
                each.rename(each.with_name(f"old-{each.name}"))

    return move


async def broken_off(path: Path, disk: Disk) -> SqliteLedger:
    """A ledger that must open its file again for the next call."""
    ledger = await opened(path, disk)
    disk.arm(0)
    with pytest.raises(LedgerUnavailable):
        await ledger.find("s", "t1-000001")
    return ledger


async def test_a_file_that_is_gone_is_not_made_anew(path: Path, moved_away: Callable[[], None]) -> None:
    ledger = await broken_off(path, Disk())
    moved_away()
    with pytest.raises(LedgerDamaged, match="gone"):
        await ledger.append(SECOND, AFTER_SECOND)
    assert not list_of(path)
    await ledger.close()


def list_of(path: Path) -> list[Path]:
    return [each for each in path.parent.iterdir() if each.name in ("ledger", "ledger-wal")]


async def test_a_file_that_was_emptied_is_not_filled_again(path: Path, moved_away: Callable[[], None]) -> None:
    ledger = await broken_off(path, Disk())
    moved_away()
    sqlite3.connect(path).close()
    empty(path)
    with pytest.raises(LedgerDamaged, match="emptied"):
        await ledger.append(SECOND, AFTER_SECOND)
    await ledger.close()


def empty(path: Path) -> None:
    path.write_bytes(b"")


async def test_nothing_is_written_to_a_file_that_was_deleted_while_it_was_open(path: Path) -> None:
    async with SqliteLedger(path) as ledger:
        await ledger.begin_epoch(EMPTY)
        await ledger.append(FIRST, AFTER_FIRST)
        append, begin = partial(ledger.append, SECOND, AFTER_SECOND), partial(ledger.begin_tool, "bell")
        for write in (append, begin, ledger.check_writable):
            aside = await trio.Path(path).rename(path.with_name("aside"))
            for _ in range(2):
                with pytest.raises(LedgerDamaged, match="gone"):
                    await write()
            await aside.replace(path)
            assert await ledger.find("s", "t1-000001") == FIRST[0]
        await ledger.append(SECOND, AFTER_SECOND)
    assert len(turns(path)) == 5
    assert audited(path).ok


async def test_what_is_only_in_a_log_that_was_deleted_is_saved_before_the_next_write(path: Path) -> None:
    async with SqliteLedger(path) as ledger:
        await ledger.begin_epoch(EMPTY)
        await ledger.append(FIRST, AFTER_FIRST)
        await trio.Path(path.with_name("ledger-wal")).unlink()
        with pytest.raises(LedgerDamaged, match="gone"):
            await ledger.append(SECOND, AFTER_SECOND)
        assert turns(path) == ["t1-000001", "t1-000002"]
        await ledger.append(SECOND, AFTER_SECOND)
    assert audited(path).ok


@pytest.mark.parametrize(
    "statements",
    [
        (
            "DELETE FROM commits WHERE position = 2",
            "UPDATE ends SET entry_digest = (SELECT entry_digest FROM commits)",
        ),
        ("DELETE FROM tools", f"UPDATE ends SET tool_digest = '{chain.seed(EMPTY.digest())}'"),
    ],
)
async def test_nothing_is_written_to_a_file_that_holds_something_else_than_was_left_in_it(
    path: Path, statements: tuple[str, ...]
) -> None:
    ledger = await broken_off(path, Disk())
    with closing(sqlite3.connect(path)) as other, other:
        for statement in statements:
            other.execute(statement)
    with pytest.raises(LedgerDamaged, match="left"):
        await ledger.append(SECOND, AFTER_SECOND)
    await ledger.close()


# -- the ground it stands on


def test_the_mark_is_a_write_even_if_it_changes_nothing(path: Path) -> None:
    with closing(connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        write_version(connection)
        sizes: list[int] = []
        for _ in range(3):
            connection.execute("BEGIN IMMEDIATE")
            write_version(connection)
            connection.execute("COMMIT")
            sizes.append(path.with_name("ledger-wal").stat().st_size)
    assert sizes == sorted(set(sizes))


async def test_tools_that_an_earlier_epoch_left_open_stay_unknown(path: Path) -> None:
    ledger = await opened(path, Disk())
    await ledger.close()
    await ledger.begin_epoch(EMPTY)
    known = await ledger.begin_tool("open")
    assert known is not None
    assert known.state is ToolState.STARTED
    await ledger.close()
