"""The feeds of a server: their beginning, their limits, and ends that harm nothing."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from attrs import frozen
from trio.testing import wait_all_tasks_blocked

from footlights import CommitOutcome, LedgerUnavailable, Limits, MemoryLedger, SessionParams, TurnParams, open_stage
from footlights.session.core import MAX_OBSERVERS
from footlights.testing import cancel_everywhere
from footlights_actors import Line, Say, ScriptedModel, Stall, standard_cast
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_transports.views.chat_feed.feeds import (
    LOOK_UP_SECONDS,
    MAX_WORD_CHARS,
    MAX_WORDS,
    SWEEP,
    UNREAD_SECONDS,
    ChatFeeds,
    OpenFeed,
)
from footlights_transports.views.chat_feed.pure.feed import player_said

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio.testing import MockClock

    from footlights import Cast, InteractionSession, Prompt, Stage
    from footlights_kit.trial import Trial


def script(prompt: Prompt) -> list[Line]:
    return [Say("Well"), Stall()] if prompt.user == "stall" else [Say("Good evening.")]


@frozen
class House:
    stage: Stage
    feeds: ChatFeeds
    nursery: trio.Nursery

    async def contents(self, session: InteractionSession) -> list[str]:
        await wait_all_tasks_blocked()
        return [each.content for each in await self.feeds.read(session)]

    async def say(self, session: InteractionSession, words: str, params: TurnParams | None = None) -> str:
        turn_id = session.begin_turn(words, params)
        self.feeds.player_said(session, turn_id, words)
        commit = await session.finalize(turn_id).wait()
        return commit.commit_outcome.value


@asynccontextmanager
async def open_house(
    cast: Cast | None = None, *, ledger: Any = None, limits: Limits | None = None, max_feeds: int = 3
) -> AsyncGenerator[House]:
    ledger = ledger or MemoryLedger()
    cast = cast or standard_cast(ScriptedModel(script))
    clock = trio.current_time
    async with (
        open_stage(cast, ledger=ledger, limits=limits, wall_clock=clock) as stage,
        trio.open_nursery() as nursery,
    ):
        feeds = ChatFeeds(ledger, max_feeds=max_feeds, wall_clock=clock)
        nursery.start_soon(feeds.keep)
        await wait_all_tasks_blocked()
        yield House(stage, feeds, nursery)
        nursery.cancel_scope.cancel()


@pytest.mark.shows("feed-31")
async def test_a_feed_begins_with_its_session_and_costs_no_task_until_it_is_read() -> None:
    async with open_house() as house:
        session = house.stage.start()
        await house.say(session, "one")
        await house.say(session, "two")
        assert session.statistics().observers == ()
        turn = ["The turn has begun.", "Good evening.", "The turn is committed."]
        assert await house.contents(session) == ["one", *turn, "two", *turn]
        await house.say(session, "three")
        assert (await house.contents(session))[8:] == ["three", *turn]


async def test_what_a_feed_kept_for_an_unread_session_goes_with_it(quiet_clock: MockClock) -> None:
    async with open_house() as house:
        session = house.stage.start()
        await house.say(session, "one")
        assert house.feeds.feed(session.session_id) is not None
        await session.close()
        await trio.sleep(SWEEP + 1)
        assert house.feeds.feed(session.session_id) is None


@pytest.mark.shows("feed-22")
async def test_a_turn_that_waits_says_so_and_that_it_goes_on_but_not_when_it_is_canceled(
    quiet_clock: MockClock,
) -> None:
    async with open_house() as house:
        session = house.stage.start()
        await house.contents(session)
        first = session.begin_turn("stall")
        session.begin_turn("two")
        assert (await house.contents(session))[-1] == "The turn waits for 1 before it."
        session.cancel(first)
        assert (await house.contents(session))[-3:] == ["The turn goes on.", "Good evening.", "The turn is committed."]
        session.begin_turn("stall")
        session.begin_turn("three")
        session.cancel()
        assert (await house.contents(session)).count("The turn goes on.") == 1


@pytest.mark.shows("feed-21")
async def test_a_feed_has_the_open_turn_from_its_beginning(quiet_clock: MockClock) -> None:
    async with open_house() as house:
        session = house.stage.start()
        session.begin_turn("stall")
        await wait_all_tasks_blocked()
        assert [each.content for each in await house.feeds.read(session)] == ["The turn has begun."]
        session.cancel()
        assert (await house.contents(session))[1:] == ["The turn was canceled.", "Nothing of the turn was committed."]


@pytest.mark.shows("feed-47")
async def test_after_a_drop_a_feed_begins_again() -> None:
    async with open_house() as house:
        session = house.stage.start()
        await house.contents(session)
        await house.say(session, "one")
        await wait_all_tasks_blocked()
        house.feeds.drop(session.session_id)
        assert await house.contents(session) == []
        await house.say(session, "two")
        assert len(await house.contents(session)) == 4
        house.feeds.drop("nobody")


async def test_an_approval_is_read_from_the_ledger() -> None:
    async with open_house(tavern_cast(pace=0, load_seconds=0, tool_seconds=0)) as house:
        session = house.stage.start()
        await house.contents(session)
        assert await house.say(session, "sell me the lantern") == "ok"
        asked = "Approval needed (a-000001): Buy the lantern of the house for 15 coins? Answer it in a new turn."
        assert (await house.contents(session))[-2:] == ["The turn is committed.", asked]
        assert await house.say(session, "No.", TurnParams(approvals={"a-000001": False})) == "ok"
        assert (await house.contents(session))[-1] == "Denied (a-000001): Buy the lantern of the house for 15 coins?"


class BrokenLedger(MemoryLedger):
    """A ledger that cannot be read, or finds nothing."""

    error: Exception | None = None

    async def find(self, session_id: str, turn_id: str) -> None:
        await trio.lowlevel.checkpoint()
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize("error", [None, LedgerUnavailable("no disk")])
async def test_without_the_ledger_only_artifacts_are_missing(error: Exception | None) -> None:
    ledger = BrokenLedger()
    ledger.error = error
    async with open_house(tavern_cast(pace=0, load_seconds=0, tool_seconds=0), ledger=ledger) as house:
        session = house.stage.start()
        await house.contents(session)
        assert await house.say(session, "sell me the lantern") == "ok"
        assert (await house.contents(session))[-1].startswith("Approval needed (a-000001): ")


async def test_a_feed_that_fails_is_gone_and_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    ledger = BrokenLedger()
    ledger.error = ValueError("what somebody said")
    async with open_house(tavern_cast(pace=0, load_seconds=0, tool_seconds=0), ledger=ledger) as house:
        session = house.stage.start()
        await house.contents(session)
        with caplog.at_level(logging.ERROR, "footlights.incidents"):
            assert await house.say(session, "sell me the lantern") == "ok"
            await wait_all_tasks_blocked()
        assert house.feeds.feed(session.session_id) is None
        assert await house.contents(session) == []
        assert await house.say(session, "hello") == "ok"
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("chat_feed failed: ValueError at ")
    assert "somebody" not in line


@pytest.mark.shows("feed-30")
async def test_a_feed_ends_with_its_session() -> None:
    async with open_house() as house:
        session = house.stage.start()
        await house.contents(session)
        await session.close()
        await wait_all_tasks_blocked()
        assert house.feeds.feed(session.session_id) is None
        assert await house.contents(session) == []


async def test_a_feed_without_a_place_for_its_observer_stays_empty() -> None:
    async with open_house() as house:
        session = house.stage.start()
        async with AsyncExitStack() as watched:
            for _ in range(MAX_OBSERVERS):
                await watched.enter_async_context(session.subscribe(observer=True))
            assert await house.contents(session) == []
            assert house.feeds.feed(session.session_id) is None


async def test_a_feed_is_an_observer_and_no_subscriber() -> None:
    async with open_house(limits=Limits(max_subscribers=1)) as house:
        session = house.stage.start()
        await house.contents(session)
        async with session.subscribe():
            assert house.feeds.feed(session.session_id) is not None


@pytest.mark.shows("feed-30")
async def test_a_new_session_of_the_same_id_has_a_feed_of_its_own(quiet_clock: MockClock) -> None:
    async with open_house(tavern_cast(pace=0, load_seconds=0, tool_seconds=0), ledger=SlowLedger()) as house:
        ann = SessionParams(session_id="ann")
        first = house.stage.start(ann)
        await house.contents(first)
        await house.say(first, "a secret: sell me the lantern")
        await first.close()
        second = house.stage.start(ann)
        assert await house.contents(second) == []
        await house.say(second, "hello")
        assert (await house.contents(second))[0] == "hello"
        await trio.sleep(2 * LOOK_UP_SECONDS)
        assert (await house.contents(house.stage.session("ann")))[-1] == "The turn is committed."


async def test_dropping_a_feed_ends_its_subscription_and_its_readers() -> None:
    async with open_house() as house:
        session = house.stage.start()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(house.feeds.read, session)
            while house.feeds.feed(session.session_id) is None:
                await trio.lowlevel.checkpoint()
            house.feeds.drop(session.session_id)
        await wait_all_tasks_blocked()
        assert session.statistics().observers == ()


async def test_above_the_limit_the_least_recently_read_feed_ends() -> None:
    async with open_house() as house:
        sessions = [house.stage.start() for _ in range(4)]
        for session in sessions[:3]:
            await house.contents(session)
        await house.contents(sessions[0])
        await house.contents(sessions[3])
        there = [house.feeds.feed(session.session_id) is not None for session in sessions]
        assert there == [True, False, True, True]
        assert [len(session.statistics().observers) for session in sessions] == [1, 0, 1, 1]


async def test_a_feed_that_is_not_read_ends_its_subscription(quiet_clock: MockClock) -> None:
    async with open_house() as house:
        session = house.stage.start()
        await house.contents(session)
        await trio.sleep(UNREAD_SECONDS - 1)
        await house.contents(session)
        await trio.sleep(UNREAD_SECONDS - 1)
        assert house.feeds.feed(session.session_id) is not None
        await house.say(session, "one")
        await trio.sleep(2)
        assert house.feeds.feed(session.session_id) is None
        assert session.statistics().observers == ()


async def test_many_readers_share_one_feed() -> None:
    async with open_house() as house:
        session = house.stage.start()
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(house.feeds.read, session)
        assert len(session.statistics().observers) == 1


async def test_no_feed_begins_during_shutdown() -> None:
    async with open_house() as house:
        one, other = house.stage.start(), house.stage.start()
        await house.contents(one)
        house.nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            for _ in range(10):  # at every step of the shutdown
                await trio.lowlevel.checkpoint()
                assert await house.feeds.read(other) == ()
            assert house.feeds.feed(one.session_id) is None
            assert house.feeds.feed(other.session_id) is None


class SlowLedger(MemoryLedger):
    """A ledger that never answers a read."""

    async def find(self, session_id: str, turn_id: str) -> None:
        await trio.sleep_forever()


async def test_a_feed_that_waits_for_the_ledger_delays_no_turn(quiet_clock: MockClock) -> None:
    async with open_house(tavern_cast(pace=0, load_seconds=0, tool_seconds=0), ledger=SlowLedger()) as house:
        session = house.stage.start()
        await house.contents(session)
        assert await house.say(session, "sell me the lantern") == "ok"
        await wait_all_tasks_blocked()
        began = trio.current_time()
        for _ in range(3):
            assert await house.say(session, "hello") == "ok"
        assert trio.current_time() == began
        assert (await house.contents(session))[-1].startswith("The lantern? Over the door?")
        await trio.sleep(LOOK_UP_SECONDS)
        assert (await house.contents(session)).count("The turn is committed.") == 4


async def test_a_feed_that_waits_for_the_ledger_ends_when_it_is_not_read(
    quiet_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("footlights_transports.views.chat_feed.feeds.LOOK_UP_SECONDS", 10 * UNREAD_SECONDS)
    async with open_house(tavern_cast(pace=0, load_seconds=0, tool_seconds=0), ledger=SlowLedger()) as house:
        session = house.stage.start()
        await house.contents(session)
        await house.say(session, "sell me the lantern")
        await wait_all_tasks_blocked()
        await trio.sleep(UNREAD_SECONDS - 1)
        assert house.feeds.feed(session.session_id) is not None
        await trio.sleep(2)
        assert house.feeds.feed(session.session_id) is None
        assert session.statistics().observers == ()


async def test_a_feed_keeps_a_limited_number_of_the_players_words() -> None:
    async with open_house() as house:
        opened = OpenFeed(house.stage.start())
        for number in range(MAX_WORDS + 1):
            opened.keep_words(f"t{number}", player_said("x", 0.0))
        assert [len(opened.words_of(f"t{number}")) for number in range(3)] == [0, 1, 1]
        for number in range(4):
            opened.keep_words(f"t{number}", player_said("x" * (MAX_WORD_CHARS // 3), 0.0))
        assert [len(opened.words_of(f"t{number}")) for number in range(4)] == [0, 1, 1, 1]
        opened.keep_words("long", player_said("x" * (MAX_WORD_CHARS + 1), 0.0))
        assert opened.words_of("long") == []
        opened.keep_words("last", player_said("x", 0.0))
        opened.end("for this test")
        assert opened.words_of("last") == []


def test_feeds_that_are_cancelled_anywhere_leave_the_turn_alone() -> None:
    async def scenario(trial: Trial) -> None:
        ledger = MemoryLedger()
        cast = tavern_cast(pace=0, load_seconds=0, tool_seconds=0)
        async with open_stage(cast, ledger=ledger, wall_clock=trio.current_time) as stage:
            session, feeds = stage.start(), ChatFeeds(ledger, wall_clock=trio.current_time)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(feeds.keep)
                nursery.start_soon(feeds.read, session)
                trial.aim(nursery.cancel_scope.cancel)
                with trio.CancelScope(shield=True):
                    turn_id = session.begin_turn("sell me the lantern")
                    feeds.player_said(session, turn_id, "sell me the lantern")
                    commit = await session.finalize(turn_id).wait()
                trial.disarm()
                nursery.cancel_scope.cancel()
            assert commit.commit_outcome is CommitOutcome.OK
            assert feeds.feed(session.session_id) is None
            assert session.statistics().observers == ()

    assert cancel_everywhere(scenario, orders=2, pairs=0).points > 20
