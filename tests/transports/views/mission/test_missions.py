"""Mission boards and the callers that fill them, without a socket."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest
import trio

from footlights import Limits, SessionParams, open_stage
from footlights.errors import Busy, SessionClosed
from footlights.testing import take_turn
from footlights_actors import Call, Say, ScriptedModel, Stall, standard_cast
from footlights_actors.demo.tavern.cast import tavern_cast
from footlights_transports.access.policy import AccessPolicy, User
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.views.mission import board as mission_board
from footlights_transports.views.mission import missions as module
from footlights_transports.views.mission.board import EventExists, MissionBoard
from footlights_transports.views.mission.missions import UNREAD_SECONDS, Missions, MissionSettings
from footlights_transports.views.mission.pure import history
from footlights_transports.views.mission.pure.payload import Context
from footlights_transports.views.mission.pure.requests import CalloutRequest, read_callout, read_closing
from tests.kit.callouts import LISTENING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from footlights import Cast, InteractionSession, Ledger, Stage
    from footlights_transports.views.mission.pure.payload import UtilityPayload

ANYBODY = User()
ANN, BOB = User("ann"), User("bob")
LOUD: dict[str, Any] = {"classification": "critical", "context_tier": 1, "session_state": "active"}


def request(text: str = "Fire.", event_id: str = "e", mission_id: str = "heist", **fields: Any) -> CalloutRequest:
    return read_callout({"text": text, "mission_id": mission_id, **fields}, event_id)


class Hanging:
    """A voice that hangs until `let_go`."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.let_go = trio.Event()

    async def speak(self, payload: UtilityPayload) -> None:
        self.said.append(payload.event_id)
        await self.let_go.wait()


@asynccontextmanager
async def kept(
    cast: Cast | None = None,
    *,
    ledger: Ledger | None = None,
    limits: Limits | None = None,
    settings: MissionSettings | None = None,
    tokens: Mapping[str, str] | None = None,
) -> AsyncGenerator[tuple[Stage, Missions]]:
    """A stage and its missions."""
    cast = cast or standard_cast(ScriptedModel(lambda _: [Say("Hm.")]))
    async with open_stage(cast, ledger=ledger, limits=limits) as stage:
        missions = Missions(SessionAccess(stage, AccessPolicy(tokens)), settings)
        async with trio.open_nursery() as nursery:
            await nursery.start(missions.keep)
            yield stage, missions
            nursery.cancel_scope.cancel()


def callers(session: InteractionSession) -> int:
    assert not session.statistics().subscribers
    return len(session.statistics().observers)


def kinds(board: MissionBoard) -> list[str]:
    return [each.payload.event_type.value for each in board.after(0)]


# -- the board


async def test_a_board_keeps_its_newest_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mission_board, "MAX_EVENTS", 2)
    async with kept() as (_, missions):
        board = MissionBoard()
        for number in range(3):
            board.add(await missions.speak(ANYBODY, request(event_id=f"e{number}")))
    assert [(each.seq, each.payload.event_id) for each in board.after(0)] == [(2, "e1"), (3, "e2")]
    assert board.last_seq == 3
    assert board.size == sum(each.size for each in board.after(0))


async def test_times_are_wall_clock_times_that_never_go_back(quiet_clock: trio.testing.MockClock) -> None:
    times = iter([5_000.0, 1.0, 1.0])
    async with kept(settings=MissionSettings(wall_clock=lambda: next(times))) as (_, missions):
        first = await missions.add(ANYBODY, request(event_id="e1"))
        await trio.sleep(2)
        second = await missions.add(ANYBODY, request(event_id="e2"))
    assert (first.at_ms, second.at_ms) == (5_000_000, 5_002_000)


async def test_the_least_recently_used_board_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mission_board, "MAX_BOARDS", 2)
    async with kept() as (stage, missions):
        session = stage.start()
        called = missions.read(ANYBODY, session.session_id, LISTENING)
        await trio.testing.wait_all_tasks_blocked()
        assert callers(session) == 1
        kept_board = missions.board(ANYBODY, "kept")
        missions.board(ANYBODY, "new")
        await trio.testing.wait_all_tasks_blocked()
        assert called.is_over
        assert callers(session) == 0
        assert missions.board(ANYBODY, "kept") is kept_board
        for mission_id in ("another", "yet another"):
            missions.board(ANYBODY, mission_id)
        assert kept_board.is_over


async def test_boards_above_the_limit_of_bytes_are_forgotten_and_their_places_are_not_reused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mission_board, "MAX_BYTES", 4_500)
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


async def test_shutdown_ends_the_boards_and_opens_no_new_one() -> None:
    async with kept() as (_, missions):
        board = missions.board(ANYBODY, "heist")
    assert board.is_over
    await board.wait_beyond(5)
    missions.attend(ANYBODY, "other")
    with pytest.raises(SessionClosed):
        missions.board(ANYBODY, "other")


async def test_a_text_is_on_the_board_before_its_voice_has_ended(quiet_clock: trio.testing.MockClock) -> None:
    voice = Hanging()
    async with kept(settings=MissionSettings(voice=voice)) as (_, missions), trio.open_nursery() as nursery:
        nursery.start_soon(missions.add, ANYBODY, request(**LOUD))
        await trio.testing.wait_all_tasks_blocked()
        board = missions.board(ANYBODY, "heist")
        (event,) = board.after(0)
        assert (event.seq, event.payload.suppression.reason, voice.said) == (1, None, ["e"])
        await board.wait_beyond(1)
        assert board.after(1) == [event]
        assert (event.seq, event.payload.suppression.reason) == (2, "voice_backend_error")
        assert board.size == event.size


async def test_an_event_whose_request_is_cancelled_stays_on_the_board_as_dropped(
    quiet_clock: trio.testing.MockClock,
) -> None:
    async with kept(settings=MissionSettings(voice=Hanging())) as (_, missions):
        with trio.move_on_after(1):
            await missions.add(ANYBODY, request(**LOUD))
        (event,) = missions.board(ANYBODY, "heist").after(0)
        assert event.payload.suppression.reason == "voice_backend_error"
        assert event.announcement.voice_dropped_ms is not None


async def test_an_event_that_was_forgotten_while_it_was_spoken_does_not_come_back(
    quiet_clock: trio.testing.MockClock,
) -> None:
    async with kept(settings=MissionSettings(voice=Hanging())) as (_, missions), trio.open_nursery() as nursery:
        nursery.start_soon(missions.add, ANYBODY, request(**LOUD))
        await trio.testing.wait_all_tasks_blocked()
        board = missions.board(ANYBODY, "heist")
        for number in range(mission_board.MAX_EVENTS):
            await missions.add(ANYBODY, request(event_id=f"e{number}"))
        await trio.sleep(30)
        assert board.find("e") is None


async def test_a_second_event_of_one_id_is_refused_and_uses_up_no_limit(quiet_clock: trio.testing.MockClock) -> None:
    voice = Hanging()
    async with kept(settings=MissionSettings(voice=voice)) as (_, missions), trio.open_nursery() as nursery:
        nursery.start_soon(missions.add, ANYBODY, request("Fire here.", **LOUD))
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(EventExists):
            await missions.add(ANYBODY, request("Flood there.", **LOUD))
        assert voice.said == ["e"]
        flood = await missions.speak(ANYBODY, request("Flood there.", dry_run=True, **LOUD))
        assert flood.payload.suppression.reason is None  # the refused event used up no limit


async def test_an_event_is_closed_once_even_if_its_debrief_is_suppressed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_TENANTS_PER_USER", 1)
    async with kept() as (_, missions):
        trigger = await missions.add(ANN, request(**LOUD))
        board = missions.board(ANN, "ann:heist")
        closing = read_closing({"tenant_id": "another", "context_tier": 1, "session_state": "active"})
        debrief = await missions.acknowledge(ANN, board, trigger, closing)
        assert debrief.payload.suppression.reason == "voice_budget_exceeded"
        assert board.after(1) == [debrief]
        assert await missions.acknowledge(ANN, board, trigger, read_closing({})) is debrief


async def test_an_event_is_closed_and_debriefed_before_the_voice_has_ended(
    quiet_clock: trio.testing.MockClock,
) -> None:
    async with kept(settings=MissionSettings(voice=Hanging())) as (_, missions), trio.open_nursery() as nursery:
        trigger = await missions.add(ANYBODY, request(text_certainty="confirmed"))
        board = missions.board(ANYBODY, "heist")
        closing = read_closing({"context_tier": 1, "session_state": "active"})
        nursery.start_soon(missions.acknowledge, ANYBODY, board, trigger, closing)
        await trio.testing.wait_all_tasks_blocked()
        assert trigger.debrief is not None
        assert board.after(1) == [trigger.debrief]
        assert trigger.debrief.payload.voice is not None


async def test_reading_an_unknown_mission_once_opens_no_board() -> None:
    async with kept() as (_, missions):
        assert missions.look(ANYBODY, "heist", LISTENING) is None
        assert missions.find(ANYBODY, "heist") is None
        board = missions.board(ANYBODY, "heist")
        assert missions.look(ANYBODY, "heist", None) is board


async def test_a_user_with_many_boards_loses_only_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mission_board, "MAX_BOARDS", 5)
    async with kept() as (_, missions):
        bobs = [missions.board(BOB, f"b{number}") for number in range(2)]
        for number in range(9):
            missions.board(ANN, f"a{number}")
        assert not any(board.is_over for board in bobs)
        assert [number for number in range(9) if missions.find(ANN, f"a{number}") is not None] == [6, 7, 8]


async def test_a_user_with_large_boards_loses_only_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mission_board, "MAX_BYTES", 9_000)
    async with kept() as (_, missions):
        await missions.add(BOB, request(mission_id="bob:heist"))
        for number in range(9):
            await missions.add(ANN, request(mission_id=f"a{number}"))
        assert not missions.board(BOB, "bob:heist").is_over
        assert missions.find(ANN, "ann:a0") is None


# -- callers


async def test_a_user_with_many_callers_loses_only_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_CALLERS", 3)
    async with kept(tokens={"ann": "a" * 20, "bob": "b" * 20}) as (stage, missions):
        session = stage.start(SessionParams(session_id="bob:s"))
        missions.read(BOB, "bob:s", LISTENING)
        await trio.testing.wait_all_tasks_blocked()
        for number in range(5):
            stage.start(SessionParams(session_id=f"ann:{number}"))
            missions.read(ANN, f"ann:{number}", None)
        await trio.testing.wait_all_tasks_blocked()
        assert callers(session) == 1


async def test_a_session_is_called_out_on_its_new_board(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mission_board, "MAX_BOARDS", 1)
    async with kept() as (stage, missions):
        session = stage.start()
        missions.read(ANYBODY, session.session_id, LISTENING)
        await trio.testing.wait_all_tasks_blocked()
        missions.board(ANYBODY, "other")
        board = missions.read(ANYBODY, session.session_id, LISTENING)
        await trio.testing.wait_all_tasks_blocked()
        assert callers(session) == 1
        await take_turn(session, "Hello")
        await trio.testing.wait_all_tasks_blocked()
        assert kinds(board) == ["state_change"]


async def test_a_reader_that_goes_on_keeps_its_context_when_a_session_is_called_out_anew(
    quiet_clock: trio.testing.MockClock,
) -> None:
    async with kept() as (stage, missions):
        session = stage.start()
        board = missions.read(ANYBODY, session.session_id, LISTENING)
        await trio.sleep(UNREAD_SECONDS + 1)
        assert callers(session) == 0
        missions.attend(ANYBODY, session.session_id, LISTENING)
        await trio.testing.wait_all_tasks_blocked()
        missions.attend(ANYBODY, session.session_id, Context())
        await take_turn(session, "Hello")
        await trio.testing.wait_all_tasks_blocked()
        assert board.after(0)[0].payload.voice is not None


@pytest.mark.parametrize("reads", [True, False])
async def test_a_session_is_called_out_for_a_tenant_of_its_user(reads: bool) -> None:
    async with kept(tokens={"ann": "a" * 20}) as (stage, missions):
        session = stage.start(SessionParams(session_id="ann:s"))
        if reads:
            missions.read(ANN, "ann:s", LISTENING)
        else:
            missions.attend(ANN, "ann:s", LISTENING)
        await trio.testing.wait_all_tasks_blocked()
        board = missions.board(ANN, "ann:s")
        await take_turn(session, "Hello")
        await trio.testing.wait_all_tasks_blocked()
        assert [each.payload.tenant_id for each in board.after(0)] == ["ann:default"]


async def test_the_turns_of_a_session_are_on_its_board_while_all_voices_are_busy(
    quiet_clock: trio.testing.MockClock,
) -> None:
    voice = Hanging()
    async with kept(settings=MissionSettings(voice=voice)) as (stage, missions), trio.open_nursery() as nursery:
        session = stage.start()
        board = missions.read(ANYBODY, session.session_id, LISTENING)
        for number in range(2):
            nursery.start_soon(missions.speak, ANYBODY, request(mission_id=f"m{number}", **LOUD))
        await trio.testing.wait_all_tasks_blocked()
        await take_turn(session, "Hello")
        await trio.testing.wait_all_tasks_blocked()
        assert kinds(board) == ["state_change"]
        assert not board.after(0)[0].announcement.is_amended
        voice.let_go.set()
        await trio.sleep(1)
        assert len(voice.said) == 3


async def test_a_silent_voice_amends_the_event_of_a_session(quiet_clock: trio.testing.MockClock) -> None:
    async with kept(settings=MissionSettings(voice=Hanging())) as (stage, missions):
        session = stage.start()
        board = missions.read(ANYBODY, session.session_id, LISTENING)
        await trio.testing.wait_all_tasks_blocked()
        await take_turn(session, "Hello")
        await trio.sleep(30)
        assert [each.payload.suppression.reason for each in board.after(0)] == ["voice_backend_error"]


async def test_a_forgotten_event_of_a_session_does_not_come_back(
    quiet_clock: trio.testing.MockClock,
) -> None:
    async with kept(settings=MissionSettings(voice=Hanging())) as (stage, missions):
        session = stage.start()
        board = missions.read(ANYBODY, session.session_id, LISTENING)
        await trio.testing.wait_all_tasks_blocked()
        await take_turn(session, "Hello")
        await trio.testing.wait_all_tasks_blocked()
        (told,) = board.after(0)
        for number in range(mission_board.MAX_EVENTS):
            await missions.add(ANYBODY, request(event_id=f"e{number}", mission_id=session.session_id))
        await trio.sleep(30)
        assert board.find(told.payload.event_id) is None


async def test_a_forgotten_board_of_a_session_is_not_amended(
    monkeypatch: pytest.MonkeyPatch, quiet_clock: trio.testing.MockClock
) -> None:
    monkeypatch.setattr(mission_board, "MAX_BOARDS", 1)
    async with kept(settings=MissionSettings(voice=Hanging())) as (stage, missions):
        session = stage.start()
        board = missions.read(ANYBODY, session.session_id, LISTENING)
        await trio.testing.wait_all_tasks_blocked()
        await take_turn(session, "Hello")
        await trio.testing.wait_all_tasks_blocked()
        missions.board(ANYBODY, "other")
        await trio.sleep(30)
        assert [each.payload.suppression.reason for each in board.after(0)] == [None]
        assert missions.find(ANYBODY, session.session_id) is None


async def test_a_session_is_called_out_from_the_first_read_of_its_board_until_it_is_closed() -> None:
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


async def test_the_default_listener_hears_nothing() -> None:
    async with kept() as (stage, missions):
        session = stage.start()
        board = missions.read(ANYBODY, session.session_id, None)
        await trio.testing.wait_all_tasks_blocked()
        await take_turn(session, "Hello")
        await trio.testing.wait_all_tasks_blocked()
        assert board.after(0)[0].payload.suppression.reason == "context_ineligible"


async def test_a_session_is_not_called_out_if_its_board_is_not_read(quiet_clock: trio.testing.MockClock) -> None:
    async with kept() as (stage, missions):
        session = stage.start()
        missions.read(ANYBODY, session.session_id, None)
        await trio.sleep(UNREAD_SECONDS - 1)
        missions.attend(ANYBODY, session.session_id)
        await trio.sleep(UNREAD_SECONDS - 1)
        assert callers(session) == 1
        await trio.sleep(2)
        assert callers(session) == 0
        missions.attend(ANYBODY, session.session_id)
        await trio.sleep(1)
        assert callers(session) == 1


async def test_an_event_on_the_board_is_not_added_again(quiet_clock: trio.testing.MockClock) -> None:
    model = ScriptedModel(lambda prompt: [Stall()] if prompt.exchanges else [Call("nothing", {})])
    patient = Limits(turn_timeout=99_999, stall_timeout=99_999)
    async with kept(standard_cast(model), limits=patient) as (stage, missions):
        session = stage.start()
        board = missions.read(ANYBODY, session.session_id, None)
        await trio.sleep(1)
        session.begin_turn("Hello")
        await trio.sleep(UNREAD_SECONDS + 1)
        assert callers(session) == 0
        missions.attend(ANYBODY, session.session_id)
        await trio.sleep(1)
        assert callers(session) == 1
        assert kinds(board) == ["threat_update"]


async def test_above_the_limit_the_least_recently_read_session_is_no_longer_called_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_CALLERS", 1)
    async with kept() as (stage, missions):
        first, second = stage.start(), stage.start()
        for session in (first, second):
            missions.read(ANYBODY, session.session_id, None)
            await trio.testing.wait_all_tasks_blocked()
        assert (callers(first), callers(second)) == (0, 1)


async def test_a_session_without_a_place_for_a_caller_goes_on_without_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with kept() as (stage, missions):
        session = stage.start()
        async with AsyncExitStack() as places:
            with suppress(Busy):
                while True:
                    await places.enter_async_context(session.subscribe(observer=True))
            board = missions.read(ANYBODY, session.session_id, None)
            await trio.testing.wait_all_tasks_blocked()
        assert kinds(board) == []
        assert not caplog.records
        await take_turn(session, "Hello")


def broken(*_: object) -> None:
    raise RuntimeError("secret words")


async def test_a_caller_that_fails_harms_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tavern = tavern_cast(pace=0, load_seconds=0, tool_seconds=0)
    with caplog.at_level(logging.DEBUG):
        async with kept(tavern) as (stage, missions):
            monkeypatch.setattr(missions.announcer, "decide", broken)
            session = stage.start()
            missions.read(ANYBODY, session.session_id, None)
            await trio.testing.wait_all_tasks_blocked()
            await take_turn(session, "sell me the lantern")
            await trio.testing.wait_all_tasks_blocked()
            assert callers(session) == 0
            await take_turn(session, "Hello")
    failures = [each.getMessage() for each in caplog.records if each.name == "footlights.incidents"]
    assert len(failures) == 1
    assert failures[0].startswith("callouts failed: RuntimeError at ")
    assert "secret" not in caplog.text
