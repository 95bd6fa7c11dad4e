"""Progress of a client: its cursor is the stage's, and every event is checked against the laws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from attrs import evolve

from footlights import (
    CommitFinal,
    CommitOutcome,
    EventType,
    InterruptReason,
    Issue,
    SeqRange,
    StreamEvent,
    TokenDelta,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    open_stage,
)
from footlights.stream.cursor import ALL_SEEN, RESTART_SEQ
from footlights_actors import Say, ScriptedModel, standard_cast
from footlights_transports import LawBroken
from footlights_transports.client.progress import MAX_FINISHED, Progress

if TYPE_CHECKING:
    from footlights.events import Payload


RESTARTED = TurnInterrupted(
    InterruptReason.RUNTIME_RESTART, text_forgotten=True, dropped_seq_ranges=(SeqRange(0, RESTART_SEQ - 1),)
)


def event(turn_id: str, seq: int, kind: EventType, payload: Payload) -> StreamEvent:
    return StreamEvent("1.0", "inn", turn_id, seq, 0, kind, payload)


def accepted(turn_id: str = "t1-000001") -> StreamEvent:
    return event(turn_id, 0, EventType.TURN_ACCEPTED, TurnAccepted())


def final(turn_id: str = "t1-000001", seq: int = 1) -> StreamEvent:
    return event(turn_id, seq, EventType.TURN_FINAL, TurnFinal(""))


def committed(turn_id: str = "t1-000001", seq: int = 2, *missed: SeqRange) -> StreamEvent:
    commit = CommitFinal("0" * 64, CommitOutcome.OK, dropped_seq_ranges=missed)
    return event(turn_id, seq, EventType.COMMIT_FINAL, commit)


async def test_the_cursor_is_the_one_that_the_stage_would_count() -> None:
    model = ScriptedModel(lambda _: [Say("Good evening, my friend.")])
    async with open_stage(standard_cast(model)) as stage:
        session = stage.start()
        progress = Progress({})
        async with session.subscribe() as stream:
            progress.begin_at(stream.cursor)
            turns = [session.begin_turn("A room?", TurnParams(busy="queue")) for _ in range(2)]
            async for each in stream.until_commit(turns[-1]):
                progress.take(each)
                assert progress.cursor.items() >= stream.cursor.items()
    assert all(progress.has_all_of(turn_id) for turn_id in turns)


def test_a_turn_whose_end_was_taken_is_named_until_its_commit_is() -> None:
    progress = Progress({})
    seen: list[frozenset[str]] = []
    for each in (accepted(), final(), committed()):
        progress.take(each)
        seen.append(progress.terminal_seen)
    assert seen == [frozenset(), frozenset({"t1-000001"}), frozenset()]


def test_what_was_known_before_goes_on_from_there() -> None:
    progress = Progress({"t1-000001": 1, "t1-000002": ALL_SEEN}, {"t1-000001"})
    assert progress.terminal_seen == {"t1-000001"}
    assert progress.has_all_of("t1-000002")
    progress.take(committed())
    assert progress.cursor == {"t1-000001": ALL_SEEN, "t1-000002": ALL_SEEN}


@pytest.mark.parametrize(
    ("next_one", "law"),
    [
        (accepted(), "seq_increasing"),
        (final(seq=2), "seq_gap"),
        (committed(seq=1), "one_terminal"),
        (evolve(final(), payload=TurnFinal("Never said.")), "final_text"),
        (event("t1-000001", 1, EventType.TOKEN_DELTA, TokenDelta("Hm", 5)), "token_offset"),
        (event("t1-000002", 1, EventType.TURN_FINAL, TurnFinal("")), "seq_first"),
    ],
)
def test_what_is_not_lawful_is_refused_and_not_counted(next_one: StreamEvent, law: str) -> None:
    progress = Progress({})
    progress.take(accepted())
    with pytest.raises(LawBroken) as broken:
        progress.take(next_one)
    assert broken.value.violation.law == law
    assert progress.cursor == {"t1-000001": 0}


def test_nothing_comes_after_a_turn_was_taken_whole() -> None:
    progress = Progress({})
    for each in (accepted(), final(), committed()):
        progress.take(each)
    with pytest.raises(LawBroken, match="seq_increasing"):
        progress.take(accepted())


def test_where_the_server_begins_changes_nothing_that_was_taken() -> None:
    progress = Progress({})
    progress.take(accepted())
    progress.begin_at({"t1-000001": ALL_SEEN, "t0-000009": ALL_SEEN, "t0-000008": 3})
    assert progress.cursor == {"t1-000001": 0, "t0-000009": ALL_SEEN, "t0-000008": 3}


def test_a_turn_that_was_begun_is_asked_for_although_nothing_of_it_came() -> None:
    progress = Progress({})
    progress.expect("t1-000001")
    assert progress.cursor == {"t1-000001": -1}
    assert progress.knows("t1-000001")
    progress.take(accepted())
    progress.expect("t1-000001")
    assert progress.cursor == {"t1-000001": 0}


UNSEEN = SeqRange(0, RESTART_SEQ - 1)


def recalled(turn_id: str, *missed: SeqRange) -> list[StreamEvent]:
    """What the ledger tells of a turn that nobody remembers."""
    forgotten = TurnFinal("", text_forgotten=True, dropped_seq_ranges=missed)
    return [event(turn_id, RESTART_SEQ, EventType.TURN_FINAL, forgotten), committed(turn_id, ALL_SEEN)]


def take_recalled(progress: Progress, turn_id: str) -> None:
    for each in recalled(turn_id, UNSEEN):
        progress.take(each)


def test_a_turn_that_ran_unobserved_is_accepted_in_its_ledger_form() -> None:
    progress = Progress({"t1-000001": ALL_SEEN})
    forgotten, commit = recalled("t1-000002", UNSEEN)
    progress.take(forgotten)
    assert progress.terminal_seen == {"t1-000002"}
    progress.take(commit)
    assert progress.terminal_seen == set()
    assert progress.has_all_of("t1-000002")
    assert progress.missed("t1-000002") == (UNSEEN,)
    interrupted = event("t1-000003", RESTART_SEQ, EventType.TURN_INTERRUPTED, RESTARTED)
    progress.take(interrupted)
    assert progress.terminal_seen == {"t1-000003"}
    failed = CommitFinal("0" * 64, CommitOutcome.FAIL_CLOSED, issues=(Issue("runtime_restart", "It restarted."),))
    progress.take(event("t1-000003", ALL_SEEN, EventType.COMMIT_FINAL, failed))
    assert progress.is_settled


def test_a_ledger_tells_how_a_turn_ended_before_it_tells_of_its_commit() -> None:
    alone = committed("t1-000001", ALL_SEEN, SeqRange(1, ALL_SEEN - 1))
    progress = Progress({})
    progress.take(accepted())
    with pytest.raises(LawBroken, match="one_terminal"):
        progress.take(alone)
    progress = Progress({})
    progress.take(accepted())
    progress.take(final())
    progress.take(evolve(alone, payload=evolve(alone.payload, dropped_seq_ranges=(SeqRange(2, ALL_SEEN - 1),))))
    assert progress.has_all_of("t1-000001"), "who has seen the end needs no second one"


def test_an_end_that_was_taken_is_not_taken_again_from_a_ledger() -> None:
    progress = Progress({})
    progress.take(accepted())
    progress.take(final())
    again = recalled("t1-000001", SeqRange(2, RESTART_SEQ - 1))[0]
    with pytest.raises(LawBroken, match="one_terminal"):
        progress.take(again)


@pytest.mark.parametrize("declared", [(), (SeqRange(1, RESTART_SEQ - 1),), (SeqRange(0, 9),)])
def test_what_the_ledger_tells_declares_all_that_is_missing_before_it(declared: tuple[SeqRange, ...]) -> None:
    with pytest.raises(LawBroken, match="seq_gap"):
        Progress({"t1-000001": ALL_SEEN}).take(recalled("t1-000002", *declared)[0])


def test_the_newest_turn_is_named_for_ever_also_if_it_never_was() -> None:
    progress = Progress({})
    progress.begin_at({"t2-000000": ALL_SEEN})
    progress.expect("t3-000001")
    for number in range(1, MAX_FINISHED + 3):
        take_recalled(progress, f"t1-{number:06d}")
    assert len(progress.cursor) == MAX_FINISHED + 1
    assert progress.cursor["t2-000000"] == ALL_SEEN
    progress.begin_at({"t2-000001": ALL_SEEN})
    for number in range(MAX_FINISHED):
        take_recalled(progress, f"t1-1{number:06d}")
    assert "t2-000000" not in progress.cursor
    assert progress.cursor["t2-000001"] == ALL_SEEN


def test_a_session_is_settled_when_every_turn_was_taken_whole() -> None:
    progress = Progress({})
    settled = [progress.is_settled]
    progress.expect("t1-000001")
    for each in (accepted(), final(), committed()):
        settled.append(progress.is_settled)
        progress.take(each)
    assert [*settled, progress.is_settled] == [True, False, False, False, True]


def test_old_turns_are_forgotten_and_what_was_missed_of_them_earlier() -> None:
    progress = Progress({})
    turns = [f"t1-{number:06d}" for number in range(1, MAX_FINISHED + 3)]
    for turn_id in turns:
        for each in (accepted(turn_id), final(turn_id, 2), committed(turn_id, 3)):
            gap = (SeqRange(1, 1),) if each.seq == 2 else ()
            progress.take(evolve(each, payload=evolve(each.payload, dropped_seq_ranges=gap)))
        assert progress.missed(turn_id) == (SeqRange(1, 1),)
    assert list(progress.cursor) == turns[2:]
    assert [turn_id for turn_id in turns if progress.missed(turn_id)] == turns[-16:]
