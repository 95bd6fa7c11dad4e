"""The ledger in PostgreSQL: what is the same as in a file, what is its own, and how it says what is wrong."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import CommitOutcome, open_stage
from footlights.authority import LedgerFormat
from footlights.authority.audit.audit import audit
from footlights.authority.audit.reader import LedgerUnreadable
from footlights.authority.audit.rebuild import replay
from footlights.authority.ledger.address import parse_url
from footlights.authority.ledger.copying import copy_ledger
from footlights.authority.ledger.names import init_database, ledger_at, ledger_name, reader_at
from footlights.authority.ledger.protocol import TurnRequest
from footlights.authority.ledger.sql import worlds as checkpoints
from footlights.authority.world import JsonWorld
from footlights.errors import InvalidCommand, LedgerFenced, LedgerInUse, LedgerUnavailable
from footlights_actors.demo.tavern.cast import tavern_cast
from tests.kit.postgres import PASSWORD
from tests.runtime.authority.ledger.batches import EMPTY, batch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from footlights.authority.audit.audit import AuditReport
    from tests.kit.postgres import Server

SAID = ("Hello", "rent the attic", "rent the great chamber for 1 coin", "an ale, please")


def audited(name: str | Path) -> AuditReport:
    with reader_at(name) as reader:
        return audit(reader)


async def play(name: str | Path) -> list[CommitOutcome]:
    async with open_stage(tavern_cast(pace=0, load_seconds=0, tool_seconds=0), ledger=name) as stage:
        session = stage.start()
        handles = [session.finalize(session.begin_turn(each)) for each in SAID]
        return [(await each.wait()).commit_outcome for each in handles]


async def test_the_same_game_has_the_same_digests_in_a_file_and_in_a_database(
    postgres_url: Callable[[str], str], tmp_path: Path
) -> None:
    file, url = tmp_path / "tavern.ledger", postgres_url("tavern")
    assert await play(file) == await play(url)
    there, here = audited(url), audited(file)
    assert there.ok
    assert there == here
    with reader_at(url) as reader:
        assert replay(reader).identical
        assert len(reader.latest(2)) == 2
        assert [each.turn_id for each in reader.named("t1-000002")] == ["t1-000002"]
        assert reader.named(reader.latest(1)[0].commit_digest[:12]) == reader.latest(1)
        assert reader.mentioning("attic")


async def test_a_copy_from_a_file_to_a_database_and_back_has_the_same_rows(
    postgres_url: Callable[[str], str], tmp_path: Path
) -> None:
    first, url, last = tmp_path / "first.ledger", postgres_url("copy"), tmp_path / "last.ledger"
    await play(first)
    async with ledger_at(first) as ledger:
        await ledger.begin_epoch(EMPTY)
        await ledger.begin_tool("a\0b", TurnRequest("guest", "r", "t2-000001"))
    there = copy_ledger(first, url)
    back = copy_ledger(url, last)
    assert there == back
    assert (there.head, there.tools_head) == (audited(first).head, audited(first).tools_head)
    with reader_at(first) as one, reader_at(last) as other:
        for table in ("epochs", "commits", "nodes", "worlds", "tools", "requests"):
            assert list(one.raw_rows(table)) == list(other.raw_rows(table))
    assert await play(url) == await play(last)  # both go on
    assert audited(url).head == audited(last).head


async def test_a_copy_replaces_nothing(postgres_url: Callable[[str], str], tmp_path: Path) -> None:
    file, url = tmp_path / "tavern.ledger", postgres_url("copy")
    await play(file)
    copy_ledger(file, url)
    for target in (url, file):
        with pytest.raises(InvalidCommand):
            copy_ledger(file, target)
    assert audited(url) == audited(file)


async def test_checkpoints_are_written_with_the_batches_and_read_again(
    postgres_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "CHECKPOINT_EVERY", 4)
    monkeypatch.setattr(checkpoints, "MAX_ROWS", 3)
    url, previous = postgres_url("large"), None
    world = JsonWorld([f"{number:0200d}" for number in range(60)])
    for epoch in range(1, 5):
        async with ledger_at(url) as ledger:
            opening = await ledger.begin_epoch(world)
            now = opening.world
            for number in range(1, 12):
                records, now = batch(now, f"t{epoch}-{number:06d}", previous=previous)
                await ledger.append(records, now)
                previous = records[-1].commit_digest
        report = audited(url)
        assert report.ok, report.flaw
        assert report.world_digest == now.digest()
    with reader_at(url) as reader:
        assert len(reader.worlds()) > 1
        assert replay(reader, at=30).identical


async def test_an_owner_is_named_to_another_stage_and_a_released_world_is_free(
    postgres_url: Callable[[str], str],
) -> None:
    url = postgres_url("owned")
    async with ledger_at(url) as first:
        await first.begin_epoch(EMPTY)
        async with ledger_at(url) as second:
            with pytest.raises(LedgerInUse, match="belongs to the node"):
                await second.begin_epoch(EMPTY)
    async with ledger_at(url) as third:
        assert (await third.begin_epoch(EMPTY)).epoch == 2
        first_batch, world = batch(EMPTY, "t1-000001")
        with pytest.raises(LedgerUnavailable, match="not open"):
            await first.append(first_batch, world)


async def test_a_standby_waits_until_the_world_is_released(postgres_url: Callable[[str], str]) -> None:
    url = postgres_url("standby")
    epochs: list[int] = []

    async def stand_by() -> None:
        async with ledger_at(url, patience=inf) as ledger:
            epochs.append((await ledger.begin_epoch(EMPTY)).epoch)

    async with trio.open_nursery() as nursery, ledger_at(url) as owner:
        await owner.begin_epoch(EMPTY)
        nursery.start_soon(stand_by)
        records, world = batch(EMPTY, "t1-000001")
        await owner.append(records, world)
        assert epochs == []
    assert epochs == [2]


@pytest.mark.parametrize("what", ["commit", "tool"])
async def test_the_write_of_an_earlier_owner_changes_nothing(
    postgres: Server, postgres_url: Callable[[str], str], what: str
) -> None:
    url = postgres_url("fenced")
    async with ledger_at(url) as first, ledger_at(url) as second:
        await first.begin_epoch(EMPTY)
        await first.begin_tool("begun")
        expire(postgres, url)
        await second.begin_epoch(EMPTY)
        records, world = batch(EMPTY, "t1-000001")
        for _ in range(2):
            with pytest.raises(LedgerFenced):
                await (first.complete_tool("begun", "ok") if what == "tool" else first.append(records, world))
        with pytest.raises(LedgerFenced):
            await first.check_writable()
        later, world = batch(EMPTY, "t2-000001")
        await second.append(later, world)
    report = audited(url)
    assert (report.flaw, report.commits, report.tool_steps, report.epochs) == (None, 1, 1, 2)


def expire(postgres: Server, url: str) -> None:
    """End the lease of a world."""
    place = parse_url(url)
    with postgres.connected(place.parameters["dbname"]) as raw:
        raw.execute("UPDATE footlights.heads SET until = 'epoch' WHERE name = $1", (place.world,))


async def test_an_idle_owner_learns_from_its_lease_that_it_was_deposed(
    postgres: Server, postgres_url: Callable[[str], str]
) -> None:
    url = postgres_url("idle")
    async with ledger_at(url) as first, ledger_at(url) as second:
        await first.begin_epoch(EMPTY)
        async with trio.open_nursery() as nursery:

            async def hold() -> None:
                with pytest.raises(LedgerFenced):
                    await first.hold(lambda _: None)  # type: ignore[attr-defined]
                nursery.cancel_scope.cancel()

            nursery.start_soon(hold)
            while True:
                expire(postgres, url)
                try:
                    await second.begin_epoch(EMPTY)
                except LedgerInUse:  # it was renewed meanwhile
                    continue
                break


# -- what is refused, and how


async def test_a_database_is_prepared_once(postgres: Server) -> None:
    name = postgres.new_database(with_tables=False)
    url = postgres.url(name)
    with pytest.raises(LedgerUnreadable, match="footlights ledger init"):
        reader_at(url)
    async with ledger_at(url) as ledger:
        with pytest.raises(LedgerFormat, match="footlights ledger init"):
            await ledger.begin_epoch(EMPTY)
    assert init_database(url)
    assert not init_database(url)
    async with ledger_at(url) as ledger:
        assert (await ledger.begin_epoch(EMPTY)).epoch == 1
    assert audited(url).ok
    with postgres.connected(name) as raw:
        raw.execute("UPDATE footlights.about SET version = 99")
    async with ledger_at(url) as ledger:
        with pytest.raises(LedgerFormat, match="version 99"):
            await ledger.begin_epoch(EMPTY)


async def test_tables_that_somebody_changed_are_found_by_an_audit(postgres: Server) -> None:
    name = postgres.new_database()
    async with ledger_at(postgres.url(name)) as ledger:
        await ledger.begin_epoch(EMPTY)
    with postgres.connected(name) as raw:
        raw.execute("ALTER TABLE footlights.commits ADD COLUMN more text")
    report = audited(postgres.url(name))
    assert report.flaw is not None
    assert report.flaw.place == "schema"


async def test_a_replica_and_missing_rights_are_refused_in_a_sentence(postgres: Server) -> None:
    name = postgres.new_database()
    with postgres.connected(name) as raw:
        raw.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'.encode())
        raw.execute(b"CREATE ROLE visitor LOGIN PASSWORD 'v1s1tor'")
    async with ledger_at(postgres.url(name)) as ledger:
        with pytest.raises(LedgerUnavailable, match="needs the primary"):
            await ledger.begin_epoch(EMPTY)
    with postgres.connected("postgres") as raw:
        raw.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only'.encode())
    async with ledger_at(f"postgresql://visitor:v1s1tor@127.0.0.1:{postgres.port}/{name}") as ledger:
        with pytest.raises(LedgerUnavailable, match="lacks rights"):
            await ledger.begin_epoch(EMPTY)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:{0}@127.0.0.1:{1}/nowhere",
        "postgresql://footlights:wrong{0}@127.0.0.1:{1}/postgres",
        "postgresql://u:{0}@127.0.0.1:1/x",
        "postgresql://u:{0}@127.0.0.1:{1}/x?world=..",
        "postgresql://u:{0}@127.0.0.1:{1}/x?world=",
        "postgresql://u:{0}@127.0.0.1:{1}/x?nothing={0}",
        "postgresql://u:{0}@127.0.0.1:{1}/x?password={0}&connect_timeout={0}",
        "postgresql://u:{0}@127.0.0.1:port/x",
        "postgresql://u:/{0}@127.0.0.1:{1}/x",
        "postgresql://u:?{0}@127.0.0.1:{1}/x",
        "postgresql://u:5?{0}@127.0.0.1:{1}/x",
        "postgresql://u:#{0}@127.0.0.1:{1}/x",
        "postgresql://u:{0}@[127.0.0.1:{1}/x",
    ],
)
async def test_a_wrong_url_is_refused_in_a_sentence_that_has_no_password(postgres: Server, url: str) -> None:
    url = url.format("s3cret", postgres.port)
    with pytest.raises((InvalidCommand, LedgerUnavailable)) as caught:
        async with ledger_at(url) as ledger:
            await ledger.begin_epoch(EMPTY)
    told: BaseException | None = caught.value
    assert str(told).endswith((".", ")"))
    while told is not None:
        assert "s3cret" not in str(told)
        told = told.__cause__ or (None if told.__suppress_context__ else told.__context__)


def test_no_text_of_an_address_has_its_password(postgres: Server) -> None:
    place = ledger_name(postgres.url("game", "tavern"))
    assert str(place) == f"postgresql://footlights@127.0.0.1:{postgres.port}/game?world=tavern"
    for text in (str(place), repr(place), repr(ledger_at(postgres.url("game")))):
        assert PASSWORD not in text
        assert "p%2Fa" not in text
