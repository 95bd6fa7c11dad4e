"""Narration: every event becomes pieces of output, without loss and without repetition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from footlights import (
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    InterruptReason,
    Issue,
    ModelLoading,
    ModelReady,
    ModelSelected,
    Payload,
    SeqRange,
    StreamEvent,
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
    WarmState,
)
from footlights.authority import Artifact, CommitRecord, patch
from footlights.events import EVENT_TYPES, SCHEMA_V
from footlights_transports.cli.screen import Loading, Piece, Typed, Words
from footlights_transports.cli.turn_view import CUT, Narration, Tone, because, note, plain, questions, tell_changes

if TYPE_CHECKING:
    from footlights.authority import PatchOp

DIGEST = "d" * 64
SPEAKER = Words("Innkeeper: ", "bold")


def event(payload: Payload) -> StreamEvent:
    return StreamEvent(SCHEMA_V, "s1-000001", "t1-000001", 0, 0, EVENT_TYPES[type(payload)], payload)


def told(*payloads: Payload) -> list[Piece]:
    narration = Narration("Innkeeper")
    return [piece for payload in payloads for piece in narration.tell(event(payload))]


def spoken(*payloads: Payload) -> str:
    pieces = told(*payloads)
    assert pieces[0] == SPEAKER
    return "".join(piece.text for piece in pieces[1:] if isinstance(piece, Words)).removesuffix("\n")


def test_a_text_that_was_cut_says_so() -> None:
    pieces = told(TokenDelta("Well", 0), TurnFinal("Well", cut=True))
    assert pieces[-1] == note(Tone.ASIDE, CUT)


def test_speech_begins_with_the_speaker_and_ends_its_line() -> None:
    pieces = told(TokenDelta("Well", 0), TokenDelta(" met.", 4), TurnFinal("Well met."))
    assert pieces == [SPEAKER, Words("Well"), Words(" met."), Words("\n")]


def test_a_hole_in_the_text_is_filled_from_the_final() -> None:
    dropped = TokenDelta(" c", 3, dropped_seq_ranges=(SeqRange(2, 2),))
    assert spoken(TokenDelta("a", 0), dropped, TurnFinal("a b c d")) == "a b c d"


def test_text_that_never_came_in_deltas_comes_from_the_final() -> None:
    assert told(TurnFinal("Well met.")) == [SPEAKER, Words("Well met."), Words("\n")]


def test_forgotten_text_removes_nothing_that_was_shown() -> None:
    forgotten = TurnFinal("", text_forgotten=True)
    assert told(TokenDelta("Well", 0), forgotten) == [SPEAKER, Words("Well"), Words("\n")]
    assert told(forgotten) == []


def test_text_that_comes_twice_is_shown_once() -> None:
    assert spoken(TokenDelta("a b", 0), TokenDelta(" b c", 1), TurnFinal("a b c")) == "a b c"


def test_a_turn_without_text_has_no_speaker() -> None:
    assert told(TokenDelta("  ", 0), TurnFinal("  ")) == []


def test_a_tool_interrupts_the_line_of_speech() -> None:
    pieces = told(
        TokenDelta("Let me see.", 0),
        ToolCallStarted("call-1", "check_rooms"),
        ToolCallResult("call-1", "check_rooms", canceled=False, summary="3 free"),
        TokenDelta(" Three.", 11),
    )
    assert pieces == [
        SPEAKER,
        Words("Let me see."),
        Words("\n"),
        note(Tone.ASIDE, "check_rooms …"),
        note(Tone.ASIDE, "check_rooms: 3 free"),
        SPEAKER,
        Words("Three."),
    ]


@pytest.mark.parametrize(
    ("payload", "piece"),
    [
        (ModelLoading("m", cold_start=True), Loading("m", None)),
        (ModelLoading("m", cold_start=True, progress=0.5), Loading("m", 0.5)),
        (ModelReady("m", WarmState.COLD, 1490), note(Tone.ASIDE, "m is ready after a cold start of 1.5 s")),
        (ToolCallResult("c", "rent", canceled=False), note(Tone.ASIDE, "rent: done")),
        (
            ToolCallResult("c", "rent", canceled=False, error=ErrorInfo("tool_error", "It is taken.")),
            note(Tone.BAD, "rent: It is taken."),
        ),
        (
            ToolCallResult("c", "rent", canceled=True, side_effects_may_have_occurred=False),
            note(Tone.BAD, "rent: canceled"),
        ),
        (
            ToolCallResult("c", "rent", canceled=True, side_effects_may_have_occurred=True),
            note(Tone.BAD, "rent: canceled, and may have had side effects"),
        ),
        (TurnInterrupted(InterruptReason.STALLED), note(Tone.BAD, "interrupted: stalled")),
        (
            TurnInterrupted(
                InterruptReason.MODEL_ERROR, "model_not_found", error=ErrorInfo("model_not_found", "None.")
            ),
            note(Tone.BAD, "interrupted: model_not_found: None."),
        ),
        (
            ModelSelected("script", "fallback", ErrorInfo("model_unreachable", "It is away.")),
            note(Tone.ASIDE, "script takes over: model_unreachable: It is away."),
        ),
        (
            CommitFinal(
                DIGEST,
                CommitOutcome.FAIL_CLOSED,
                (
                    Issue("turn_interrupted", "The turn was interrupted: model_error."),
                    Issue("model_not_found", "The model's server has no such model, or no such path."),
                ),
            ),
            note(
                Tone.BAD,
                "nothing changed (fail_closed dddddddddddddddd): The turn was interrupted: model_error. "
                "The model's server has no such model, or no such path.",
            ),
        ),
        (CommitFinal(DIGEST, CommitOutcome.OK, commit_id="c-1"), note(Tone.GOOD, "committed c-1")),
        (
            CommitFinal(DIGEST, CommitOutcome.FAIL_CLOSED, (Issue("a", "One."), Issue("b", "Two."))),
            note(Tone.BAD, "nothing changed (fail_closed dddddddddddddddd): One. Two."),
        ),
    ],
)
def test_each_event_has_its_piece(payload: Payload, piece: Piece) -> None:
    assert told(payload) == [piece]


def test_the_reason_of_an_interrupted_turn_is_told_once() -> None:
    closed = CommitFinal(DIGEST, CommitOutcome.FAIL_CLOSED, (Issue("a", "It was interrupted."),), commit_id="c-1")
    assert told(TurnInterrupted(InterruptReason.CANCELED), closed) == [
        note(Tone.BAD, "interrupted: canceled"),
        note(Tone.BAD, "nothing changed (fail_closed c-1)"),
    ]


@pytest.mark.parametrize("payload", [TurnAccepted(), ModelSelected("m", "default"), ModelReady("m", WarmState.HOT, 0)])
def test_events_without_interest_for_a_player_are_not_shown(payload: Payload) -> None:
    assert told(payload) == []


def test_control_characters_never_reach_a_screen() -> None:
    assert spoken(
        TurnFinal("a\x1b[31m\tb\r\n\x9bc")
    ) == "a\N{REPLACEMENT CHARACTER}[31m b\N{REPLACEMENT CHARACTER}\n" + ("\N{REPLACEMENT CHARACTER}c")
    assert note(Tone.BAD, "two\nlines").text == "  ✗ two lines"
    assert Typed("\x07").text == "\N{REPLACEMENT CHARACTER}"


def record(
    *changes: PatchOp, outcome: CommitOutcome = CommitOutcome.OK, artifacts: tuple[Artifact, ...] = ()
) -> CommitRecord:
    return CommitRecord(
        session_id="s1-000001",
        turn_id="t1-000001",
        outcome=outcome,
        issues=(),
        intents=(),
        verdicts=(),
        changes=changes,
        artifacts=artifacts,
        world_before=DIGEST,
        world_after=DIGEST,
        previous=None,
    )


def test_the_changes_of_a_commit_are_one_line_that_people_can_read() -> None:
    changes = (patch.replace("/purse", 15), patch.add("/rooms/a~1b/guest", "Zoë"), patch.remove("/door"))
    assert tell_changes(record(*changes)) == [note(Tone.ASIDE, "purse: 15; rooms, a/b, guest: Zoë; door: gone")]
    assert tell_changes(record(patch.add("/guests/-", "Zoë"))) == [note(Tone.ASIDE, "guests, new: Zoë")]
    assert tell_changes(record(patch.test("/purse", 1))) == [note(Tone.ASIDE, "purse: test")]


def test_where_nothing_changed_it_is_said_once() -> None:
    assert tell_changes(record()) == [note(Tone.ASIDE, "nothing changed")]
    assert tell_changes(record(outcome=CommitOutcome.FAIL_CLOSED)) == []


def test_an_approval_is_a_question_and_no_change() -> None:
    asked = Artifact("approval.pending", {"id": "a-000001", "question": "Sell it?"})
    held = record(patch.add("/approvals", {"asked": 1}), artifacts=(asked, Artifact("report", {"id": "r"})))
    assert tell_changes(held) == [note(Tone.ASIDE, "nothing changed")]
    assert questions(held) == [("a-000001", "Sell it?")]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "none"),
        (True, "yes"),
        (False, "no"),
        (1.5, "1.5"),
        ("a word", "a word"),
        ([], "none"),
        ([1, "two"], "1, two"),
        ({}, "empty"),
        ({"name": "attic", "guests": ["Zoë"]}, "name: attic, guests: Zoë"),
    ],
)
def test_values_of_the_world_are_written_for_people(value: object, told: str) -> None:
    assert plain(value) == told


@pytest.mark.parametrize(
    ("issue", "sentence"),
    [
        (Issue("rule_error", "KeyError", "crossing"), "the rule crossing: KeyError"),
        (Issue("sold_out", "There is none left.", "call-1"), "There is none left."),
    ],
)
def test_a_rule_that_failed_is_named(issue: Issue, sentence: str) -> None:
    assert because(issue) == sentence
