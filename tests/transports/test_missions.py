"""Mission boards and the callers that fill them, without a socket."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio

from footlights import Limits, open_stage
from footlights.authority import MemoryLedger
from footlights.errors import SessionClosed
from footlights.events import WarmState
from footlights.mission import CalloutRequest, Context, SessionState, Tier, read_callout
from footlights.testing import take_turn
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_actors.tavern import tavern_cast
from footlights_transports import missions as module
from footlights_transports.desk import FrontDesk
from footlights_transports.gate import Gate, User
from footlights_transports.mission_board import EventExists, MissionBoard
from footlights_transports.missions import UNREAD_SECONDS, Missions, MissionSettings

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from footlights import Cast, InteractionSession, Ledger, Stage
    from footlights.authority import CommitRecord

ANYBODY = User()
LISTENING = Context(tier=Tier.AWARE, session_state=SessionState.ACTIVE)


def request(text: str = "Fire.", event_id: str = "e", mission_id: str = "heist") -> CalloutRequest:
    return read_callout({"text": text, "mission_id": mission_id}, event_id)


@asynccontextmanager
async def kept(
    cast: Cast | None = None,
    *,
    ledger: Ledger | None = None,
    limits: Limits | None = None,
    settings: MissionSettings | None = None,
) -> AsyncGenerator[tuple[Stage, Missions]]:
    """A stage and its missions."""
    cast = cast or standard_cast(ScriptedModel(lambda _: [Say("Hm.")]))
    async with open_stage(cast, ledger=ledger, limits=limits) as stage, trio.open_nursery() as nursery:
        missions = Missions(FrontDesk(stage, Gate()), settings)
        nursery.start_soon(missions.keep)
        await trio.testing.wait_all_tasks_blocked()
        yield stage, missions
        nursery.cancel_scope.cancel()


def subscribers(session: InteractionSession) -> int:
    return len(session.statistics().subscribers)


def kinds(board: MissionBoard) -> list[str]:
    return [each.payload.event_type.value for each in board.after(0)]


# -- the board


async def test_a_board_keeps_its_newest_events() -> None:
    async with kept() as (_, missions):
        board = MissionBoard(max_events=2)
        for number in range(3):
            board.add(await missions.speak(ANYBODY, request(event_id=f"e{number}")))
    assert [(each.seq, each.payload.event_id) for each in board.after(0)] == [(2, "e1"), (3, "e2")]
    assert board.last_seq == 3


async def test_a_board_that_has_an_event_takes_no_other_of_that_id() -> None:
    async with kept() as (_, missions):
        await missions.add(ANYBODY, request())
        with pytest.raises(EventExists):
            await missions.add(ANYBODY, request("Flood."))
        assert kinds(missions.board(ANYBODY, "heist")) == ["state_change"]


async def test_times_are_those_of_the_wall_and_never_go_back(quiet_clock: trio.testing.MockClock) -> None:
    times = iter([5_000.0, 1.0, 1.0])
    async with kept(settings=MissionSettings(wall_clock=lambda: next(times))) as (_, missions):
        first = await missions.add(ANYBODY, request(event_id="e1"))
        await trio.sleep(2)
        second = await missions.add(ANYBODY, request(event_id="e2"))
    assert (first.at_ms, second.at_ms) == (5_000_000, 5_002_000)


async def test_the_board_that_was_not_used_for_longest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BOARDS", 2)
    async with kept() as (stage, missions):
        session = stage.start()
        called = missions.read(ANYBODY, session.session_id, LISTENING)
        await trio.testing.wait_all_tasks_blocked()
        assert subscribers(session) == 1
        kept_board = missions.board(ANYBODY, "kept")
        missions.board(ANYBODY, "new")
        await trio.testing.wait_all_tasks_blocked()
        assert called.is_over
        assert subscribers(session) == 0
        assert missions.board(ANYBODY, "kept") is kept_board
        for mission_id in ("another", "yet another"):
            missions.board(ANYBODY, mission_id)
        assert kept_board.is_over


async def test_boards_that_hold_too_much_are_forgotten_and_their_places_never_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 4_500)
    async with kept() as (_, missions):
        for number in range(3):
            await missions.add(ANYBODY, request(event_id=f"e{number}"))
        board = missions.board(ANYBODY, "heist")
        assert board.size == sum(event.size for event in board.after(0)) > 3_000
        await missions.add(ANYBODY, request(mission_id="other"))
        await missions.add(ANYBODY, request(mission_id="third"))
        assert board.is_over
        again = await missions.add(ANYBODY, request(event_id="e9"))
        assert again.seq == 4


async def test_a_server_that_closes_lets_readers_go_and_begins_no_board() -> None:
    async with kept() as (_, missions):
        board = missions.board(ANYBODY, "heist")
    assert board.is_over
    await board.wait_beyond(5)
    missions.attend(ANYBODY, "other")
    with pytest.raises(SessionClosed):
        missions.board(ANYBODY, "other")


# -- callers


async def test_a_session_is_called_out_from_when_its_board_is_read_until_it_is_closed() -> None:
    async with kept() as (stage, missions):
        session = stage.start()
        await take_turn(session, "Before")
        board = missions.read(ANYBODY, session.session_id, LISTENING)
        assert missions.read(ANYBODY, session.session_id, None) is board
        await trio.testing.wait_all_tasks_blocked()
        await take_turn(session, "Hello")
        await trio.testing.wait_all_tasks_blocked()
        assert kinds(board) == ["state_change"]
        assert board.after(0)[0].payload.voice is not None
        await session.close()
        await trio.testing.wait_all_tasks_blocked()
        assert missions.read(ANYBODY, session.session_id, None) is board


async def test_a_listener_that_says_nothing_hears_nothing() -> None:
    async with kept() as (stage, missions):
        session = stage.start()
        board = missions.read(ANYBODY, session.session_id, None)
        await trio.testing.wait_all_tasks_blocked()
        await take_turn(session, "Hello")
        await trio.testing.wait_all_tasks_blocked()
        assert board.after(0)[0].payload.suppression.reason == "context_ineligible"


async def test_a_board_that_nobody_reads_keeps_no_session(quiet_clock: trio.testing.MockClock) -> None:
    async with kept() as (stage, missions):
        session = stage.start()
        missions.read(ANYBODY, session.session_id, None)
        await trio.sleep(UNREAD_SECONDS - 1)
        missions.attend(ANYBODY, session.session_id)
        await trio.sleep(UNREAD_SECONDS - 1)
        assert subscribers(session) == 1
        await trio.sleep(2)
        assert subscribers(session) == 0
        missions.attend(ANYBODY, session.session_id)
        await trio.sleep(1)
        assert subscribers(session) == 1


async def test_what_was_told_before_is_not_put_on_the_board_again(quiet_clock: trio.testing.MockClock) -> None:
    model = ScriptedModel(lambda _: [Say("Hm.")], load_seconds=10_000, warm_state=WarmState.COLD)
    async with kept(standard_cast(model), limits=Limits(load_timeout=99_999, turn_timeout=99_999)) as (stage, missions):
        session = stage.start()
        board = missions.read(ANYBODY, session.session_id, None)
        await trio.sleep(1)
        session.begin_turn("Hello")
        await trio.sleep(UNREAD_SECONDS + 1)
        assert subscribers(session) == 0
        missions.attend(ANYBODY, session.session_id)
        await trio.sleep(1)
        assert subscribers(session) == 1
        assert kinds(board) == ["timer_update"]


async def test_the_session_whose_board_was_not_read_for_longest_is_called_out_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_CALLERS", 1)
    async with kept() as (stage, missions):
        first, second = stage.start(), stage.start()
        for session in (first, second):
            missions.read(ANYBODY, session.session_id, None)
            await trio.testing.wait_all_tasks_blocked()
        assert (subscribers(first), subscribers(second)) == (0, 1)


async def test_a_session_that_has_no_place_for_a_caller_goes_on_without_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with kept(limits=Limits(max_subscribers=1)) as (stage, missions):
        session = stage.start()
        async with session.subscribe():
            board = missions.read(ANYBODY, session.session_id, None)
            await trio.testing.wait_all_tasks_blocked()
        assert kinds(board) == []
        assert not caplog.records
        await take_turn(session, "Hello")


class Broken(MemoryLedger):
    """A ledger whose reading fails in a way that nobody expects."""

    async def find(self, session_id: str, turn_id: str) -> CommitRecord | None:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("secret words")


async def test_a_caller_that_fails_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    tavern = tavern_cast(pace=0, load_seconds=0, tool_seconds=0)
    with caplog.at_level(logging.DEBUG):
        async with kept(tavern, ledger=Broken()) as (stage, missions):
            session = stage.start()
            missions.read(ANYBODY, session.session_id, None)
            await trio.testing.wait_all_tasks_blocked()
            await take_turn(session, "sell me the lantern")
            await trio.testing.wait_all_tasks_blocked()
            assert subscribers(session) == 0
            await take_turn(session, "Hello")
    failures = [each.getMessage() for each in caplog.records if each.name == "footlights.mission"]
    assert len(failures) == 1
    assert failures[0].startswith("the callouts of a session failed: RuntimeError at ")
    assert "secret" not in caplog.text
