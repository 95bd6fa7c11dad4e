"""Idle sessions are closed after a time, and sessions in use are not."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import EventType, MemoryLedger, SessionParams, TurnParams, UnknownSession, open_stage
from footlights_actors import Say, ScriptedModel, Stall, standard_cast
from footlights_transports.access.idle import close_idle_sessions
from footlights_transports.access.policy import AccessPolicy, User, WireLimits
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.views.chat_feed.feeds import ChatFeeds
from tests.kit.serving import serve_http, serve_ws

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio.testing import MockClock

    from footlights.authority import Ledger

ANN, NOBODY = User("ann"), User()
HOUR = 3_600.0
A_LOOK = HOUR / 10


@asynccontextmanager
async def open_access(
    *, patience: float = HOUR, stalling: bool = False, ledger: Ledger | None = None, tokens: bool = True
) -> AsyncGenerator[SessionAccess]:
    lines = (Say("Good evening."), Stall()) if stalling else (Say("Good evening."),)
    async with (
        open_stage(standard_cast(ScriptedModel(lambda _: lines)), ledger=ledger) as stage,
        trio.open_nursery() as nursery,
    ):
        limits = WireLimits(session_idle_seconds=patience)
        access = SessionAccess(stage, AccessPolicy({"ann": "a" * 16} if tokens else None, limits=limits))
        nursery.start_soon(close_idle_sessions, access)
        yield access
        nursery.cancel_scope.cancel()


def sessions(access: SessionAccess) -> int:
    return access.stage.statistics().sessions


async def test_an_idle_session_is_closed_after_its_time_and_not_before(quiet_clock: MockClock) -> None:
    async with open_access() as access:
        access.start(ANN, SessionParams())
        await trio.sleep(HOUR - 1)
        assert sessions(access) == 1
        await trio.sleep(2 * A_LOOK)
        assert sessions(access) == 0
        assert access.open_sessions() == []


async def test_sessions_may_be_kept_for_ever(quiet_clock: MockClock) -> None:
    async with open_access(patience=0) as access:
        access.start(ANN, SessionParams())
        await trio.sleep(1_000 * HOUR)
        assert sessions(access) == 1


async def test_vanished_clients_do_not_use_up_the_sessions(quiet_clock: MockClock) -> None:
    async with open_access() as access:
        for _ in range(300):
            access.start(ANN, SessionParams())
        await trio.sleep(2 * HOUR)
        assert sessions(access) == 0


async def test_who_follows_a_session_keeps_it_and_it_lasts_its_time_from_when_it_is_left(
    quiet_clock: MockClock,
) -> None:
    async with open_access() as access:
        session_id = access.start(ANN, SessionParams()).session_id
        async with access.subscribe(ANN, session_id, None, ()):
            await trio.sleep(5 * HOUR + A_LOOK / 2)
        await trio.sleep(HOUR)
        assert sessions(access) == 1
        await trio.sleep(2 * A_LOOK)
        assert sessions(access) == 0


async def test_an_observer_does_not_keep_a_session_open(quiet_clock: MockClock) -> None:
    async with open_access() as access:
        session = access.start(ANN, SessionParams())
        async with session.subscribe(observer=True):
            await trio.sleep(HOUR + 2 * A_LOOK)
            assert sessions(access) == 0


async def test_a_chat_that_was_read_once_keeps_no_session(quiet_clock: MockClock) -> None:
    async with open_access(patience=60.0) as access, trio.open_nursery() as nursery:
        feeds = ChatFeeds(access.stage.ledger)
        nursery.start_soon(feeds.keep)
        await trio.testing.wait_all_tasks_blocked()
        await feeds.read(access.start(ANN, SessionParams()))
        await trio.sleep(75.0)
        assert sessions(access) == 0
        nursery.cancel_scope.cancel()


async def test_any_command_keeps_a_session_and_others_go(quiet_clock: MockClock) -> None:
    async with open_access() as access:
        kept = access.start(ANN, SessionParams()).session_id
        access.start(ANN, SessionParams())
        for _ in range(8):
            await trio.sleep(HOUR / 2)
            assert access.cancel(ANN, kept, None) == ()
        assert [session.session_id for _, session in access.open_sessions()] == [kept]


async def test_a_session_with_an_open_turn_is_not_closed(quiet_clock: MockClock) -> None:
    async with open_access(patience=5.0, stalling=True) as access:
        session_id = access.start(ANN, SessionParams()).session_id
        turn_id = access.begin_turn(ANN, session_id, "A room?", TurnParams())
        await trio.sleep(25.0)
        assert sessions(access) == 1
        assert access.stage.session(session_id).cancel() == (turn_id,)
        await trio.sleep(10.0)
        assert sessions(access) == 0
        assert access.stage.statistics().turns_settled == {"canceled": 1}


async def test_what_the_host_started_itself_is_the_hosts_business(quiet_clock: MockClock) -> None:
    async with open_access() as access:
        access.stage.start()
        await trio.sleep(5 * HOUR)
        assert sessions(access) == 1


async def test_a_session_that_its_user_closed_is_left_alone(quiet_clock: MockClock) -> None:
    async with open_access() as access:
        session_id = access.start(ANN, SessionParams(session_id="inn")).session_id
        await trio.sleep(2 * A_LOOK)
        await access.close(ANN, session_id)
        await trio.sleep(2 * A_LOOK)
        access.start(ANN, SessionParams(session_id="inn"))
        await trio.sleep(HOUR - A_LOOK)
        assert sessions(access) == 1


async def test_who_comes_back_to_a_session_that_was_closed_for_this_goes_on_with_it(quiet_clock: MockClock) -> None:
    async with open_access(ledger=MemoryLedger()) as access:
        session_id = access.start(ANN, SessionParams()).session_id
        async with access.subscribe(ANN, session_id, None, ()) as stream:
            first = access.begin_turn(ANN, session_id, "A room?", TurnParams())
            assert [event.event_type async for event in stream.until_commit(first)][-1] is EventType.COMMIT_FINAL
            cursor = stream.cursor
        await trio.sleep(2 * HOUR)
        with pytest.raises(UnknownSession):
            access.begin_turn(ANN, session_id, "And now?", TurnParams())
        async with access.subscribe(ANN, session_id, cursor, ()) as stream:
            second = access.begin_turn(ANN, session_id, "And now?", TurnParams())
            turns = {event.turn_id async for event in stream.until_commit(second)}
        assert turns == {second}
        assert second != first


async def test_a_resuming_subscriber_of_an_idle_session_that_was_closed_gets_the_rest_and_the_end(
    quiet_clock: MockClock,
) -> None:
    async with open_access(tokens=False) as access:
        session_id = access.start(NOBODY, SessionParams()).session_id
        turn_id = access.begin_turn(NOBODY, session_id, "A room?", TurnParams())
        await access.finalize(NOBODY, session_id, turn_id)
        await trio.sleep(2 * HOUR)
        async with access.subscribe(NOBODY, session_id, {}, ()) as stream:
            assert [event.event_type async for event in stream][-1] is EventType.COMMIT_FINAL
        assert sessions(access) == 0


@pytest.mark.parametrize("serve", [serve_ws, serve_http])
async def test_every_server_looks_after_its_sessions(serve: object, mock_clock: MockClock) -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: ()))) as stage, trio.open_nursery() as nursery:
        access = SessionAccess(stage, AccessPolicy(limits=WireLimits(session_idle_seconds=10.0)))
        assert callable(serve)
        await nursery.start(partial(serve, access, host="127.0.0.1", port=0))
        access.start(NOBODY, SessionParams())
        for _ in range(12):
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(1.0)
        await trio.testing.wait_all_tasks_blocked()
        assert sessions(access) == 0
        nursery.cancel_scope.cancel()


async def test_one_of_two_tasks_closes_idle_sessions_and_the_other_takes_over_when_it_ends(
    quiet_clock: MockClock,
) -> None:
    async with open_stage(standard_cast(ScriptedModel(lambda _: ()))) as stage, trio.open_nursery() as nursery:
        access, first = SessionAccess(stage), trio.CancelScope()

        async def close_until_cancelled() -> None:
            with first:
                await close_idle_sessions(access)

        for close in (close_until_cancelled, partial(close_idle_sessions, access)):
            nursery.start_soon(close)
            await trio.testing.wait_all_tasks_blocked()
        assert access.idleness.owner.statistics().tasks_waiting == 1
        first.cancel()
        access.start(NOBODY, SessionParams())
        await trio.sleep(HOUR + 2 * A_LOOK)
        assert sessions(access) == 0
        nursery.cancel_scope.cancel()
