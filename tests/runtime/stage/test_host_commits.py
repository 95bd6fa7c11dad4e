"""Commits of the host, each decided exactly once whatever players and the ledger do, and the feed of commits."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from attrs import evolve

from footlights import (
    BusyRule,
    CommitOutcome,
    InvalidCommand,
    Limits,
    SessionClosed,
    SessionParams,
    TurnParams,
    open_stage,
)
from footlights.authority import (
    Intent,
    IntentType,
    JsonWorld,
    MemoryLedger,
    RuleBook,
    SqliteLedger,
    accept,
    apply_patch,
    patch,
    refuse,
)
from footlights.authority.audit.audit import audit
from footlights.authority.ledger.sqlite.reader import SqliteReader
from footlights.errors import CommitUnknown
from footlights.stream.commit_feed import seen_from
from footlights.testing import cancel_everywhere
from footlights.testing.faults import FlakyLedger
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_transports import StageThread

if TYPE_CHECKING:
    from footlights.authority.rules import Ruling


def pay(world: Any, intents: tuple[Intent, ...]) -> Ruling:
    coins = sum(intent.payload["coins"] for intent in intents if isinstance(intent.payload, dict))  # type: ignore[misc]
    if world["purse"] + coins < 0:
        return refuse("poor", "There is not so much in the purse.")
    return accept(patch.replace("/purse", world["purse"] + coins)) if coins else accept()


def coins(number: int, ref: str = "coins") -> list[Intent]:
    return [Intent(IntentType.DECISION, ref, {"coins": number})]


def cast() -> Any:
    model = ScriptedModel(lambda prompt: [Say("Word by word by word.")], pace=0.01)
    return standard_cast(model, world=JsonWorld({"purse": 0}), rules=RuleBook({"pay": pay}))


@pytest.mark.shows("core-41")
async def test_the_host_commits_outside_of_sessions(quiet_clock: object) -> None:
    async with open_stage(cast()) as stage:
        paid = await stage.commit(coins(5), "quest done")
        refused = await stage.commit(coins(-9), "tax")
        assert paid.commit_outcome is CommitOutcome.OK
        assert (refused.commit_outcome, refused.issues[0].code) == (CommitOutcome.FAIL_CLOSED, "poor")
        assert stage.world == {"purse": 5}
        first, second = await stage.ledger.latest("@host", 9)
        assert (first.turn_id, first.why, second.turn_id, second.why) == ("t1-000001", "quest done", "t1-000002", "tax")
        assert second.previous == first.commit_digest


async def test_no_session_can_have_the_name_of_the_host() -> None:
    with pytest.raises(InvalidCommand):
        SessionParams(session_id="@host")
    async with open_stage(cast()) as stage:
        with pytest.raises(InvalidCommand):
            stage.resume("@host")


@pytest.mark.parametrize("why", ["", "x" * 257, "two\nlines", 7, None])
async def test_a_reason_that_cannot_be_recorded_is_refused(why: Any) -> None:
    async with open_stage(cast()) as stage:
        with pytest.raises(InvalidCommand):
            await stage.commit(coins(1), why)
        with pytest.raises(InvalidCommand):
            await stage.commit([], "nothing")
        with pytest.raises(InvalidCommand, match="a list"):
            await stage.commit(coins(1)[0], "one of them")  # type: ignore[arg-type]  # on purpose
        assert stage.world == {"purse": 0}


async def test_a_thousand_commits_at_once_are_decided_while_players_barge_in(tmp_path: Any) -> None:
    outcomes: list[CommitOutcome] = []
    path = tmp_path / "game.ledger"
    async with open_stage(cast(), ledger=path, limits=Limits(max_open_turns=64)) as stage:

        async def commit(number: int) -> None:
            outcomes.append((await stage.commit(coins(1), f"payment {number}")).commit_outcome)

        async def barge_in() -> None:
            session = stage.start()
            for _ in range(20):
                session.begin_turn("No!", TurnParams(busy=BusyRule.INTERRUPT))
                await trio.sleep(0.001)

        async with trio.open_nursery() as nursery:
            for number in range(1_000):
                nursery.start_soon(commit, number)
            for _ in range(3):
                nursery.start_soon(barge_in)
        assert stage.world == {"purse": 1_000}
    assert outcomes == [CommitOutcome.OK] * 1_000
    with SqliteReader(path) as reader:
        assert audit(reader).ok
        entries = [entry for entry in reader.entries() if entry.session_id == "@host"]
        assert sorted(entry.turn_id for entry in entries) == [f"t1-{each:06d}" for each in range(1, 1_001)]


async def test_a_ledger_that_cannot_write_fails_the_commit_closed(quiet_clock: object) -> None:
    async with open_stage(cast(), ledger=FlakyLedger(MemoryLedger(), failing_appends={1})) as stage:
        lost = await stage.commit(coins(1), "lost")
        assert [issue.code for issue in lost.issues] == ["ledger_unavailable"]
        kept = await stage.commit(coins(1), "kept")
        assert kept.commit_outcome is CommitOutcome.OK
        assert stage.world == {"purse": 1}


class _StuckLedger(MemoryLedger):
    async def append(self, *_: Any) -> None:
        await trio.sleep_forever()


async def test_a_commit_that_is_not_durable_at_the_deadline_is_unknown(quiet_clock: object) -> None:
    raised: list[BaseException] = []
    stuck = open_stage(cast(), ledger=_StuckLedger(), limits=Limits(max_open_turns=1))
    async with trio.open_nursery() as nursery, stuck as stage:

        async def commit() -> None:
            try:
                await stage.commit(coins(1), "too late")
            except (CommitUnknown, SessionClosed) as error:
                raised.append(error)

        nursery.start_soon(commit)
        nursery.start_soon(commit)
        await trio.testing.wait_all_tasks_blocked()
    assert sorted(type(error).__name__ for error in raised) == ["CommitUnknown", "SessionClosed"]


async def test_the_feed_goes_on_from_the_ledger_without_gap_or_repeat(tmp_path: Any) -> None:
    path = tmp_path / "game.ledger"
    async with open_stage(cast(), ledger=path) as stage:
        feed = stage.commits()
        mirror: Any = await feed.start()
        first = await stage.commit(coins(1), "one")
        await stage.commit(coins(-9), "refused")
        seen = await anext(feed)
        assert (seen.commit_id, seen.why) == (first.commit_id, "one")
        mirror = apply_patch(mirror, seen.changes or ())
        cursor = feed.cursor
        for number in range(100):  # more than one page
            await stage.commit(coins(1), f"more {number}")
    async with open_stage(cast(), ledger=path) as stage:
        feed = stage.commits(after=cursor)
        whys = []
        with trio.move_on_after(1):
            async for seen in feed:
                whys.append(seen.why)
                mirror = apply_patch(mirror, seen.changes or ())
                if len(whys) == 100:
                    await stage.commit(coins(1), "live")
                if seen.why == "live":
                    break
        assert whys == [*(f"more {number}" for number in range(100)), "live"]
        assert mirror == stage.world == {"purse": 102}


async def test_a_feed_after_an_unknown_commit_is_refused() -> None:
    async with open_stage(cast()) as stage:
        with pytest.raises(InvalidCommand):
            await anext(stage.commits(after="c-0000000000000000"))
        with pytest.raises(InvalidCommand):
            stage.commits(under="players")


async def test_a_feed_ends_with_the_stage(quiet_clock: object) -> None:
    async with trio.open_nursery() as nursery, open_stage(cast()) as stage:

        async def follow() -> None:
            assert [seen async for seen in stage.commits()] == []

        nursery.start_soon(follow)
        await trio.testing.wait_all_tasks_blocked()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (patch.replace("/players/bob/purse", 1), 1),
        (patch.replace("/players/bobby", 1), None),
        (patch.replace("/players", {}), 0),
        (patch.copy("/chest", "/players/bob/chest"), 0),
        (patch.move("/players/bob/a", "/players/bob/b"), 1),
        (patch.test("/players/bob", 1), None),
    ],
)
async def test_a_part_of_the_world_sees_what_concerns_it(change: patch.PatchOp, expected: int | None) -> None:
    async with open_stage(cast()) as stage:
        await stage.commit(coins(1), "one")
        (record,) = await stage.ledger.latest("@host", 1)
    seen = seen_from(evolve(record, changes=(change,)), "/players/bob")
    assert (None if seen is None else len(seen.changes or ())) == expected
    if expected == 0:
        assert seen is not None
        assert seen.changes is None


def test_a_cancelled_commit_is_decided_once_or_never_began() -> None:
    async def scenario() -> None:
        async with open_stage(cast()) as stage:
            feed = stage.commits()
            await feed.start()
            try:
                await stage.commit(coins(1), "once")
                await anext(feed)
            finally:
                with trio.CancelScope(shield=True):
                    while stage.statistics().commits_waiting:  # noqa: ASYNC110 - a stage has no event for that
                        await trio.sleep(0.01)
                    found = await stage.ledger.latest("@host", 9)
                assert stage.world == {"purse": len(found)}
                assert len(found) <= 1

    assert cancel_everywhere(scenario, pairs=0).points > 3


def test_a_follower_that_is_cancelled_anywhere_goes_on_without_gap_or_repeat() -> None:
    async def scenario() -> None:
        async with open_stage(cast()) as stage:
            feed, whys = stage.commits(under="/purse"), list[str | None]()
            await feed.start()
            try:
                for number in range(3):
                    await stage.commit(coins(1), f"{number}")
                    whys.append((await anext(feed)).why)
            finally:
                with trio.CancelScope(shield=True):
                    while stage.statistics().commits_waiting:  # noqa: ASYNC110 - a stage has no event for that
                        await trio.sleep(0.1)
                    found = await stage.ledger.latest("@host", 9)
                    while len(whys) < len(found):
                        whys.append((await anext(feed)).why)
                assert whys == [f"{number}" for number in range(len(found))]

    assert cancel_everywhere(scenario, pairs=0).points > 9


def test_a_stage_thread_commits_for_its_host() -> None:
    with StageThread(cast()) as stage:
        tickets = [stage.commit_soon(coins(1), "one of many") for _ in range(20)]
        assert stage.commit(coins(1), "the last").commit_outcome is CommitOutcome.OK
        assert all(ticket.result().commit_outcome is CommitOutcome.OK for ticket in tickets)
        assert stage.world == {"purse": 21}


async def test_sqlite_keeps_the_reason_in_the_record(tmp_path: Any) -> None:
    async with SqliteLedger(tmp_path / "g.ledger") as ledger, open_stage(cast(), ledger=ledger) as stage:
        await stage.commit(coins(1), "quest")
        (record,) = await ledger.commits_from(0, 9)
        assert record.why == "quest"
        assert record.written.count(b'"why":"quest"') == 1


_KILLED = """
import os, signal, sys, trio
from test_host_commits import cast, coins
from footlights import open_stage

async def main():
    async with open_stage(cast(), ledger=sys.argv[1]) as stage:
        print((await stage.commit(coins(1), "mirrored")).commit_id, flush=True)
        await stage.commit(coins(4), "committed, and not mirrored")
        os.kill(os.getpid(), signal.SIGKILL)

trio.run(main)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
async def test_a_mirror_killed_before_its_own_write_is_equal_after_a_restart(tmp_path: Any) -> None:
    path = str(tmp_path / "g.ledger")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    run = await trio.run_process(
        [sys.executable, "-c", _KILLED, path], capture_stdout=True, check=False, env=environment
    )
    assert run.returncode == -signal.SIGKILL
    async with open_stage(cast(), ledger=path) as stage:
        seen = await anext(stage.commits(after=run.stdout.decode().strip()))
        assert apply_patch({"purse": 1}, seen.changes or ()) == stage.world == {"purse": 5}
