"""An interruption tells how far the player really got."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from footlights import (
    Heard,
    InvalidCommand,
    Limits,
    Stage,
    TurnInterrupted,
    open_stage,
)
from footlights.testing import only
from footlights_actors import Pause, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from trio.testing import MockClock

TALK = (Say("Good evening,"), Pause(1.0), Say(" my friend."))


def tavern(limits: Limits | None = None) -> AbstractAsyncContextManager[Stage]:
    return open_stage(standard_cast(ScriptedModel(lambda _: TALK)), limits=limits)


@pytest.mark.parametrize("seq", range(5))
async def test_an_interruption_carries_the_text_up_to_the_most_that_was_heard_before_it(
    quiet_clock: MockClock, seq: int
) -> None:
    async with tavern() as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("A room?")
            await trio.sleep(0.5)
            for heard in (seq, 0):
                session.heard(turn_id, heard)
            session.cancel(turn_id)
            session.heard(turn_id, 5)
            events = [event async for event in stream.until_commit(turn_id)]
    # turn_accepted, model_selected and model_ready come before the two words.
    assert only(events, TurnInterrupted).heard == Heard(seq, ["", "", "", "Good", "Good evening,"][seq])


@pytest.mark.parametrize("seq", [-1, 5, 10**30])
async def test_what_was_not_said_cannot_have_been_heard(quiet_clock: MockClock, seq: int) -> None:
    async with tavern() as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        await trio.sleep(0.5)
        with pytest.raises(InvalidCommand):
            session.heard(turn_id, seq)


async def test_what_was_heard_is_counted_in_whole_events(quiet_clock: MockClock) -> None:
    async with tavern() as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        with pytest.raises(InvalidCommand):
            session.heard(turn_id, 0.0)  # type: ignore[arg-type]  # what an untyped host may do


async def test_hearing_a_turn_that_is_long_over_is_no_mistake(quiet_clock: MockClock) -> None:
    async with tavern(Limits(replay_turns=0)) as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        await session.finalize(turn_id).wait()
        session.heard(turn_id, 3)
