"""Turn summaries: an observer gets one for each turn when it is settled, and cannot affect the turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights import (
    CommitOutcome,
    EventType,
    InteractionContext,
    MemoryLedger,
    TurnParams,
    draft_event,
    open_stage,
)
from footlights.testing import take_turn
from footlights.testing.faults import FlakyLedger
from footlights.turn.summary import TurnSummary
from footlights_actors import Pause, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    import pytest
    from trio.testing import MockClock

    from footlights import StreamEvent

TALK = ScriptedModel(lambda _: (Pause(1.0), Say("Good evening."), Pause(2.0), Say(" A room?")))


class Shouts:
    """A workload whose first word carries data of its own."""

    async def run(self, context: InteractionContext) -> None:
        ext = {"namespace": "ext.acme.mood", "data": 1}
        context.emit_event(draft_event("token_delta", {"delta": "Fire!", "ext": ext}))


def stamp(events: list[StreamEvent], kind: EventType) -> int:
    return next(event.mono_ts_ms for event in events if event.event_type is kind)


async def test_the_times_of_a_turn_are_those_of_its_events(quiet_clock: MockClock) -> None:
    told: list[TurnSummary] = []
    ledger = FlakyLedger(MemoryLedger(), delay=0.5)
    async with open_stage(standard_cast(TALK), ledger=ledger, observe=told.append) as stage:
        session = stage.start()
        events = await take_turn(session, "A room?")
    assert told == [
        TurnSummary(
            session_id=session.session_id,
            turn_id=events[0].turn_id,
            outcome="ok",
            accepted_ms=stamp(events, EventType.TURN_ACCEPTED),
            first_token_ms=stamp(events, EventType.TOKEN_DELTA),
            terminal_ms=stamp(events, EventType.TURN_FINAL),
            committed_ms=stamp(events, EventType.COMMIT_FINAL),
            output_tokens=4,
            parts=session.summary(events[0].turn_id).parts,  # type: ignore[union-attr]
        )
    ]
    assert told[0].first_token_ms == told[0].accepted_ms + 1_000
    assert told[0].committed_ms >= told[0].terminal_ms + 500


async def test_a_turn_that_said_nothing_has_no_first_token(quiet_clock: MockClock) -> None:
    told: list[TurnSummary] = []
    async with open_stage(standard_cast(TALK), observe=told.append) as stage:
        session = stage.start()
        turns = [session.begin_turn("A room?") for _ in range(2)]
        session.cancel()
        await session.finalize(turns[1]).wait()
    assert [(each.turn_id, each.outcome, each.first_token_ms) for each in told] == [
        (turn_id, "canceled", None) for turn_id in turns
    ]


async def test_a_first_word_with_data_is_a_first_word_too(quiet_clock: MockClock) -> None:
    told: list[TurnSummary] = []
    async with open_stage(standard_cast(TALK, workloads={"shouts": Shouts()}), observe=told.append) as stage:
        session = stage.start()
        events = await take_turn(session, "A room?", TurnParams(workload="shouts"))
    assert told[0].first_token_ms == stamp(events, EventType.TOKEN_DELTA)


async def test_an_observer_that_fails_affects_no_turn(quiet_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    def fail(summary: TurnSummary) -> None:
        raise ValueError(summary.turn_id)

    async with open_stage(standard_cast(TALK), observe=fail) as stage:
        session = stage.start()
        for _ in range(2):
            commit = await session.finalize(session.begin_turn("A room?")).wait()
            assert commit.commit_outcome is CommitOutcome.OK
    said = [record.getMessage() for record in caplog.records]
    assert [message.partition(" at ")[0] for message in said] == ["the observer failed: ValueError"] * 2
