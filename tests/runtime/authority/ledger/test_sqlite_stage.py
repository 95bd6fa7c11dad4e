"""A whole stage on a real ledger file: every announced commit is there after reopening, wherever it was cancelled."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
import trio

from footlights import (
    CommitOutcome,
    Intent,
    IntentType,
    LedgerFenced,
    MemoryLedger,
    SessionParams,
    TurnParams,
    open_stage,
)
from footlights.authority import (
    CommitRecord,
    JsonWorld,
    JudgeRequest,
    RuleBook,
    Ruling,
    World,
    accept,
    every_turn,
    judge,
    patch,
)
from footlights.authority.audit.audit import audit
from footlights.authority.ledger.sqlite.ledger import SqliteLedger
from footlights.authority.ledger.sqlite.reader import SqliteReader
from footlights.testing import CancelSwallowed, cancel_everywhere
from footlights_actors import standard_cast

if TYPE_CHECKING:
    from pathlib import Path

    from footlights import Cast, CommitFinal, InteractionContext, JsonValue, Stage
    from footlights_kit.trial import Trial

NOTE = TurnParams(workload="note")


class Note:
    """Stages what was said, twice."""

    async def run(self, context: InteractionContext) -> None:
        context.request_commit(Intent(IntentType.DECISION, context.input))
        await trio.lowlevel.checkpoint()
        context.request_commit(Intent(IntentType.TURN_FINALIZE, context.input))


def write_down(world: list[str], intents: tuple[Intent, ...]) -> Ruling:
    return accept(*(patch.add("/-", intent.ref) for intent in intents))


def cast() -> Cast:
    return standard_cast(world=[], rules={"write_down": write_down}, workloads={"note": Note()})


async def note(stage: Stage, *said: str, session_id: str = "guest") -> list[CommitFinal]:
    session = stage.start(SessionParams(session_id=session_id))
    return [await session.finalize(session.begin_turn(each, NOTE)).wait() for each in said]


async def test_a_stage_says_whether_its_ledger_began_with_another_world(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ignored: list[bool] = []
    worlds: list[JsonValue] = [{"purse": 20}, {"purse": 20}, {"purse": 50}, {"purse": 20.0}]
    for world in worlds:
        async with open_stage(standard_cast(world=world), ledger=path) as stage:
            ignored.append(stage.ignores_world)
            assert stage.world == {"purse": 20}
    assert ignored == [False, False, True, False]


async def test_a_world_that_has_changed_since_is_not_another_one(tmp_path: Path) -> None:
    for _ in range(2):
        async with open_stage(cast(), ledger=tmp_path / "ledger") as stage:
            assert not stage.ignores_world
            await note(stage, "a")


async def test_a_ledger_that_keeps_no_world_ignores_none() -> None:
    ledger = MemoryLedger()
    worlds: list[JsonValue] = [{"purse": 20}, {"purse": 50}]
    for world in worlds:
        async with open_stage(standard_cast(world=world), ledger=ledger) as stage:
            assert (stage.ignores_world, stage.world) == (False, world)


async def test_a_stage_that_opens_again_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    told: list[CommitFinal] = []
    async with SqliteLedger(path) as ledger, open_stage(cast(), ledger=ledger) as stage:
        told += await note(stage, "a", "b")
    async with SqliteLedger(path) as ledger, open_stage(cast(), ledger=ledger) as stage:
        assert stage.world == ["a", "a", "b", "b"]
        told += await note(stage, "c")
        told += await note(stage, "d", session_id="neighbour")
        assert stage.world == ["a", "a", "b", "b", "c", "c", "d", "d"]
        records = [await ledger.find("guest", turn_id) for turn_id in ("t1-000001", "t1-000002", "t2-000001")]
    assert all(commit.commit_outcome is CommitOutcome.OK for commit in told)
    assert [record and record.commit_digest for record in records] == [each.commit_digest for each in told[:3]]
    assert [record and record.previous for record in records] == [None, *(each.commit_digest for each in told[:2])]


async def test_the_same_play_leaves_the_same_chain_in_any_file(tmp_path: Path) -> None:
    chains: list[list[tuple[object, ...]]] = []
    for name in ("one", "other"):
        async with SqliteLedger(tmp_path / name) as ledger, open_stage(cast(), ledger=ledger) as stage:
            await note(stage, "a", "b")
        with closing(sqlite3.connect(tmp_path / name)) as reader:
            chains.append(reader.execute("SELECT * FROM commits JOIN epochs USING (epoch)").fetchall())
    assert chains[0] == chains[1]
    assert len(chains[0]) == 2


async def test_a_stage_recovers_when_the_disk_does(tmp_path: Path) -> None:
    works = True

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            if not works:
                raise sqlite3.OperationalError("disk I/O error")
            return super().execute(sql, *values)

    def connect(path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Connection)

    ledger = SqliteLedger(tmp_path / "ledger", connect=connect)
    async with ledger, open_stage(cast(), ledger=ledger) as stage:
        guest = stage.start()
        told = [await guest.finalize(guest.begin_turn("a", NOTE)).wait()]
        works = False
        told += [await guest.finalize(guest.begin_turn("lost", NOTE)).wait()]
        told += await note(stage, "lost", session_id="newcomer")  # of whom the ledger would have to look for a chain
        works = True
        told += [await guest.finalize(guest.begin_turn("b", NOTE)).wait()]
        assert stage.world == ["a", "a", "b", "b"]
        record = await ledger.find(guest.session_id, "t1-000003")
    assert [commit.commit_outcome.value for commit in told] == ["ok", "fail_closed", "fail_closed", "ok"]
    assert {issue.code for commit in told for issue in commit.issues} == {"ledger_unavailable"}
    assert record is not None
    assert record.previous == told[0].commit_digest


class Wrapped:
    """A ledger of the host around another one."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)


def wrapped(ledger: SqliteLedger) -> Any:
    return Wrapped(ledger)


async def test_of_two_stages_on_one_wrapped_ledger_only_the_later_commits(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    told: list[CommitFinal] = []

    async def both(ledger: SqliteLedger) -> None:
        async with open_stage(cast(), ledger=wrapped(ledger)) as first:
            told.extend(await note(first, "a", session_id="ann"))
            async with open_stage(cast(), ledger=wrapped(ledger)) as second:
                told.extend(await note(second, "b", session_id="ann"))
            told.extend(await note(first, "lost", session_id="cat"))

    async with SqliteLedger(path) as ledger:
        with pytest.raises(LedgerFenced):
            await both(ledger)
    assert [commit.commit_outcome.value for commit in told] == ["ok", "ok"]
    assert turns(path) == ["t1-000001", "t2-000001"]
    with SqliteReader(path) as reader:
        assert audit(reader).ok


# -- cancelled everywhere


def turns(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as reader:
        return [turn_id for (turn_id,) in reader.execute("SELECT turn_id FROM commits ORDER BY position")]


def test_an_append_that_is_cancelled_is_kept_whole_and_returns_or_never_happened(tmp_path: Path) -> None:
    numbers = count()
    first, world = judged(JsonWorld([]), "t1", None)
    second, last = judged(world, "t2", first.commit_digest)

    async def scenario(trial: Trial) -> None:
        path = tmp_path / str(next(numbers))
        kept: list[str] = []
        async with SqliteLedger(path) as ledger:
            await ledger.begin_epoch(JsonWorld([]))
            with trio.CancelScope() as scope:
                trial.aim(scope.cancel)
                await ledger.append([first], world)
                kept.append("t1")
                await ledger.append([second], last)
                kept.append("t2")
            trial.disarm()
            assert turns(path) == kept
            opening = await ledger.begin_epoch(JsonWorld([]))
            assert len(turns(path)) == len(opening.world.view())

    assert cancel_everywhere(scenario, pairs=0).points > 10


def judged(world: World, turn_id: str, previous: str | None) -> tuple[CommitRecord, World]:
    rules = RuleBook({"note": every_turn(lambda view, intents: accept(patch.add("/-", turn_id)))})
    judgement = judge(JudgeRequest("s", turn_id, None), world, rules, previous)
    return judgement.record, judgement.world


def test_a_tool_whose_claim_is_cancelled_is_claimed_or_free_and_never_half(tmp_path: Path) -> None:
    numbers = count()

    async def scenario(trial: Trial) -> None:
        ledger = SqliteLedger(tmp_path / str(next(numbers)))
        await ledger.begin_epoch(JsonWorld([]))
        claimed = False
        with trio.CancelScope() as scope:
            trial.aim(scope.cancel)
            claimed = await ledger.begin_tool("key") is None
        trial.disarm()
        assert (await ledger.begin_tool("key") is None) is not claimed
        await ledger.close()

    assert cancel_everywhere(scenario, pairs=0).points > 3


def test_a_claim_that_is_cancelled_takes_none_of_its_group_with_it(tmp_path: Path) -> None:
    numbers = count()

    async def scenario(trial: Trial) -> None:
        ledger = SqliteLedger(tmp_path / str(next(numbers)))
        await ledger.begin_epoch(JsonWorld([]))
        claimed: set[str] = set()
        scopes = {key: trio.CancelScope() for key in ("a", "b", "c", "d")}

        async def claim(key: str) -> None:
            with scopes[key]:
                if await ledger.begin_tool(key) is None:
                    claimed.add(key)

        async with trio.open_nursery() as nursery:
            trial.aim(scopes["a"].cancel)
            for key in scopes:
                nursery.start_soon(claim, key)
            await trio.lowlevel.checkpoint()
        trial.disarm()
        assert claimed >= {"b", "c", "d"}
        for key in scopes:
            assert (await ledger.begin_tool(key) is None) is (key not in claimed)
        await ledger.close()

    # A claim whose write was begun takes effect, so it returns, although it was cancelled while it waited.
    assert cancel_everywhere(scenario, pairs=30, allow=[CancelSwallowed]).points > 10


def test_a_stage_that_is_cancelled_anywhere_leaves_no_half_turn_and_loses_none_it_told(tmp_path: Path) -> None:
    numbers = count()

    async def scenario(trial: Trial) -> None:
        path = tmp_path / str(next(numbers))
        told: list[str] = []
        with trio.CancelScope() as scope:
            trial.aim(scope.cancel)
            async with SqliteLedger(path) as ledger, open_stage(cast(), ledger=ledger) as stage:
                for said in ("a", "b"):
                    await note(stage, said, session_id=said)
                    told.append(said)
        trial.disarm()
        async with SqliteLedger(path) as ledger:
            opening = await ledger.begin_epoch(JsonWorld([]))
            world = opening.world.view()
            assert world in ([], ["a", "a"], ["a", "a", "b", "b"])
            assert isinstance(world, Sequence)
            assert len(world) >= 2 * len(told)

    assert cancel_everywhere(scenario, orders=2, pairs=0).points > 50
