"""The feed of commits on a stage thread: polled like events, woken like events, and resumed from the ledger."""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING, Any

import pytest
import trio

from footlights import InvalidCommand, Stage, open_stage
from footlights.authority import Intent, IntentType, JsonWorld, MemoryLedger, RuleBook, accept, apply_patch, patch
from footlights.errors import LedgerUnavailable
from footlights.stream.ledger_tail import PAGE
from footlights.testing import cancel_everywhere
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_transports import PolledFeed, StageThread, StageThreadDied
from footlights_transports.embed.trio_thread import TrioThread
from tests.kit.threads import no_thread_is_left as no_thread_is_left

if TYPE_CHECKING:
    from pathlib import Path

    from footlights import Cast
    from footlights.authority.rules import Ruling
    from footlights.stream.commit_feed import WorldCommit

LONG = 30.0


def pay(world: Any, intents: tuple[Intent, ...]) -> Ruling:
    coins = sum(intent.payload["coins"] for intent in intents if isinstance(intent.payload, dict))  # type: ignore[misc]
    return accept(patch.replace("/purse", world["purse"] + coins)) if coins else accept()


def coins(number: int) -> list[Intent]:
    return [Intent(IntentType.DECISION, "coins", {"coins": number})]


def cast() -> Cast:
    return standard_cast(
        ScriptedModel(lambda _: [Say("Yes?")]), world=JsonWorld({"purse": 0}), rules=RuleBook({"pay": pay})
    )


def poll(feed: PolledFeed, number: int) -> list[WorldCommit]:
    seen: list[WorldCommit] = []
    while len(seen) < number:
        polled = feed.poll(timeout=LONG)
        assert polled, "nothing came"
        seen += polled
    return seen


def test_a_mirror_on_another_thread_is_equal_to_the_world() -> None:
    with StageThread(cast()) as stage:
        stage.commit(coins(7), "before")
        feed = stage.commits(under="/purse")
        mirror = feed.world
        assert mirror == {"purse": 7}
        for number in range(3 * PAGE):
            stage.commit_soon(coins(1), f"payment {number}")
        for commit in poll(feed, 3 * PAGE):
            mirror = apply_patch(mirror, commit.changes or ())
        assert mirror == stage.world == {"purse": 7 + 3 * PAGE}
        assert feed.poll() == []


def test_a_feed_goes_on_after_a_restart_where_it_was_polled(tmp_path: Path) -> None:
    path = tmp_path / "game.ledger"
    with StageThread(cast(), ledger=path) as stage:
        feed = stage.commits()
        stage.commit(coins(1), "first")
        assert [commit.why for commit in poll(feed, 1)] == ["first"]
        for number in range(2 * PAGE):  # more than may wait between the threads
            stage.commit_soon(coins(1), f"missed {number}")
        stage.commit(coins(1), "the last")
    with StageThread(cast(), ledger=path) as stage:
        whys = [commit.why for commit in poll(stage.commits(after=feed.cursor), 2 * PAGE + 1)]
        assert sorted(map(str, whys)) == sorted([*(f"missed {number}" for number in range(2 * PAGE)), "the last"])


def test_a_feed_that_began_and_saw_nothing_has_a_cursor(tmp_path: Path) -> None:
    path = tmp_path / "game.ledger"
    with StageThread(cast(), ledger=path) as stage:
        first = stage.commits().cursor
        before = stage.commit(coins(1), "before").commit_id
        second = stage.commits().cursor
        assert (first, second) == ("genesis", before)
        stage.commit(coins(1), "after")
    with StageThread(cast(), ledger=path) as stage:
        assert [commit.why for commit in poll(stage.commits(after=second), 1)] == ["after"]


def test_a_host_is_woken_for_commits_and_for_the_end_of_the_feed() -> None:
    woken: queue.Queue[None] = queue.Queue()
    with StageThread(cast()) as stage:
        feed = stage.commits()
        feed.on_ready(lambda: woken.put(None))
        assert woken.empty()
        stage.commit(coins(1), "one")
        woken.get(timeout=LONG)
        assert len(feed.poll()) == 1
    woken.get(timeout=LONG)
    assert not feed.is_open
    assert feed.poll() == []


def test_a_stage_closes_although_nobody_polls_its_feeds() -> None:
    with StageThread(cast()) as stage:
        feeds = [stage.commits(after="genesis") for _ in range(3)]
        for number in range(2 * PAGE):
            stage.commit_soon(coins(1), f"payment {number}")
        stage.commit(coins(1), "the last")
    for feed in feeds:
        assert len(feed.poll(max_events=10 * PAGE)) == PAGE
        assert not feed.is_open


def test_a_feed_that_is_closed_reads_no_more() -> None:
    with StageThread(cast()) as stage:
        feed = stage.commits()
        feed.close()
        stage.call(Stage.statistics)
        stage.commit(coins(1), "unseen")
        assert feed.poll(timeout=LONG) == []
        assert not feed.is_open


def test_a_feed_after_an_unknown_commit_is_refused_and_the_stage_goes_on() -> None:
    with StageThread(cast()) as stage:
        with pytest.raises(InvalidCommand, match="no commit with that id"):
            stage.commits(after="c-0000000000000000")
        with pytest.raises(InvalidCommand):
            stage.commits(under="purse")
        stage.commit(coins(1), "still here")


class Unreadable(MemoryLedger):
    fails = False

    async def commits_from(self, position: int, limit: int) -> Any:
        if self.fails:
            raise LedgerUnavailable("The disk is away.")
        return await super().commits_from(position, limit)


def test_a_ledger_that_cannot_be_read_ends_the_feed_and_nothing_else() -> None:
    ledger = Unreadable()
    with StageThread(cast(), ledger=ledger) as stage:
        feed = stage.commits()
        ledger.fails = True
        stage.commit(coins(1), "unreadable")
        with pytest.raises(LedgerUnavailable):
            feed.poll(timeout=LONG)
        assert not feed.is_open
        ledger.fails = False
        assert [commit.why for commit in poll(stage.commits(after=feed.cursor), 1)] == ["unreadable"]


def test_a_stage_that_died_is_reported_by_its_feed() -> None:
    stage = StageThread(cast()).open()
    feed = stage.commits()

    async def break_down() -> None:
        raise ZeroDivisionError

    stage.call(lambda _: trio.lowlevel.spawn_system_task(break_down))
    with pytest.raises(StageThreadDied):
        feed.poll(timeout=LONG)
    with pytest.raises(StageThreadDied):
        stage.close()


def test_a_reading_of_commits_that_is_cancelled_anywhere_leaves_a_cursor_without_gap_or_repeat() -> None:
    async def scenario() -> None:
        async with open_stage(cast()) as stage:
            feed = PolledFeed(TrioThread(open_stage(cast()), timeout=LONG, exit_timeout=LONG), stage.commits())
            whys: list[str | None] = []
            try:
                async with trio.open_nursery() as nursery:
                    await nursery.start(feed.run, stage)
                    for why in ("one", "two", "three"):
                        await stage.commit(coins(1), why)
                        whys += [commit.why for commit in feed.poll()]
                    nursery.cancel_scope.cancel()
            finally:
                with trio.CancelScope(shield=True):
                    whys += [commit.why for commit in feed.poll()]
                    await stage.commit(coins(1), "last")
                    rest = stage.commits(after=feed.cursor or "genesis")
                    while "last" not in whys:
                        whys.append((await anext(rest)).why)
                assert len(whys) == len(set(whys)) == stage.world["purse"]

    assert cancel_everywhere(scenario, pairs=0).points > 9
