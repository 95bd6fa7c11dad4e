"""Turn helpers: `take_turn` returns one whole turn, and `only` and `payloads` return the requested kind of payload."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from footlights import BusyRule, EventType, TokenDelta, TurnAccepted, TurnFinal, TurnInterrupted, TurnParams, open_stage
from footlights.testing import only, payloads, take_turn
from footlights_actors import Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from trio.testing import MockClock


def echo(pace: float = 0.0) -> ScriptedModel:
    return ScriptedModel(lambda prompt: [Say(prompt.user)], pace=pace)


async def test_a_turn_is_taken_from_its_acceptance_to_its_commit() -> None:
    async with open_stage(standard_cast(echo())) as stage:
        events = await take_turn(stage.start(), "Hello?")
    assert events[0].event_type is EventType.TURN_ACCEPTED
    assert events[-1].event_type is EventType.COMMIT_FINAL
    assert only(events, TurnFinal).text == "Hello?"


async def test_the_events_of_other_turns_are_left_out(quiet_clock: MockClock) -> None:
    async with open_stage(standard_cast(echo(pace=1))) as stage:
        session = stage.start()
        session.begin_turn("one two three")
        events = await take_turn(session, "four", TurnParams(busy=BusyRule.CONCURRENT))
    assert len({event.turn_id for event in events}) == 1
    assert [payload.delta for payload in payloads(events, TokenDelta)] == ["four"]


async def test_the_one_payload_of_a_kind_is_neither_none_nor_two(quiet_clock: MockClock) -> None:
    async with open_stage(standard_cast(echo(pace=1))) as stage:
        events = await take_turn(stage.start(), "one two")
    assert only(events, TurnAccepted) is events[0].payload
    assert payloads(events, TurnInterrupted) == []
    with pytest.raises(AssertionError, match="one TurnInterrupted, got 0"):
        only(events, TurnInterrupted)
    with pytest.raises(AssertionError, match="one TokenDelta, got 2"):
        only(events, TokenDelta)
