"""A trace is held to the same laws as the stream it was made of: no lawful one is blamed, no broken one passes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from footlights import laws
from footlights.events import EventType, InterruptReason
from footlights.testing.streams import Events, Recording, recordings, turns
from footlights.wire.trace import to_trace


def traced(events: Events) -> list[dict[str, Any]]:
    return [to_trace(event) for event in events]


def judged(lines: list[dict[str, Any]], recording: Recording | None = None) -> set[str]:
    of = recording or Recording(())
    found = laws.check_jsonl(map(json.dumps, lines), after=of.after, canceled=of.canceled)
    return {violation.law for violation in found}


def last_of(lines: list[dict[str, Any]], event_type: str) -> dict[str, Any]:
    return [line for line in lines if line["event_type"] == event_type][-1]


# -- lawful


@given(recordings())
def test_the_trace_of_a_lawful_stream_is_lawful(recording: Recording) -> None:
    assert judged(traced(recording.events), recording) == set()


# -- broken

few = settings(max_examples=30)


@few
@given(turns(), st.data())
def test_a_line_that_is_missing_is_found(events: Events, data: st.DataObject) -> None:
    lines = traced(events)
    del lines[data.draw(st.integers(0, len(lines) - 1))]
    assert judged(lines)


@few
@given(turns(), st.data())
def test_lines_that_changed_places_are_found(events: Events, data: st.DataObject) -> None:
    lines = traced(events)
    at = data.draw(st.integers(0, len(lines) - 2))
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    assert judged(lines)


@few
@given(turns())
def test_a_second_terminal_is_found(events: Events) -> None:
    lines = traced(events)
    terminal, commit = dict(lines[-2]), lines[-1]
    terminal["seq"] += 1
    commit["seq"] += 1
    lines.insert(-1, terminal)
    assert judged(lines) == {"one_terminal"}


@few
@given(turns(spoken=True, interrupted=False), st.booleans())
def test_a_delta_of_the_wrong_length_is_found(events: Events, shorter: bool) -> None:
    lines = traced(events)
    payload = last_of(lines, "token_delta")["payload"]
    payload["chars"] += -1 if shorter and payload["chars"] > 1 else 1
    assert judged(lines) == {"final_text"}


@few
@given(turns(spoken=True))
def test_an_offset_that_does_not_follow_is_found(events: Events) -> None:
    lines = traced(events)
    last_of(lines, "token_delta")["payload"]["offset"] += 1
    assert "token_offset" in judged(lines)


@few
@given(turns(interrupted=False))
def test_a_final_that_is_too_long_is_found(events: Events) -> None:
    lines = traced(events)
    last_of(lines, "turn_final")["payload"]["chars"] += 1
    assert judged(lines) == {"final_text"}


@few
@given(turns(interrupted=True))
def test_more_heard_than_was_said_is_found(events: Events) -> None:
    lines = traced(events)
    payload = last_of(lines, "turn_interrupted")["payload"]
    payload.setdefault("heard", {"seq": 0, "chars": 0})["chars"] += 1_000
    assert judged(lines) == {"heard"}


@few
@given(turns(interrupted=True))
def test_a_commit_of_an_interrupted_turn_is_found(events: Events) -> None:
    lines = traced(events)
    lines[-1]["payload"] |= {"commit_outcome": "ok", "issues": []}
    assert judged(lines) == {"commit_interrupted"}


def test_a_turn_that_is_traced_twice_is_found() -> None:
    lines = [
        _line(0, "turn_accepted", {"turns_ahead": 0}),
        _line(1, "turn_interrupted", {"reason": "canceled"}),
        _line(
            2,
            "commit_final",
            {
                "commit_digest": "0" * 64,
                "commit_outcome": "fail_closed",
                "issues": [{"code": "turn_interrupted", "message": ""}],
                "artifact_refs": [],
                "authoritative": True,
            },
        ),
    ]
    assert judged(lines) == set()
    assert judged(lines + lines) == {"turn_unique"}


# -- not a line of a trace


def _line(seq: int, event_type: str, payload: object) -> dict[str, Any]:
    return {
        "schema_v": "1.0",
        "session_id": "s1",
        "turn_id": "t1",
        "seq": seq,
        "mono_ts_ms": 0,
        "event_type": event_type,
        "payload": payload,
        "authoritative": False,
    }


WORDS = "must not stand in a trace, which holds lengths only"
RESULT = {"tool_call_id": "c1", "tool_name": "ask", "canceled": False}
CANCELED = {"reason": InterruptReason.CANCELED.value}
UNFIT: dict[str, tuple[str, object, str, str]] = {
    "no length": ("token_delta", {"offset": 0}, "payload", "payload.chars: is missing"),
    "words": ("token_delta", {"offset": 0, "delta": "Hi"}, "payload", f"payload.delta: {WORDS}"),
    "both": ("token_delta", {"offset": 0, "delta": "Hi", "chars": 2}, "payload", f"payload.delta: {WORDS}"),
    "a negative length": (
        "token_delta",
        {"offset": 0, "chars": -1},
        "payload",
        "payload.chars: must be between 0 and 9007199254740991",
    ),
    "an empty delta": ("token_delta", {"offset": 0, "chars": 0}, "payload", "payload.chars: must be at least 1"),
    "half a letter": ("token_delta", {"offset": 0, "chars": 1.5}, "payload", "payload.chars: must be an integer"),
    "a length in words": ("token_delta", {"offset": 0, "chars": "2"}, "payload", "payload.chars: must be an integer"),
    "true": ("token_delta", {"offset": 0, "chars": True}, "payload", "payload.chars: must be an integer"),
    "beyond reason": (
        "turn_final",
        {"authoritative": False, "chars": 10_000_001},
        "payload",
        "payload.chars: must not be greater than 10000000",
    ),
    "a final with words": ("turn_final", {"authoritative": False, "text": ""}, "payload", f"payload.text: {WORDS}"),
    "a final that rules": (
        "turn_final",
        {"authoritative": True, "chars": 0},
        "authority_label",
        "payload.authoritative: must be false",
    ),
    "a summary": ("tool_call_result", {**RESULT, "summary": "Yes."}, "payload", f"payload.summary: {WORDS}"),
    "a bad summary": (
        "tool_call_result",
        {**RESULT, "summary_chars": None},
        "payload",
        "payload.summary_chars: must be an integer",
    ),
    "an error with words": (
        "tool_call_result",
        {**RESULT, "error": {"code": "no", "message": "Why?"}},
        "payload",
        f"payload.error.message: {WORDS}",
    ),
    "an error without a length": (
        "tool_call_result",
        {**RESULT, "error": {"code": "no"}},
        "payload",
        "payload.error.message_chars: is missing",
    ),
    "an error that is none": (
        "tool_call_result",
        {**RESULT, "error": "no"},
        "payload",
        "payload.error: must be an object",
    ),
    "heard words": (
        "turn_interrupted",
        {**CANCELED, "heard": {"seq": 0, "text": ""}},
        "payload",
        f"payload.heard.text: {WORDS}",
    ),
    "heard nothing": (
        "turn_interrupted",
        {**CANCELED, "heard": {"seq": 0}},
        "payload",
        "payload.heard.chars: is missing",
    ),
    "data": (
        "turn_accepted",
        {"ext": {"namespace": "ext.a.b", "data": 1}},
        "ext",
        f"payload.ext.data: {WORDS}",
    ),
    "data without a size": (
        "turn_accepted",
        {"ext": {"namespace": "ext.a.b"}},
        "ext",
        "payload.ext.bytes: is missing",
    ),
    "data of a bad size": (
        "turn_accepted",
        {"ext": {"namespace": "ext.a.b", "bytes": -1}},
        "ext",
        "payload.ext.bytes: must be between 0 and 9007199254740991",
    ),
    "a payload that is none": ("token_delta", "Hi", "payload", "payload: must be an object"),
    "an unknown field": (
        "turn_accepted",
        {"turns_ahead": 0, "chars": 1},
        "payload",
        "payload: has an unknown field 'chars'",
    ),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_line_of_another_shape_is_a_violation_that_says_why(name: str) -> None:
    event_type, payload, law, sentence = UNFIT[name]
    found = laws.check_jsonl([json.dumps(_line(0, event_type, payload))], complete=False)
    assert (found[0].law, found[0].sentence) == (law, sentence)
    assert (found[0].session_id, found[0].turn_id, found[0].seq) == ("s1", "t1", 0)


def test_an_unfit_line_keeps_its_place_in_its_turn() -> None:
    lines = [_line(0, "turn_accepted", {}), _line(1, "token_delta", {}), _line(2, "turn_interrupted", CANCELED)]
    found = laws.check_jsonl(map(json.dumps, lines), complete=False)
    assert [violation.law for violation in found] == ["payload"]


@pytest.mark.parametrize("mark", ["true", "null", "0", '"false"'])
def test_no_other_mark_is_taken_at_the_top(mark: str) -> None:
    line = json.dumps(_line(0, "turn_accepted", {})).replace('"authoritative": false', f'"authoritative": {mark}')
    (found,) = laws.check_jsonl([line], complete=False)
    assert (found.law, found.sentence) == ("envelope", "event: has an unknown field 'authoritative'")


def test_a_mark_that_is_given_twice_is_no_json() -> None:
    line = json.dumps(_line(0, "turn_accepted", {})).replace("{", '{"authoritative": true, ', 1)
    (found,) = laws.check_jsonl([line], complete=False)
    assert found.sentence == "line 1: an object names a field twice"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)
PARTS = st.dictionaries(st.sampled_from(["code", "message", "message_chars", "seq", "text", "chars", "bytes"]), JSON)
PAYLOADS = st.dictionaries(
    st.sampled_from(
        ["chars", "delta", "text", "offset", "heard", "error", "summary", "summary_chars", "ext", "reason"]
    ),
    JSON | PARTS,
)


@given(st.sampled_from(EventType) | JSON, PAYLOADS | JSON)
def test_no_line_makes_the_checker_raise(event_type: Any, payload: Any) -> None:
    line = _line(1, event_type, payload)
    found = laws.check_jsonl([json.dumps(line)])
    assert found
    assert {violation.law for violation in found} <= set(laws.LAWS)
