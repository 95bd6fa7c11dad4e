"""Reader and writer of a dialogue: core events in, chat events out; nothing lost, numbered from 1, `done` last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights import TokenDelta, TurnAccepted, TurnFinal, TurnInterrupted
from footlights.events import CommitOutcome, ErrorInfo, Ext, InterruptReason, ModelReady, WarmState
from footlights_transports.views.kgent.pure.messages import RECOVERY, ChatEvent, DialogueMode, ErrorCode
from footlights_transports.views.kgent.pure.reader import (
    ERROR_CODES,
    NAMESPACE,
    AnswerPiece,
    AnswerText,
    Committed,
    DialogueReader,
    Failed,
)
from footlights_transports.views.kgent.pure.templates import TemplateUse
from footlights_transports.views.kgent.pure.writer import DialogueWriter
from tests.kit.views.chat_kit import committed, core

if TYPE_CHECKING:
    from footlights.events import Payload
    from footlights_transports.views.kgent.pure.reader import AnswerEvent


def read(*payloads: Payload) -> list[AnswerEvent]:
    reader = DialogueReader("t1-000001")
    return [told for seq, each in enumerate(payloads) for told in reader.take(core(seq, each))]


def deltas(*pieces: str) -> list[TokenDelta]:
    return [TokenDelta(piece, sum(map(len, pieces[:place]))) for place, piece in enumerate(pieces)]


# -- reading


def test_an_answer_that_was_cut_says_so_in_its_message() -> None:
    *_, whole = read(TurnFinal("Once"), committed())
    *_, cut = read(TurnFinal("Once", cut=True), committed())
    assert isinstance(whole, Committed)
    assert isinstance(cut, Committed)
    writer = DialogueWriter("c", DialogueMode.REFLECT, 1)
    assert "cut" not in writer.take(whole, 0.0)[0].payload
    assert writer.take(cut, 0.0)[0].payload["cut"] is True


def test_a_turn_is_read_as_pieces_text_and_commit() -> None:
    told = read(
        TurnAccepted(),
        ModelReady("m", WarmState.HOT, 0),
        *deltas("Good", " evening"),
        TurnFinal("Good evening", output_tokens=7),
        committed(),
    )
    assert told == [
        AnswerPiece("Good"),
        AnswerPiece(" evening"),
        AnswerText(7),
        Committed("t1-000001", "Good evening", 7, "digest"),
    ]


def test_other_turns_are_ignored() -> None:
    reader = DialogueReader("t1-000001")
    assert list(reader.take(core(0, TokenDelta("Psst", 0), turn_id="t1-000002"))) == []
    assert not reader.is_over


def test_a_turn_waits_until_earlier_turns_are_settled() -> None:
    reader = DialogueReader("t1-000003")

    def is_waiting_after(payload: Payload, turn_id: str) -> bool:
        assert list(reader.take(core(0, payload, turn_id=turn_id))) == []
        return reader.is_waiting

    assert not reader.is_waiting
    assert not is_waiting_after(committed(), "t1-000001"), "what was settled before is not ahead of it"
    assert is_waiting_after(TurnAccepted(turns_ahead=2), "t1-000003")
    assert is_waiting_after(TurnFinal("Well"), "t1-000001")
    assert is_waiting_after(committed(), "t1-000001")
    assert is_waiting_after(committed(), "t1-000004"), "that one came later"
    assert not is_waiting_after(committed(), "t1-000002")


def test_a_turn_with_further_events_does_not_wait() -> None:
    reader = DialogueReader("t1-000003")
    for payload in (TurnAccepted(turns_ahead=2), TurnInterrupted(InterruptReason.CANCELED)):
        assert list(reader.take(core(0, payload, turn_id="t1-000003"))) == []
    assert not reader.is_waiting


@pytest.mark.shows("gateway-27")
@given(st.lists(st.text("ab ", min_size=1, max_size=3), max_size=8), st.sets(st.integers(0, 7)))
def test_the_joined_pieces_are_the_text_even_with_gaps(pieces: list[str], missing: set[int]) -> None:
    kept = [each for place, each in enumerate(deltas(*pieces)) if place not in missing]
    told = read(TurnAccepted(), *kept, TurnFinal("".join(pieces)), committed())
    assert "".join(each.text for each in told if isinstance(each, AnswerPiece)) == "".join(pieces)
    assert [each.text for each in told if isinstance(each, Committed)] == ["".join(pieces)]


def test_an_answer_without_a_model_uses_no_tokens() -> None:
    assert AnswerText(0) in read(*deltas("a", "b", "c"), TurnFinal("abc"))


@pytest.mark.parametrize("reason", InterruptReason)
def test_every_interruption_has_its_code(reason: InterruptReason) -> None:
    expected = {
        "canceled": None,
        "barge_in": None,
        "timeout": "STREAM_TIMEOUT",
        "stalled": "STREAM_TIMEOUT",
        "session_closed": "SESSION_EXPIRED",
        "shutdown": "SESSION_EXPIRED",
        "runtime_restart": "SESSION_EXPIRED",
    }.get(reason, "LLM_UNAVAILABLE")
    told = read(*deltas("a"), TurnInterrupted(reason), committed(CommitOutcome.FAIL_CLOSED))[-1]
    assert isinstance(told, Failed)
    assert told.code == (None if expected is None else ErrorCode(expected))
    assert told.has_begun
    # The standard text of the code says that there is no model.
    assert (told.meaning is not None) is (reason in {"tool_error", "workload_error"})
    assert set(ERROR_CODES) == set(InterruptReason)


def test_a_model_rate_limit_is_recognized() -> None:
    cut = TurnInterrupted(InterruptReason.MODEL_ERROR, "model_rate_limited")
    assert read(cut, committed(CommitOutcome.FAIL_CLOSED)) == [Failed(ErrorCode.LLM_UNAVAILABLE, is_rate_limit=True)]


@pytest.mark.shows("gateway-103")
def test_a_failure_that_says_more_than_its_reason_is_told() -> None:
    why = ErrorInfo("model_key_missing", "inn.example requires a key, and $INN_KEY is not set (HTTP 401).")
    cut = TurnInterrupted(InterruptReason.MODEL_ERROR, why.code, error=why)
    failed = read(cut, committed(CommitOutcome.FAIL_CLOSED))[-1]
    assert failed == Failed(ErrorCode.LLM_UNAVAILABLE, meaning=why.message, cause=why.code)
    error, _ = DialogueWriter("c-1", DialogueMode.REFLECT, 1).take(failed, 0.0)
    assert (error.payload["code"], error.payload["cause"]) == ("LLM_UNAVAILABLE", "model_key_missing")
    assert error.payload["message"] == f"{why.message} Try again later, or check the model."
    unspecific = ErrorInfo("model_error", "The model failed. The log says where.")
    cut = TurnInterrupted(InterruptReason.MODEL_ERROR, "KeyError", error=unspecific)
    assert read(cut, committed(CommitOutcome.FAIL_CLOSED)) == [Failed(ErrorCode.LLM_UNAVAILABLE)]


def test_an_uncommitted_answer_is_a_failure() -> None:
    told = read(*deltas("a"), TurnFinal("a"), committed(CommitOutcome.FAIL_CLOSED))
    meaning = "The answer was not committed, and does not count."
    assert told[-1] == Failed(ErrorCode.LLM_UNAVAILABLE, has_begun=True, meaning=meaning)


@pytest.mark.parametrize("outcome", CommitOutcome)
def test_a_turn_with_forgotten_text_has_expired(outcome: CommitOutcome) -> None:
    forgotten = TurnFinal("", text_forgotten=True)
    assert read(forgotten, committed(outcome)) == [Failed(ErrorCode.SESSION_EXPIRED)]
    told = read(*deltas("Good"), forgotten, committed(outcome))
    assert told == [AnswerPiece("Good"), Failed(ErrorCode.SESSION_EXPIRED, has_begun=True)]


def test_a_turn_with_only_a_commit_has_expired() -> None:
    assert read(committed()) == [Failed(ErrorCode.SESSION_EXPIRED)]


def test_losing_sight_of_a_turn_ends_it() -> None:
    reader = DialogueReader("t1-000001")
    assert reader.lose_sight() == Failed(ErrorCode.SESSION_EXPIRED)
    assert reader.is_over


def marked(data: Any, namespace: str = NAMESPACE) -> list[AnswerEvent]:
    return read(TokenDelta("Hello", 0, ext=Ext(namespace, data)), TurnFinal("Hello", output_tokens=9), committed())


def test_a_template_is_marked_and_uses_no_tokens() -> None:
    committed_answer = Committed("t1-000001", "Hello", 0, "digest", TemplateUse.FALLBACK)
    assert marked({"template": "fallback"})[1:] == [AnswerText(0), committed_answer]


@pytest.mark.parametrize("data", [{"template": "other"}, {"template": ["fallback"]}, {}, "fallback", None])
def test_other_data_of_an_extension_is_no_mark(data: Any) -> None:
    assert marked(data)[-1] == Committed("t1-000001", "Hello", 9, "digest")


def test_a_mark_in_another_namespace_is_ignored() -> None:
    assert marked({"template": "fallback"}, "ext.some.body")[-1] == Committed("t1-000001", "Hello", 9, "digest")


# -- writing


def told(pieces: list[str], buffer_chunks: int = 5) -> list[ChatEvent]:
    writer = DialogueWriter("c-1", DialogueMode.ADVISE, buffer_chunks)
    whole = "".join(pieces)
    events: list[ChatEvent] = []
    for number, piece in enumerate(pieces):
        events += writer.take(AnswerPiece(piece), 100.0 + number)
    events += writer.take(AnswerText(47), 200.0)
    return events + writer.take(Committed("t1-000001", whole, 47, "digest"), 201.0)


@pytest.mark.shows("gateway-12")
@given(st.lists(st.text(min_size=1), max_size=23), st.integers(1, 7))
def test_stream_content_identity(pieces: list[str], buffer_chunks: int) -> None:
    events = told(pieces, buffer_chunks)
    chunks = [each.payload for each in events if each.event_type == "chunk"]
    (message,) = [each.payload for each in events if each.event_type == "message"]
    assert "".join(str(each["content"]) for each in chunks) == message["content"] == "".join(pieces)
    assert [each["final"] for each in chunks] == [False] * (len(chunks) - 1) + [True]
    assert len(chunks) == len(pieces) // buffer_chunks + 1
    assert events[-1].payload["total_chunks"] == len(chunks)


@pytest.mark.shows("gateway-48")
@given(st.lists(st.text(min_size=1), max_size=23), st.integers(1, 7))
def test_a_chunk_is_sent_with_its_last_piece(pieces: list[str], buffer_chunks: int) -> None:
    chunks = [each for each in told(pieces, buffer_chunks) if each.event_type == "chunk"]
    for number, chunk in enumerate(chunks[:-1], 1):
        assert chunk.payload["content"] == "".join(pieces[(number - 1) * buffer_chunks : number * buffer_chunks])
        assert chunk.timestamp == 100.0 + number * buffer_chunks - 1


@pytest.mark.shows("gateway-13", "gateway-43", "gateway-44")
@given(st.lists(st.text(min_size=1), max_size=23), st.integers(1, 7))
def test_sequence_monotonic(pieces: list[str], buffer_chunks: int) -> None:
    events = told(pieces, buffer_chunks)
    assert [each.sequence for each in events] == list(range(1, len(events) + 1))
    assert [each.timestamp for each in events] == sorted(each.timestamp for each in events)
    assert [each.event_type for each in events if each.event_type == "done"] == [events[-1].event_type]


@pytest.mark.shows("gateway-23", "gateway-40", "gateway-45", "gateway-57", "gateway-58", "gateway-60")
def test_the_payloads_are_those_of_the_protocol() -> None:
    chunk, message, done = told(["Well."])
    assert chunk.payload == {"content": "Well.", "correlation_id": "c-1", "final": True}
    assert message.payload == {
        "content": "Well.",
        "turn_id": "t1-000001",
        "mode": "advise",
        "tokens_used": 47,
        "entropy_cost": 0.047,
        "correlation_id": "c-1",
    }
    assert done.payload == {"total_chunks": 1, "correlation_id": "c-1"}


@pytest.mark.shows("gateway-40", "gateway-46", "gateway-59")
@pytest.mark.parametrize("code", ErrorCode)
def test_an_error_has_its_hint_and_is_followed_by_done(code: ErrorCode) -> None:
    writer = DialogueWriter("c-1", DialogueMode.REFLECT, 5)
    writer.take(AnswerPiece("Well,"), 1.0)
    chunk, error, done = writer.fail(code, 2.0, retry_after=60)
    assert chunk.payload == {"content": "Well,", "correlation_id": "c-1", "final": False}, "what was said is told"
    assert error.payload == {
        "code": code.value,
        "message": error.payload["message"],
        "retry_after_seconds": 60,
        "correlation_id": "c-1",
    }
    assert str(error.payload["message"]).endswith(RECOVERY[code])
    assert done.payload == {"total_chunks": 1, "correlation_id": "c-1"}
    assert [each.sequence for each in (chunk, error, done)] == [1, 2, 3]


def test_an_error_may_replace_the_standard_text() -> None:
    error, _ = DialogueWriter("c-1", DialogueMode.REFLECT, 5).fail(
        ErrorCode.INVALID_MESSAGE, 2.0, meaning="It is empty."
    )
    assert error.payload == {
        "code": "INVALID_MESSAGE",
        "message": "It is empty. Fix the client's payload.",
        "correlation_id": "c-1",
    }


def test_a_canceled_dialogue_ends_with_done_alone() -> None:
    writer = DialogueWriter("c-1", DialogueMode.REFLECT, 5)
    assert [each.event_type for each in writer.take(Failed(None), 1.0)] == ["done"]


def test_the_message_of_a_template_is_marked() -> None:
    answer = Committed("a", "Hello", 0, "digest", TemplateUse.FALLBACK)
    message, _ = DialogueWriter("c-1", DialogueMode.REFLECT, 5).take(answer, 1.0)
    assert message.payload["template"] == "fallback"


def test_timestamps_never_go_back() -> None:
    writer = DialogueWriter("c-1", DialogueMode.REFLECT, 5)
    error, done = writer.fail(ErrorCode.STREAM_TIMEOUT, 50.0)
    assert error.timestamp == done.timestamp == 50.0
    writer = DialogueWriter("c-1", DialogueMode.REFLECT, 1)
    (chunk,) = writer.take(AnswerPiece("a"), 50.0)
    assert [each.timestamp for each in (chunk, *writer.take(Failed(None), 40.0))] == [50.0, 50.0]


def test_a_dialogue_that_is_aborted_ends_with_what_was_said_and_an_error() -> None:
    writer = DialogueWriter("c-1", DialogueMode.REFLECT, 2)
    written = [event for piece in "abc" for event in writer.take(AnswerPiece(piece), 9.0)]
    written += writer.abort(ErrorCode.LLM_UNAVAILABLE, 5.0)
    assert [each.sequence for each in written] == [1, 2, 3, 4]
    assert [each.event_type for each in written] == ["chunk", "chunk", "error", "done"]
    assert written[2].payload["code"] == "LLM_UNAVAILABLE"
    assert written[3].payload == {"total_chunks": 2, "correlation_id": "c-1"}
    assert {each.timestamp for each in written} == {9.0}
    assert writer.abort(ErrorCode.LLM_UNAVAILABLE, 5.0) == []
