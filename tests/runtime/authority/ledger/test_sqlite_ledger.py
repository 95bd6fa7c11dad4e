"""The SQLite ledger keeps its commits over any number of openings, and refuses files that are not ledgers."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing, suppress
from typing import TYPE_CHECKING

import pytest
import trio
from attrs import frozen

from footlights.authority import (
    CommitRecord,
    JsonWorld,
    JudgeRequest,
    PatchOp,
    RuleBook,
    ToolRecord,
    ToolState,
    TurnRequest,
    World,
    accept,
    chain,
    digest,
    every_turn,
    judge,
    patch,
)
from footlights.authority.ledger.sql.errors import LedgerDamaged, LedgerFormat
from footlights.authority.ledger.sqlite.ledger import SqliteLedger
from footlights.authority.ledger.sqlite.schema import APPLICATION_ID, VERSION, connect
from footlights.authority.ledger.sqlite.store import SqliteStore
from footlights.errors import InvalidCommand, LedgerInUse, LedgerUnavailable, TooLarge

if TYPE_CHECKING:
    from pathlib import Path

EMPTY = JsonWorld([])
NOTES = RuleBook({"note": every_turn(lambda world, intents: accept(patch.add("/-", "noted")))})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tavern.ledger"


def decide(
    world: World, session_id: str, turn_id: str, previous: CommitRecord | None = None
) -> tuple[CommitRecord, World]:
    last = None if previous is None else previous.commit_digest
    judgement = judge(JudgeRequest(session_id, turn_id, None), world, NOTES, last)
    return judgement.record, judgement.world


def alter(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement, values).rowcount == 1


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(query).fetchall()


# -- over many openings


async def test_what_was_kept_is_there_when_it_is_opened_again(path: Path) -> None:
    async with SqliteLedger(path) as ledger:
        assert (await ledger.begin_epoch(EMPTY)).epoch == 1
        first, world = decide(EMPTY, "s", "t1")
        await ledger.append([first], world)
        for key in ("open", "done", "failed"):
            await ledger.begin_tool(key)
        await ledger.complete_tool("done", "ok")
        await ledger.complete_tool("failed", "error")
    async with SqliteLedger(path) as ledger:
        opening = await ledger.begin_epoch(EMPTY)
        assert (opening.epoch, opening.world.view()) == (2, ["noted"])
        assert await ledger.find("s", "t1") == first
        assert await ledger.last_digests(["s", "other"]) == {"s": first.commit_digest}
        second, world = decide(opening.world, "s", "t2", first)
        await ledger.append([second], world)
        assert await ledger.begin_tool("open") == ToolRecord("open", ToolState.STARTED)
        assert await ledger.begin_tool("done") == ToolRecord("done", ToolState.OK)
        assert await ledger.begin_tool("failed") == ToolRecord("failed", ToolState.ERROR)
    assert rows(path, "SELECT position, epoch, turn_id FROM commits") == [(1, 1, "t1"), (2, 2, "t2")]
    assert rows(path, "SELECT epoch, first_position FROM epochs") == [(1, 1), (2, 2)]


async def test_a_commit_waits_for_one_reader_however_many_there_are(path: Path) -> None:
    done: list[str] = []

    async def read(ledger: SqliteLedger) -> None:
        await ledger.latest("s", 10)
        done.append("read")

    async with SqliteLedger(path) as ledger:
        await ledger.begin_epoch(EMPTY)
        record, world = decide(EMPTY, "s", "t1")
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(read, ledger)
            await trio.testing.wait_all_tasks_blocked()
            before = len(done)
            await ledger.append([record], world)
            assert len(done) - before <= 2
    assert len(done) == 20


async def test_a_turn_is_committed_once_in_the_life_of_the_file(path: Path) -> None:
    first, world = decide(EMPTY, "s", "t1")
    async with SqliteLedger(path) as ledger:
        await ledger.begin_epoch(EMPTY)
        await ledger.append([first], world)
    async with SqliteLedger(path) as ledger:
        await ledger.begin_epoch(EMPTY)
        again, later = decide(world, "s", "t1", first)
        with pytest.raises(InvalidCommand):
            await ledger.append([again], later)
        assert await ledger.find("s", "t1") == first


async def test_a_ledger_that_was_closed_opens_with_the_next_epoch(path: Path) -> None:
    ledger = SqliteLedger(path)
    for epoch in (1, 2):
        assert (await ledger.begin_epoch(EMPTY)).epoch == epoch
        await ledger.close()
        with pytest.raises(LedgerUnavailable):
            await ledger.find("s", "t1")
    await ledger.close()


async def test_a_batch_from_another_world_is_refused(path: Path) -> None:
    async with SqliteLedger(path) as ledger:
        await ledger.begin_epoch(EMPTY)
        record, world = decide(EMPTY, "s", "t1")
        with pytest.raises(InvalidCommand):
            await ledger.append([record], EMPTY)
        elsewhere, _ = decide(JsonWorld(["elsewhere"]), "s", "t1")
        with pytest.raises(InvalidCommand):
            await ledger.append([elsewhere], world)
        await ledger.append([record], world)


# -- the world


async def test_the_ledgers_world_wins_over_a_cast_that_begins_otherwise(path: Path) -> None:
    async with SqliteLedger(path) as ledger:
        await ledger.begin_epoch(JsonWorld({"gold": 5}))
    async with SqliteLedger(path) as ledger:
        assert (await ledger.begin_epoch(JsonWorld({"gold": 1000}))).world.view() == {"gold": 5}


async def test_a_restored_world_has_the_limits_of_the_cast(path: Path) -> None:
    async with SqliteLedger(path) as ledger:
        await ledger.begin_epoch(JsonWorld(["a long beginning"]))
    async with SqliteLedger(path) as ledger:
        with pytest.raises(TooLarge):
            await ledger.begin_epoch(JsonWorld([], max_bytes=10))
        opening = await ledger.begin_epoch(JsonWorld([], max_bytes=20))
        with pytest.raises(TooLarge):
            opening.world.changed((patch.add("/-", "more"),))


@frozen
class Counter:
    """A world of the host's own kind: how often something was noted."""

    count: int

    def view(self) -> int:
        return self.count

    def changed(self, changes: tuple[PatchOp, ...]) -> Counter:
        return Counter(self.count + len(changes))

    def digest(self) -> str:
        return digest({"count": self.count})


async def test_a_world_of_the_hosts_own_kind_is_made_again_from_the_genesis(path: Path) -> None:
    async with SqliteLedger(path) as ledger:
        await ledger.begin_epoch(Counter(10))
        first, world = decide(Counter(10), "s", "t1")
        second, world = decide(world, "s", "t2", first)
        await ledger.append([first, second], world)
    async with SqliteLedger(path) as ledger:
        assert (await ledger.begin_epoch(Counter(10))).world == Counter(12)
    async with SqliteLedger(path) as ledger:
        with pytest.raises(LedgerDamaged, match="genesis"):
            await ledger.begin_epoch(Counter(0))


# -- one writer, many readers


async def test_a_second_opener_is_refused_until_the_first_has_closed(path: Path) -> None:
    async with SqliteLedger(path) as first:
        await first.begin_epoch(EMPTY)
        async with SqliteLedger(path) as second:
            with pytest.raises(LedgerInUse) as caught:
                await second.begin_epoch(EMPTY)
            assert caught.value.code == "ledger_in_use"
            await first.close()
            assert (await second.begin_epoch(EMPTY)).epoch == 2


async def test_another_name_of_the_same_file_opens_no_second_door(path: Path, tmp_path: Path) -> None:
    async with SqliteLedger(path) as first:
        await first.begin_epoch(EMPTY)
        (tmp_path / "alias").symlink_to(path)
        with pytest.raises(LedgerInUse):
            await SqliteLedger(tmp_path / "alias").begin_epoch(EMPTY)


async def test_another_process_is_refused_too(path: Path) -> None:
    program = f"""
import trio
from footlights.authority import JsonWorld
from footlights.authority.ledger.sqlite.ledger import SqliteLedger
try:
    trio.run(SqliteLedger({os.fspath(path)!r}).begin_epoch, JsonWorld([]))
except Exception as error:
    print(error.code)
"""
    async with SqliteLedger(path) as ledger:
        await ledger.begin_epoch(EMPTY)
        done = await trio.run_process([sys.executable, "-c", program], capture_stdout=True)
    assert done.stdout.decode().split() == ["ledger_in_use"]


async def test_readers_see_what_is_kept_while_it_is_written(path: Path) -> None:
    async with SqliteLedger(path) as ledger:
        await ledger.begin_epoch(EMPTY)
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT count(*) FROM commits").fetchall() == [(0,)]
            record, world = decide(EMPTY, "s", "t1")
            await ledger.append([record], world)
            assert reader.execute("SELECT count(*) FROM commits").fetchall() == [(0,)]
            reader.execute("COMMIT")
            assert reader.execute("SELECT count(*) FROM commits").fetchall() == [(1,)]


# -- files that are not to be written


def is_refused_and_left_alone(path: Path) -> bool:
    before = path.read_bytes()
    with pytest.raises(LedgerFormat):
        trio.run(SqliteLedger(path).begin_epoch, EMPTY)
    return path.read_bytes() == before


@pytest.fixture
def diary(path: Path) -> Path:
    path.write_text("Dear diary, " * 100)
    return path


def test_a_file_that_is_no_database_is_refused_and_left_alone(diary: Path) -> None:
    assert is_refused_and_left_alone(diary)


def test_somebody_elses_database_is_refused_and_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    assert is_refused_and_left_alone(path)


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
def test_a_ledger_of_another_version_is_refused_and_left_alone(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {version}")
    assert is_refused_and_left_alone(path)


async def test_a_ledger_in_a_place_that_does_not_exist_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable):
        await SqliteLedger(tmp_path / "nowhere" / "ledger").begin_epoch(EMPTY)


async def test_a_failed_open_does_not_keep_others_out(diary: Path) -> None:
    one, other = SqliteLedger(diary), SqliteLedger(diary)
    for ledger in (one, other, one):
        with pytest.raises(LedgerFormat):
            await ledger.begin_epoch(EMPTY)


# -- files that were altered


@pytest.fixture
def written(path: Path) -> Path:
    async def write() -> None:
        async with SqliteLedger(path) as ledger:
            await ledger.begin_epoch(EMPTY)
            record, world = decide(EMPTY, "s", "t1")
            await ledger.append([record], world)
            await ledger.begin_tool("k", TurnRequest("s", "k", "t1"))
            await ledger.complete_tool("k", "ok")

    trio.run(write)
    return path


@pytest.mark.parametrize("document", [b'["forged"]', b"not JSON", b"[9007199254740993]", b'["noted"] ', b"\xff"])
async def test_a_world_that_was_altered_is_not_restored(written: Path, document: bytes) -> None:
    alter(written, "UPDATE nodes SET body = ?", document)
    with pytest.raises(LedgerDamaged):
        await SqliteLedger(written).begin_epoch(EMPTY)


@pytest.mark.parametrize("record", [b"{}", b"not JSON", b"[" * 150 + b"]" * 150, 7])
async def test_a_last_commit_that_cannot_be_read_is_damage(written: Path, record: object) -> None:
    alter(written, "UPDATE commits SET record = ?", record)
    with pytest.raises(LedgerDamaged):
        await SqliteLedger(written).begin_epoch(EMPTY)


async def test_a_commit_that_was_altered_is_never_found(written: Path) -> None:
    async with SqliteLedger(written) as ledger:
        await ledger.begin_epoch(EMPTY)
        alter(written, "UPDATE commits SET record = replace(record, 'noted', 'forged')")
        with pytest.raises(LedgerDamaged):
            await ledger.find("s", "t1")


async def test_a_request_that_is_no_text_is_never_found(written: Path) -> None:
    async with SqliteLedger(written) as ledger:
        await ledger.begin_epoch(EMPTY)
        alter(written, "UPDATE requests SET turn_id = ?", b"t1")
        with pytest.raises(LedgerDamaged):
            await ledger.find_request("s", "k")


async def test_a_commit_in_the_place_of_another_is_never_found(written: Path) -> None:
    async with SqliteLedger(written) as ledger:
        await ledger.begin_epoch(EMPTY)
        alter(written, "UPDATE commits SET turn_id = 't2'")
        with pytest.raises(LedgerDamaged, match="turn"):
            await ledger.find("s", "t2")
        alter(written, "UPDATE commits SET session_id = 'other'")
        with pytest.raises(LedgerDamaged, match="session"):
            await ledger.find("other", "t2")
        with pytest.raises(LedgerDamaged, match="session"):
            await ledger.last_digests(["other"])


async def test_no_commit_is_chained_to_a_digest_that_was_altered(written: Path) -> None:
    ((digest,),) = rows(written, "SELECT commit_digest FROM commits")
    alter(written, "UPDATE commits SET commit_digest = 'forged'")
    async with SqliteLedger(written) as ledger:
        await ledger.begin_epoch(EMPTY)
        assert await ledger.last_digests(["s"]) == {"s": digest}


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM tools WHERE step = 'ok'",
        "INSERT INTO tools VALUES (3, 1, 'j', 'started', 'forged')",
        "UPDATE ends SET tool_digest = 'forged'",
        "DELETE FROM ends",
        "DELETE FROM commits",
        "INSERT INTO epochs VALUES (2, 2, 'forged')",
        "UPDATE ends SET entry_digest = 'forged'",
    ],
)
async def test_nothing_goes_on_where_the_last_is_not_the_last_that_was_written(written: Path, statement: str) -> None:
    alter(written, statement)
    with pytest.raises(LedgerDamaged):
        await SqliteLedger(written).begin_epoch(EMPTY)


@pytest.mark.shows("core-8")
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM epochs WHERE epoch = 3",
        "UPDATE epochs SET epoch = 0 WHERE epoch = 3",
        "UPDATE epochs SET epoch = 9 WHERE epoch = 3",
        "UPDATE epochs SET first_position = 1 WHERE epoch = 3",
    ],
)
async def test_the_number_of_an_epoch_is_never_given_out_again(written: Path, statement: str) -> None:
    for epoch in (2, 3):
        async with SqliteLedger(written) as ledger:
            assert (await ledger.begin_epoch(EMPTY)).epoch == epoch
    alter(written, statement)
    with pytest.raises(LedgerDamaged):
        await SqliteLedger(written).begin_epoch(EMPTY)


TOOL_FORGERIES = {
    "another outcome": "UPDATE tools SET step = 'error' WHERE position = 2",
    "given back": "UPDATE tools SET step = 'released' WHERE position = 2",
    "another key": "UPDATE tools SET key = 'j' WHERE position = 3",
    "another epoch": "UPDATE tools SET epoch = 2 WHERE position = 2",
    "another digest": "UPDATE tools SET entry_digest = 'forged' WHERE position = 2",
    "the step before it altered": "UPDATE tools SET entry_digest = 'forged' WHERE position = 1",
    "the step before it deleted": "DELETE FROM tools WHERE position = 1",
    "no outcome at all": "UPDATE tools SET step = 'finished' WHERE position = 2",
    "no text": "UPDATE tools SET step = x'ff' WHERE position = 2",
}


@pytest.mark.parametrize("forgery", TOOL_FORGERIES)
async def test_a_step_of_a_tool_that_was_altered_is_never_believed(written: Path, forgery: str) -> None:
    key = "j" if forgery == "another key" else "k"
    async with SqliteLedger(written) as ledger:
        await ledger.begin_epoch(EMPTY)
        await ledger.begin_tool("last")
        with closing(sqlite3.connect(written, isolation_level=None)) as other:
            other.execute("PRAGMA ignore_check_constraints = ON")
            assert other.execute(TOOL_FORGERIES[forgery]).rowcount == 1
        with pytest.raises(LedgerDamaged, match="step"):
            await ledger.begin_tool(key)
        with pytest.raises(LedgerDamaged):
            await ledger.complete_tool(key, "ok")


async def test_a_step_that_no_tool_can_take_is_not_believed_whatever_its_digest(written: Path) -> None:
    async with SqliteLedger(written) as ledger:
        await ledger.begin_epoch(EMPTY)
        ((last,),) = rows(written, "SELECT tool_digest FROM ends")
        digest = chain.link_tool(str(last), 3, 1, "j", "finished")
        with closing(sqlite3.connect(written, isolation_level=None)) as other:
            other.execute("PRAGMA ignore_check_constraints = ON")
            other.execute("INSERT INTO tools VALUES (3, 1, 'j', 'finished', ?)", (digest,))
        with pytest.raises(LedgerDamaged, match="step"):
            await ledger.begin_tool("j")


def test_whatever_was_altered_a_stage_opens_or_says_that_it_cannot(written: Path) -> None:
    good = written.read_bytes()
    refused = 0
    for (table,) in rows(written, "SELECT name FROM sqlite_master WHERE type = 'table'"):
        for _, column, *_ in rows(written, f"PRAGMA table_info({table})"):
            for value in (None, 7, 2**62, "words", b"\xff", 0.5):
                written.write_bytes(good)
                with closing(sqlite3.connect(written, isolation_level=None)) as connection:
                    connection.execute("PRAGMA ignore_check_constraints = ON")
                    with suppress(sqlite3.IntegrityError):  # which SQLite itself does not take there
                        connection.execute(f"UPDATE {table} SET {column} = ?", (value,))
                refused += not opens(written)
        written.write_bytes(good)
        alter(written, f"DELETE FROM {table} WHERE rowid = (SELECT max(rowid) FROM {table})")
        assert opens(written) == (table == "requests"), table  # which are in no chain
        written.write_bytes(good)
    assert refused > 30


def opens(path: Path) -> bool:
    """Also whether it finds a tool, a commit and a request there."""

    async def look() -> None:
        async with SqliteLedger(path) as ledger:
            await ledger.begin_epoch(EMPTY)
            await ledger.begin_tool("k")
            await ledger.find("s", "t1")
            await ledger.find_request("s", "k")

    try:
        trio.run(look)
    except LedgerUnavailable:
        return False
    return True


def test_a_file_that_was_torn_is_damage(written: Path) -> None:
    written.write_bytes(written.read_bytes()[:4096].ljust(written.stat().st_size, b"\xff"))
    with pytest.raises(LedgerDamaged):
        trio.run(SqliteLedger(written).begin_epoch, EMPTY)


# -- what is known of sessions


def test_of_the_sessions_only_so_many_are_remembered_and_the_others_are_looked_up(path: Path) -> None:
    store = SqliteStore(path, connect, max_known_sessions=2)
    world: World = EMPTY
    store.begin_epoch(store.open(EMPTY).epoch)
    digests: dict[str, str] = {}
    for session_id in ("a", "b", "c"):
        record, world = decide(world, session_id, "t1")
        store.append([record], world)
        digests[session_id] = record.commit_digest
    assert store.known_digests(["b", "c"]) == {"b": digests["b"], "c": digests["c"]}
    assert store.known_digests(["a"]) is None
    assert store.last_digests(["a", "b", "c", "new"]) == digests
    assert store.known_digests(["new"]) == {}
    store.close()
