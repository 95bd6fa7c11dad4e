"""Authority suite: both sides write the same rows, and the times are those of commits. Tests check no performance."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, cast

import pytest
import trio
import trio.testing

from footlights.authority.audit.audit import audit
from footlights.authority.ledger.sqlite.reader import SqliteReader
from suites.authority.commits import LedgerAlone, WholeCommitter, race
from suites.authority.growth import examine, grow
from suites.authority.latency import Together, time_commits
from suites.authority.work import Judge, genesis, payment, purses

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from footlights.authority import World
    from tests.benchmarks.conftest import QuickRun

LATENESS = {
    "lateness of a 1 ms sleeper, 256 writers, 5 rules",
    "lateness of a 1 ms sleeper, 16 writers, a rule of 20 ms",
}
AIMS = {
    ("commits, 1 to a batch", "ledger alone / raw"),
    ("commits, 64 to a batch", "ledger alone / raw"),
    ("commits, 256 to a batch", "ledger alone / raw"),
    ("commits, 64 to a batch", "judge and ledger / raw"),
    ("commits, 256 to a batch", "judge and ledger / raw"),
    ("turn_final to commit_final", "10 turns, ending all at once, p99"),
    ("turns with one tool, 10 at once", "turns"),
    ("growth, 256 to a batch", "at 1,000 / at 100"),
    *((each, "above the idle one, p99") for each in LATENESS),
}
SUBJECTS = {
    *(subject for subject, _ in AIMS),
    "turn_final to commit_final",
    "examining 1,512 commits",
}


def test_a_quick_run_prints_and_writes_every_figure(quick_run: Callable[..., QuickRun]) -> None:
    run = quick_run("authority")
    assert run.subjects == SUBJECTS
    assert run.aims == AIMS
    assert all(figure["value"] > 0 for figure in run.figures if "above the idle one" not in str(figure))
    assert "growing to 1,000 commits" in run.err


def _contents(path: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        tables = ("meta", "epochs", "commits", "tools", "ends")
        return {table: connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in tables}


@pytest.mark.parametrize("kind", [LedgerAlone, WholeCommitter])
async def test_raw_sqlite_writes_the_same_rows_as_the_ledger(
    kind: type[LedgerAlone | WholeCommitter], tmp_path: Path
) -> None:
    slices = await race(kind, batch=5, batches=3, laps=2, folder=tmp_path)
    assert len(slices) == 2
    ours, raw = _contents(tmp_path / "ours.ledger"), _contents(tmp_path / "raw.ledger")
    assert len(ours["commits"]) == 5 * 3 * 2
    assert ours == raw


async def test_raw_sqlite_has_the_same_tables_and_indexes_and_is_as_durable(tmp_path: Path) -> None:
    await race(LedgerAlone, batch=1, batches=1, laps=1, folder=tmp_path)
    schemas: list[list[tuple[str, ...]]] = []
    for name in ("ours.ledger", "raw.ledger"):
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
            query = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
            schemas.append(connection.execute(query).fetchall())
    assert schemas[0] == schemas[1]


async def test_a_grown_ledger_passes_its_audit_and_was_timed_at_every_size(tmp_path: Path) -> None:
    path = tmp_path / "ours.ledger"
    timed = await grow(path, sizes=(10, 700), batches=1)
    assert [(each.size, len(each.ours), len(each.raw)) for each in timed] == [(10, 1, 1), (700, 1, 1)]
    with SqliteReader(path) as reader:
        report = audit(reader)
    assert report.ok
    assert report.commits == 700 + 256
    assert {figure.subject for figure in examine(path)} == {"examining 956 commits"}


async def test_a_ledger_that_fails_its_audit_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "ours.ledger"
    await grow(path, sizes=(10,), batches=0)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE commits SET entry_digest = commit_digest WHERE position = 3")
    with pytest.raises(AssertionError, match="does not hold"):
        examine(path)


async def test_every_turn_is_timed_from_its_end_to_its_commit() -> None:
    seconds = await time_commits(Together(3).wait, sessions=3, turns=2)
    assert len(seconds) == 6
    assert all(each > 0 for each in seconds)


async def test_turns_that_end_together_wait_for_the_last() -> None:
    together, went_on = Together(2), list[str]()

    async def wait(name: str) -> None:
        await together.wait()
        went_on.append(name)

    for _ in range(2):
        went_on.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, "first")
            await trio.testing.wait_all_tasks_blocked()
            assert went_on == []
            nursery.start_soon(wait, "last")
        assert sorted(went_on) == ["first", "last"]


def test_the_workload_moves_coins_and_creates_none() -> None:
    batch = Judge().batch(40)
    before, after = _purses(genesis()), _purses(batch.world)
    assert after != before
    assert sum(after.values()) == sum(before.values())
    assert len({record.session_id for record in batch.records}) == 40
    assert all(len(record.changes) == 2 for record in batch.records)


def test_a_payment_from_an_empty_purse_is_refused() -> None:
    poor = dict.fromkeys(_purses(genesis()), 0)
    assert [issue.code for issue in purses(poor, (payment(1),)).issues] == ["no_coin"]
    assert purses({**poor, "purse-01": 1}, (payment(1),)).issues == ()


def _purses(world: World) -> dict[str, int]:
    return cast("dict[str, int]", world.view())
