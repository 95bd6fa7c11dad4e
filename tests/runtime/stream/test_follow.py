"""A follower gets every event once, however often it is detached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights import (
    CommitFinal,
    EventType,
    InteractionSession,
    Limits,
    Stage,
    StreamEvent,
    TokenDelta,
    laws,
    open_stage,
)
from footlights.session.core import SessionCore
from footlights.stream.follow import follow
from footlights.testing import cancel_everywhere, payloads
from footlights_actors import Pause, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from contextlib import AbstractAsyncContextManager

    import pytest
    from trio.testing import MockClock

    from footlights.stream.catch_up import CatchUp
    from footlights.testing import Trial

SPEECH = "Good evening, my friend."


def tavern() -> AbstractAsyncContextManager[Stage]:
    lines = (Say("Good evening,"), Pause(1.0), Say(" my friend."))
    return open_stage(standard_cast(ScriptedModel(lambda _: lines)), limits=Limits(stall_detach=0.5))


async def commit(session: InteractionSession) -> None:
    await session.finalize(session.begin_turn("A room?")).wait()


def said(events: list[StreamEvent]) -> str:
    return "".join(each.delta for each in payloads(events, TokenDelta))


async def test_a_follower_that_was_detached_goes_on_without_a_gap_or_a_repeat(quiet_clock: MockClock) -> None:
    events: list[StreamEvent] = []
    async with tavern() as stage:
        session = stage.start()
        async with follow(session) as stream:
            session.begin_turn("A room?")
            events += await stream.receive_batch()
            await commit(session)
            assert session.statistics().subscribers == ()
            await commit(session)
            while len(payloads(events, CommitFinal)) < 3:
                events += await stream.receive_batch()
            await session.close()
            assert await stream.receive_batch() == []
    assert laws.check(events) == []
    assert said(events) == SPEECH * 3


async def test_an_observer_that_was_detached_is_an_observer_again(quiet_clock: MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with follow(session, observer=True) as stream:
            await commit(session)
            await stream.receive_batch()
            assert session.statistics().subscribers == ()


async def test_a_follower_that_is_ended_gets_what_waits_and_then_the_end(quiet_clock: MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with follow(session) as stream:
            turn_id = session.begin_turn("A room?")
            session.cancel(turn_id)
            await session.finalize(turn_id).wait()
            stream.end()
            waiting = await stream.receive_batch()
            assert waiting[-1].event_type is EventType.COMMIT_FINAL
            assert await stream.receive_batch() == []


async def test_a_follower_that_was_detached_and_is_ended_still_gets_every_event(quiet_clock: MockClock) -> None:
    events: list[StreamEvent] = []
    async with tavern() as stage:
        session = stage.start()
        async with follow(session) as stream:
            await commit(session)
            assert session.statistics().subscribers == ()
            stream.end()
            while batch := await stream.receive_batch():
                events += batch
    assert said(events) == SPEECH
    assert events[-1].event_type is EventType.COMMIT_FINAL


async def test_short_deadlines_do_not_keep_a_detached_follower_from_resuming(
    quiet_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    catch_up = SessionCore.catch_up

    async def slow(self: SessionCore, after: Mapping[str, int], terminal_seen: Collection[str]) -> CatchUp:
        await trio.sleep(3)
        return await catch_up(self, after, terminal_seen)

    async with tavern() as stage:
        session = stage.start()
        async with follow(session) as stream:
            await commit(session)
            monkeypatch.setattr(SessionCore, "catch_up", slow)
            assert await stream.receive_batch_until(trio.current_time() + 1) is None
            batch = await stream.receive_batch_until(trio.current_time() + 1)
            assert batch is not None
            assert said(batch) == SPEECH


def test_a_read_can_be_cancelled_anywhere_and_loses_nothing() -> None:
    async def scenario(trial: Trial) -> None:
        events: list[StreamEvent] = []
        async with tavern() as stage:
            session = stage.start()
            async with follow(session) as stream:
                session.begin_turn("A room?")
                await trio.sleep(2)
                with trio.CancelScope() as scope:
                    trial.aim(scope.cancel)
                    while not payloads(events, CommitFinal):
                        events += await stream.receive_batch()
                while not payloads(events, CommitFinal):
                    events += await stream.receive_batch()
        assert laws.check(events) == []
        assert said(events) == SPEECH

    cancel_everywhere(scenario)
