"""A line of a trace says how an event went and how long its words were, and never the words."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given

from footlights import InvalidEvent, wire
from footlights.events import (
    EVENT_TYPES,
    SCHEMA_V,
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    Ext,
    Heard,
    InterruptReason,
    Issue,
    ModelSelected,
    Payload,
    SeqRange,
    StreamEvent,
    TokenDelta,
    ToolCallResult,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
)
from footlights.testing.streams import Events, turns
from footlights.wire.trace import MAX_TRACED_LENGTH, encode_trace, from_trace, is_trace, to_trace

DIGEST = "ab" * 32
GAP = (SeqRange(1, 2),)


def event(payload: Payload) -> StreamEvent:
    return StreamEvent(SCHEMA_V, "s1", "t1", 3, 40, EVENT_TYPES[type(payload)], payload, 1.5)


def final_without_words() -> dict[str, Any]:
    return {name: value for name, value in wire.payload_to_wire(TurnFinal("")).items() if name != "text"}


TRACED: dict[str, tuple[Payload, dict[str, Any]]] = {
    "accepted": (TurnAccepted(2), {"turns_ahead": 2}),
    "selected": (ModelSelected("small", "default"), {"model_id": "small", "reason": "default"}),
    "delta": (TokenDelta("日本", 4), {"chars": 2, "offset": 4}),
    "a joined delta": (
        TokenDelta("Hello", 0, dropped_seq_ranges=GAP),
        {"chars": 5, "offset": 0, "dropped_seq_ranges": [{"start_seq": 1, "end_seq": 2}]},
    ),
    "final": (TurnFinal("Hello"), {**final_without_words(), "chars": 5}),
    "an empty final": (TurnFinal(""), {**final_without_words(), "chars": 0}),
    "a forgotten final": (
        TurnFinal("", text_forgotten=True),
        {"authoritative": False, "text_forgotten": True, "chars": 0},
    ),
    "interrupted": (TurnInterrupted(InterruptReason.STALLED, "slow"), {"reason": "stalled", "detail": "slow"}),
    "failed": (
        TurnInterrupted(InterruptReason.MODEL_ERROR, error=ErrorInfo("model_error", "Why?")),
        {"reason": "model_error", "error": {"code": "model_error", "message_chars": 4}},
    ),
    "fallback": (
        ModelSelected("small", "fallback", ErrorInfo("model_error", "Why?")),
        {"model_id": "small", "reason": "fallback", "error": {"code": "model_error", "message_chars": 4}},
    ),
    "heard": (
        TurnInterrupted(InterruptReason.CANCELED, heard=Heard(2, "Hel")),
        {"reason": "canceled", "heard": {"seq": 2, "chars": 3}},
    ),
    "result": (
        ToolCallResult("c1", "ask", canceled=False, summary="Yes."),
        {"tool_call_id": "c1", "tool_name": "ask", "canceled": False, "summary_chars": 4},
    ),
    "error": (
        ToolCallResult("c1", "ask", canceled=True, side_effects_may_have_occurred=False, error=ErrorInfo("no", "Why?")),
        {
            "tool_call_id": "c1",
            "tool_name": "ask",
            "canceled": True,
            "side_effects_may_have_occurred": False,
            "error": {"code": "no", "message_chars": 4},
        },
    ),
    "ext": (
        TurnAccepted(ext=Ext("ext.acme.mood", {"a": "é"})),
        {"turns_ahead": 0, "ext": {"namespace": "ext.acme.mood", "bytes": 10}},
    ),
    "commit": (
        CommitFinal(DIGEST, CommitOutcome.FAIL_CLOSED, (Issue("no_coin", "That purse is empty."),)),
        {
            "commit_digest": DIGEST,
            "commit_outcome": "fail_closed",
            "issues": [{"code": "no_coin", "message": "That purse is empty."}],
            "artifact_refs": [],
            "authoritative": True,
        },
    ),
}


@pytest.mark.parametrize("name", TRACED)
def test_a_line_is_the_envelope_with_lengths_for_words(name: str) -> None:
    payload, traced = TRACED[name]
    assert to_trace(event(payload)) == {
        "schema_v": "1.0",
        "session_id": "s1",
        "turn_id": "t1",
        "seq": 3,
        "mono_ts_ms": 40,
        "event_type": EVENT_TYPES[type(payload)].value,
        "payload": traced,
        "wall_ts": 1.5,
        "authoritative": False,
    }


def test_the_event_is_left_as_it_was() -> None:
    heard = event(TurnInterrupted(InterruptReason.CANCELED, heard=Heard(2, "Hel"), ext=Ext("ext.acme.mood", {"a": 1})))
    before = wire.encode(heard)
    to_trace(heard)
    assert wire.encode(heard) == before


@given(turns())
def test_a_line_read_back_is_the_event_with_other_words_of_the_same_length(events: Events) -> None:
    for each in events:
        line = encode_trace(each)
        assert line.count(b"\n") == 1
        assert line.endswith(b"}\n")
        traced = orjson.loads(line)
        assert is_trace(traced)
        again = wire.from_wire(from_trace(traced))
        assert (again.seq, again.mono_ts_ms, again.event_type) == (each.seq, each.mono_ts_ms, each.event_type)
        said_again, said = to_trace(again)["payload"], to_trace(each)["payload"]
        # Nobody can make data of a given size again, so only its size is lost.
        assert said_again.pop("ext", {}).get("namespace") == said.pop("ext", {}).get("namespace")
        assert said_again == said


@pytest.mark.shows("core-64")
@pytest.mark.parametrize("mark", [True, None, 0, "", "false", [], {}])
def test_only_false_marks_a_line_of_a_trace(mark: object) -> None:
    assert not is_trace({"authoritative": mark})
    assert is_trace({"authoritative": False})


@pytest.mark.parametrize("thing", [None, [], "authoritative", 1, {}])
def test_what_has_no_mark_is_no_line_of_a_trace(thing: object) -> None:
    assert not is_trace(thing)


def test_the_longest_length_is_taken_and_one_more_is_refused() -> None:
    final = to_trace(event(TurnFinal("")))
    final["payload"]["chars"] = MAX_TRACED_LENGTH
    payload: Any = from_trace(final)["payload"]
    assert len(payload["text"]) == MAX_TRACED_LENGTH
    final["payload"]["chars"] += 1
    with pytest.raises(InvalidEvent, match=r"^payload\.chars: must not be greater than 10000000$"):
        from_trace(final)


def test_a_line_that_is_read_is_not_changed() -> None:
    line = to_trace(event(ToolCallResult("c1", "ask", canceled=False, summary="Yes.", error=ErrorInfo("no", "Why?"))))
    before = orjson.dumps(line)
    from_trace(line)
    assert orjson.dumps(line) == before
