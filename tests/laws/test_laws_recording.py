"""Recordings as text, and anything that may be taken for one: always an answer, never an exception."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from footlights import laws
from footlights.events import EventType, Payload, StreamEvent
from footlights.testing.streams import Recording, recordings

GOOD = (
    '{"schema_v":"1.0","session_id":"s1","turn_id":"t1","seq":0,"mono_ts_ms":0,'
    '"event_type":"turn_accepted","payload":{}}'
)

UNREADABLE: dict[str, tuple[str | bytes, str]] = {
    "not JSON": ("{nope", "is not valid JSON"),
    "empty": ("", "is not valid JSON"),
    "two values": (GOOD + GOOD, "is not valid JSON"),
    "not UTF-8": (b'{"a": "\xff"}', "is not valid JSON"),
    "nested beyond reason": ("[" * 100_000, "is not valid JSON"),
    "a number beyond reason": ("9" * 10_000, "is not valid JSON"),
    "NaN": ('{"seq": NaN}', "has a number that JSON does not know"),
    "a field twice": (GOOD.replace("{", '{"seq":0,', 1), "an object names a field twice"),
    "a field twice, inside": (GOOD.replace("{}", '{"ext":1,"ext":2}'), "an object names a field twice"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_line_that_cannot_be_read_is_a_violation_with_its_number(name: str) -> None:
    line, sentence = UNREADABLE[name]
    (found,) = laws.check_jsonl([GOOD, line], complete=False)
    assert found == laws.Violation("json", None, None, None, f"line 2: {sentence}")
    assert str(found) == f"json: line 2: {sentence}"


def test_lines_may_be_text_or_bytes_and_end_in_a_line_break() -> None:
    assert laws.check_jsonl([GOOD + "\n"], complete=False) == []
    assert laws.check_jsonl([GOOD.encode() + b"\r\n"], complete=False) == []
    assert [violation.law for violation in laws.check_jsonl([GOOD])] == ["one_terminal"]


def test_numbers_that_overflow_are_found() -> None:
    (found,) = laws.check_jsonl([GOOD.replace("{}", '{"ext":{"namespace":"ext.a.b","data":1e999}}')], complete=False)
    assert (found.law, found.sentence) == ("ext", "payload.ext.data: must be a finite number")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
ENVELOPES = st.fixed_dictionaries(
    {},
    optional={
        "schema_v": st.just("1.0") | JSON,
        "session_id": st.just("s1") | JSON,
        "turn_id": st.sampled_from(["t1", "t2"]) | JSON,
        "seq": st.integers(0, 3) | JSON,
        "mono_ts_ms": st.integers(0, 3) | JSON,
        "event_type": st.sampled_from(EventType) | JSON,
        "payload": JSON,
        "wall_ts": JSON,
    },
)


@given(st.lists(JSON | ENVELOPES, max_size=5))
def test_no_json_makes_the_checker_raise(recorded: list[Any]) -> None:
    found = laws.check(recorded, after={"t1": 1}, canceled={"t2"})
    assert bool(found) == bool(recorded)
    assert {violation.law for violation in found} <= set(laws.LAWS)


@given(st.lists(st.text(max_size=20) | st.binary(max_size=20) | JSON.map(json.dumps), max_size=5))
def test_no_text_makes_the_checker_raise(lines: list[str | bytes]) -> None:
    assert len(laws.check_jsonl(lines)) == len(lines)


STRANGE = st.sampled_from([None, True, -1, 2**70, 1.5, "x", b"x", "\ud800", (), [1], {1: 2}, object(), StreamEvent])


@given(recordings(least=1), st.data())
def test_an_event_made_of_anything_is_judged_and_never_raises(recording: Recording, data: st.DataObject) -> None:
    events = list(recording.events)
    at = data.draw(st.integers(0, len(events) - 1))
    strange: Any = data.draw(STRANGE)
    if data.draw(st.booleans()):
        name = data.draw(st.sampled_from(["schema_v", "session_id", "seq", "mono_ts_ms", "event_type", "payload"]))
        events[at] = evolve(events[at], **{name: strange})
    else:
        payload: Any = events[at].payload
        name = data.draw(st.sampled_from([each.name for each in payload.__attrs_attrs__]))
        events[at] = evolve(events[at], payload=cast(Payload, evolve(payload, **{name: strange})))
    for violation in laws.check(events, after=recording.after, canceled=recording.canceled):
        assert violation.law in laws.LAWS
        assert "\n" not in str(violation)
