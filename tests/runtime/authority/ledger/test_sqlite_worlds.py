"""Worlds in a ledger file: checkpoints in portions, opening from them, altered nodes, and the removal of dead rows."""

from __future__ import annotations

import sqlite3
import struct
import subprocess
import sys
from contextlib import closing
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import trio

from footlights.authority import (
    JsonWorld,
    JudgeRequest,
    LedgerDamaged,
    RuleBook,
    SqliteLedger,
    accept,
    every_turn,
    judge,
    patch,
)
from footlights.authority.audit.audit import audit
from footlights.authority.audit.reader import Altered
from footlights.authority.audit.rebuild import replay, worlds_of
from footlights.authority.ledger.sql import worlds
from footlights.authority.ledger.sqlite.reader import SqliteReader
from footlights.authority.ledger.sqlite.schema import connect
from footlights.authority.world.checkpoint import RowSpace
from footlights.errors import LedgerUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from footlights.authority import CommitRecord, World
    from footlights.authority.world.checkpoint import NodeRow

ROOMS = 14
MORE_ROOMS = 106
GENESIS: dict[str, Any] = {
    "rooms": {f"room {i}": {"guest": None, "log": [], "note": "x" * (i % 7) * 40} for i in range(ROOMS + MORE_ROOMS)},
    "letter": "é" * 900,
    "list": [["y" * 300] * 5] * 3,
    "turns": 0,
}


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "CHECKPOINT_EVERY", 8)
    monkeypatch.setattr(worlds, "MAX_ROWS", 5)
    monkeypatch.setattr(worlds, "LONGEST", 64)


class Writer:
    """Commits one change after the other, always the same ones."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self.ledger = ledger
        self.world: World = JsonWorld({})
        self.previous: str | None = None
        self.turns = self.epoch = 0
        self.changes = _changes

    async def open(self, genesis: Any = GENESIS) -> None:
        opening = await self.ledger.begin_epoch(JsonWorld(genesis))
        self.world, self.epoch = opening.world, opening.epoch
        self.turns = self.world.view().get("turns", 0)
        self.previous = (await self.ledger.last_digests(["s"])).get("s")

    def decide(self) -> tuple[CommitRecord, World]:
        turn = self.turns + 1
        rules = RuleBook({"it": every_turn(lambda view, intents: accept(*self.changes(turn)))})
        request = JudgeRequest("s", f"t{self.epoch}-{turn:06d}", None)
        judgement = judge(request, self.world, rules, self.previous)
        assert not judgement.record.issues
        return judgement.record, judgement.world

    async def commit(self, number: int = 1, *, at_once: int = 1) -> None:
        for _ in range(number):
            before = self.world, self.previous, self.turns
            batch: list[CommitRecord] = []
            for _ in range(at_once):
                record, self.world = self.decide()
                self.previous, self.turns = record.commit_digest, self.turns + 1
                batch.append(record)
            try:
                await self.ledger.append(batch, self.world)
            except LedgerUnavailable:
                self.world, self.previous, self.turns = before
                raise


def _changes(turn: int) -> list[patch.PatchOp]:
    random = Random(turn)
    room = f"/rooms/room {random.randrange(ROOMS)}"
    return [
        patch.replace("/turns", turn),
        patch.replace(f"{room}/guest", f"guest {turn}"),
        patch.add(f"{room}/log/-", "z" * random.choice([3, 400])),
        *([patch.replace("/letter", "w" * (1_100 + turn))] if turn % 5 == 0 else []),
    ]


async def written(path: Path, commits: int) -> JsonWorld:
    async with SqliteLedger(path) as ledger:
        writer = Writer(ledger)
        await writer.open()
        await writer.commit(commits)
    assert isinstance(writer.world, JsonWorld)
    return writer.world


def query(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(sql).fetchall()


def audited(path: Path) -> None:
    with SqliteReader(path) as reader:
        assert audit(reader).flaw is None


@pytest.mark.parametrize("commits", [0, 1, 7, 8, 9, 30, 70])
async def test_a_world_comes_back_from_its_last_checkpoint_and_the_commits_since(tmp_path: Path, commits: int) -> None:
    path = tmp_path / "ledger"
    world = await written(path, commits)
    async with SqliteLedger(path) as ledger:
        writer = Writer(ledger)
        await writer.open()
        assert writer.world.digest() == world.digest()
        assert writer.world.view() == world.view().copy()
        await writer.commit(20)
    audited(path)
    again = await written(path, 0)
    assert again.digest() == writer.world.digest()


async def test_a_genesis_is_kept_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    async with SqliteLedger(path) as ledger:
        await Writer(ledger).open({**GENESIS, "motto": "Soli deo gloria"})
    assert path.read_bytes().count(b"Soli deo gloria") == 1


async def test_a_commit_writes_its_record_and_at_most_one_portion_of_nodes(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    async with SqliteLedger(path) as ledger:
        writer = Writer(ledger)
        await writer.open()
        first = query(path, "SELECT count(*) FROM nodes")[0][0]
        await writer.commit(7)
        assert query(path, "SELECT count(*) FROM nodes") == [(first,)]
        counts = [first]
        while len(query(path, "SELECT * FROM worlds")) == 1:
            await writer.commit()
            counts.append(query(path, "SELECT count(*) FROM nodes")[0][0])
        assert len(counts) > 3
        assert {after - before for before, after in pairwise(counts[:-1])} == {5}
        assert counts[-1] - first < first / 2, "only what changed is written"
        assert query(path, "SELECT position FROM worlds ORDER BY position") == [(0,), (8,)]


async def test_a_large_batch_writes_and_removes_large_portions(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ledger"
    async with SqliteLedger(path) as ledger:
        writer = Writer(ledger)
        await writer.open()
        since: list[int] = []
        for _ in range(50):
            await writer.commit(at_once=20)
            since.append(writer.turns - query(path, "SELECT max(position) FROM worlds")[0][0])
        assert query(path, "SELECT count(DISTINCT first) FROM worlds") == [(2,)], "one was a whole one"
        assert max(since) < 3 * worlds.LONGEST
        dead = "id < (SELECT max(first) FROM worlds) AND id > (SELECT min(root) FROM worlds)"
        assert query(path, f"SELECT count(*) FROM nodes WHERE {dead}") == [(0,)]
    audited(path)


async def test_rows_that_no_world_needs_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    async with SqliteLedger(path) as ledger:
        writer = Writer(ledger)
        await writer.open()
        first = query(path, "SELECT count(*) FROM nodes")[0][0]
        most, begins = 0, set[int]()
        for _ in range(300):
            await writer.commit()
            most = max(most, query(path, "SELECT count(*) FROM nodes")[0][0])
            begins.update(begin for (begin,) in query(path, "SELECT first FROM worlds"))
        assert len(begins) > 2
        live = len(set(_rows_in(writer.world)))
        assert most < first + 3 * max(first, live) + 100
        ((lowest,),) = query(path, f"SELECT min(id) FROM nodes WHERE id > {first}")
        assert lowest > 3 * first
        assert query(path, f"SELECT count(*) FROM nodes WHERE id <= {first}") == [(first,)], "the genesis stays"
    audited(path)
    with SqliteReader(path) as reader:
        assert replay(reader).identical
        for at in (0, 1, 100, 222, 299, 300):
            replayed = replay(reader, at=at)
            assert replayed.identical
            assert replayed.world.view()["turns"] == at


async def test_a_world_that_became_small_is_soon_as_small_in_its_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    async with SqliteLedger(path) as ledger:
        writer = Writer(ledger)
        await writer.open()
        await writer.commit(30)
        ((genesis,),) = query(path, "SELECT min(root) FROM worlds")
        writer.changes = lambda turn: [patch.replace("", {"turns": turn})]
        await writer.commit(70)
        assert query(path, f"SELECT count(*) < 10 FROM nodes WHERE id > {genesis}") == [(1,)]
    audited(path)
    assert (await written(path, 0)).view() == {"turns": 100}


def _rows_in(world: World) -> list[int]:
    assert isinstance(world, JsonWorld)
    found: list[int] = []
    nodes: list[Any] = [world.root.node]
    while nodes:
        node = nodes.pop()
        found.append(id(node))
        nodes += [] if isinstance(node, bytes) else node.kids
    return found


def _named(kids: bytes, rows: list[NodeRow]) -> list[bytes | None]:
    bodies = {row: body for row, body, _ in rows}
    return [bodies.get(row) for (row,) in struct.iter_unpack(">q", kids)]


@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.long)])
async def test_an_altered_byte_of_any_node_is_found(tmp_path: Path, stride: int) -> None:
    path = tmp_path / "ledger"
    async with SqliteLedger(path) as ledger:
        writer = Writer(ledger)
        await writer.open({**GENESIS, "rooms": {f"room {i}": GENESIS["rooms"][f"room {i}"] for i in range(ROOMS)}})
        while len(query(path, "SELECT * FROM worlds")) < 3:
            await writer.commit()
    with SqliteReader(path) as reader:
        kept = reader.worlds()
        rows = list(reader.nodes(kept[0].first, kept[-1].root))
    assert {body[0] for _, body, _ in rows} >= {1, 2, 3, *b'{"'}
    worlds_of(kept, rows, RowSpace())
    random = Random(1)
    for place, (row, body, kids) in enumerate(rows):
        for column, data in enumerate((body, kids)):
            for at in range(random.randrange(stride), len(data), stride):
                altered = bytes((*data[:at], data[at] ^ (1 << random.randrange(8)), *data[at + 1 :]))
                rows[place] = (row, body, altered) if column else (row, altered, kids)
                if column and _named(altered, rows) == _named(kids, rows):
                    continue  # another row with the same content: the same world
                with pytest.raises(Altered):
                    worlds_of(kept, rows, RowSpace())
        rows[place] = (row, body, kids)
    worlds_of(kept, rows, RowSpace())


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE nodes SET body = CAST(body || 'x' AS BLOB) WHERE id = 3",
        "UPDATE nodes SET body = 'text' WHERE id = 3",
        "UPDATE nodes SET kids = substr(kids, 9) WHERE id = (SELECT max(root) FROM worlds)",
        "UPDATE nodes SET kids = x'ff' WHERE id = 1",
        "UPDATE nodes SET kids = x'0000000000000001' WHERE id = 2",
        "DELETE FROM nodes WHERE id = 1",
        "UPDATE nodes SET id = 99999 WHERE id = (SELECT max(root) FROM worlds)",
        "UPDATE worlds SET root = 1",
        "UPDATE worlds SET first = 2",
        "UPDATE worlds SET first = 0",
        "UPDATE worlds SET digest = 'f' || substr(digest, 2)",
        "UPDATE worlds SET position = position + 1",
        "DELETE FROM worlds",
        "UPDATE worlds SET root = 'one'",
    ],
)
async def test_a_stage_opens_no_ledger_whose_world_was_altered(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "ledger"
    await written(path, 27)
    query(path, statement)
    with pytest.raises(LedgerDamaged):
        await SqliteLedger(path).begin_epoch(JsonWorld(GENESIS))
    with SqliteReader(path) as reader:
        assert audit(reader).flaw is not None


async def test_a_world_that_was_in_another_ledger_is_written_whole(tmp_path: Path) -> None:
    world = await written(tmp_path / "one", 20)
    async with SqliteLedger(tmp_path / "other") as ledger:
        opening = await ledger.begin_epoch(JsonWorld(world.view()))
        assert opening.world.digest() == world.digest()
    assert (await written(tmp_path / "one", 0)).digest() == world.digest()
    async with SqliteLedger(tmp_path / "other") as ledger:
        assert (await ledger.begin_epoch(JsonWorld({}))).world.digest() == world.digest()


class _Faulty(sqlite3.Connection):
    """A connection whose COMMIT fails when it is told to, before or after it took effect."""

    fails: Callable[[], str] = staticmethod(lambda: "")

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        how = self.fails() if sql == "COMMIT" else ""
        if how == "before":
            raise sqlite3.OperationalError("disk I/O error")
        cursor = super().execute(sql, *args)
        if how == "after":
            raise sqlite3.OperationalError("disk I/O error")
        return cursor


@pytest.mark.parametrize("how", ["before", "after"])
async def test_writes_that_fail_amid_checkpoints_leave_a_ledger_that_opens(
    tmp_path: Path, how: str, autojump_clock: trio.testing.MockClock
) -> None:
    path = tmp_path / "ledger"
    random, quiet = Random(7), [True]

    def fails() -> str:
        return "" if quiet[0] or random.random() > 0.3 else how

    def faulty(path: Path) -> sqlite3.Connection:
        connect(path).close()
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=_Faulty)
        connection.fails = fails
        return connection

    failed = 0
    async with SqliteLedger(path, connect=faulty) as ledger:
        writer = Writer(ledger)
        await writer.open()
        for _ in range(70):
            quiet[0] = False
            try:
                await writer.commit()
            except LedgerUnavailable:
                failed += 1
            quiet[0] = True
        await writer.commit()
    assert how == "after" or failed > 10
    assert len(query(path, "SELECT * FROM worlds")) > 1
    audited(path)
    assert (await written(path, 0)).digest() == writer.world.digest()


_KILLED = """
import sys, trio
from pathlib import Path
from footlights.authority import SqliteLedger
from footlights.authority.ledger.sql import worlds
from tests.runtime.authority.ledger.test_sqlite_worlds import Writer

worlds.CHECKPOINT_EVERY, worlds.MAX_ROWS, worlds.LONGEST = 8, 5, 64

async def main():
    async with SqliteLedger(Path(sys.argv[1])) as ledger:
        writer = Writer(ledger)
        await writer.open()
        while True:
            await writer.commit()
            print(writer.turns, writer.world.digest(), flush=True)

trio.run(main)
"""


@pytest.mark.parametrize("runs", [4, pytest.param(60, marks=pytest.mark.long)])
def test_a_killed_process_loses_nothing_that_it_reported_also_amid_a_checkpoint(tmp_path: Path, runs: int) -> None:
    path, amid = tmp_path / "ledger", 0
    for run in range(runs):
        lines = 5 + 3 * run
        with subprocess.Popen([sys.executable, "-c", _KILLED, path], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said = [process.stdout.readline().split() for _ in range(lines)]
            process.kill()
        amid += query(path, "SELECT max(id) > (SELECT max(root) FROM worlds) FROM nodes") == [(1,)]
        audited(path)
        with SqliteReader(path) as reader:
            assert replay(reader, at=int(said[-1][0])).world.digest() == said[-1][1]
        world = trio.run(written, path, 0)
        assert world.view()["turns"] >= int(said[-1][0])
    assert amid, "some of them were killed amid a checkpoint"
