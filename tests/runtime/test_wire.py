"""The edge: what goes out comes back equal, and what is not an event does not come in."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from footlights import wire
from footlights.errors import InvalidEvent
from footlights.events import (
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    EventType,
    Ext,
    InterruptReason,
    Issue,
    ModelLoading,
    ModelReady,
    Payload,
    SeqRange,
    StreamEvent,
    TokenDelta,
    ToolCallResult,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
    WarmState,
)
from footlights.testing.streams import Recording, recordings


def event(event_type: EventType, payload: Payload, wall_ts: float | None = None) -> StreamEvent:
    return StreamEvent("1.0", "s1", "t1-000005", 17, 1234, event_type, payload, wall_ts)


TOKEN = event(EventType.TOKEN_DELTA, TokenDelta(delta="hé", offset=5))
LOADING = event(EventType.MODEL_LOADING, ModelLoading("m1", cold_start=True, progress=0.5))
READY = event(EventType.MODEL_READY, ModelReady("m1", WarmState.COLD, 900))
RESULT = event(
    EventType.TOOL_CALL_RESULT,
    ToolCallResult("c1", "dice", True, side_effects_may_have_occurred=True, error=ErrorInfo("late", "Too late.")),
)
INTERRUPTED = event(EventType.TURN_INTERRUPTED, TurnInterrupted(InterruptReason.BARGE_IN))
FINAL = event(EventType.TURN_FINAL, TurnFinal("words"))
FORGOTTEN = event(EventType.TURN_FINAL, TurnFinal("", text_forgotten=True))
COMMIT = event(
    EventType.COMMIT_FINAL,
    CommitFinal(
        "ab" * 32,
        CommitOutcome.FAIL_CLOSED,
        (Issue("rule_broken", "No."),),
        dropped_seq_ranges=(SeqRange(3, 4), SeqRange(9, 9)),
        ext=Ext("ext.acme.mood", {"joy": [1, 0.5, None]}),
    ),
    wall_ts=1.5,
)


@pytest.mark.shows("core-3", "core-11")
def test_an_event_is_one_line_of_json_in_the_order_of_the_envelope() -> None:
    assert wire.encode(TOKEN).decode() == (
        '{"schema_v":"1.0","session_id":"s1","turn_id":"t1-000005","seq":17,"mono_ts_ms":1234,'
        '"event_type":"token_delta","payload":{"delta":"hé","offset":5}}'
    )
    assert wire.encode(COMMIT).decode() == (
        '{"schema_v":"1.0","session_id":"s1","turn_id":"t1-000005","seq":17,"mono_ts_ms":1234,'
        '"event_type":"commit_final","payload":{"commit_digest":"' + "ab" * 32 + '","commit_outcome":"fail_closed",'
        '"issues":[{"code":"rule_broken","message":"No."}],"artifact_refs":[],"authoritative":true,'
        '"ext":{"namespace":"ext.acme.mood","data":{"joy":[1,0.5,null]}},'
        '"dropped_seq_ranges":[{"start_seq":3,"end_seq":4},{"start_seq":9,"end_seq":9}]},"wall_ts":1.5}'
    )


@pytest.mark.shows("core-17", "core-19", "core-23", "core-39")
@pytest.mark.parametrize(
    ("sent", "payload"),
    [
        (event(EventType.TURN_ACCEPTED, TurnAccepted()), {"turns_ahead": 0}),
        (FINAL, {"text": "words", "authoritative": False}),
        (FORGOTTEN, {"text": "", "authoritative": False, "text_forgotten": True}),
        (INTERRUPTED, {"reason": "barge_in"}),
        (evolve(LOADING, payload=ModelLoading("m1", True)), {"model_id": "m1", "cold_start": True}),
        (
            event(EventType.TOOL_CALL_RESULT, ToolCallResult("c1", "dice", False)),
            {"tool_call_id": "c1", "tool_name": "dice", "canceled": False},
        ),
        (
            event(EventType.COMMIT_FINAL, CommitFinal("ab", CommitOutcome.OK)),
            {
                "commit_digest": "ab",
                "commit_outcome": "ok",
                "issues": [],
                "artifact_refs": [],
                "authoritative": True,
            },
        ),
    ],
    ids=lambda value: value.event_type if isinstance(value, StreamEvent) else "",
)
def test_required_fields_are_always_there_and_unsaid_ones_never(sent: StreamEvent, payload: dict[str, Any]) -> None:
    assert wire.to_wire(sent)["payload"] == payload
    assert wire.from_wire(wire.to_wire(sent)) == sent


@given(recordings())
def test_every_lawful_event_comes_back_equal(recording: Recording) -> None:
    for sent in recording.events:
        assert wire.from_wire(wire.to_wire(sent)) == sent
        assert wire.decode(wire.encode(sent)) == sent
        assert json.loads(wire.encode(sent)) == wire.to_wire(sent)


def test_what_comes_back_has_the_declared_types() -> None:
    came = wire.decode(wire.encode(READY))
    assert type(came.event_type) is EventType
    assert type(cast(ModelReady, came.payload).warm_state) is WarmState
    whole = wire.to_wire(LOADING) | {"payload": {"model_id": "m1", "cold_start": True, "progress": 1}}
    assert type(cast(ModelLoading, wire.from_wire(whole).payload).progress) is float


def test_null_says_that_an_optional_field_is_not_said() -> None:
    fields = {"model_id": "m1", "cold_start": True, "progress": None, "ext": None}
    assert wire.payload_from_wire(EventType.MODEL_LOADING, fields) == ModelLoading("m1", cold_start=True)


def test_extension_data_is_copied_in() -> None:
    data: list[Any] = [{"joy": 1}]
    fields = {"delta": "x", "offset": 0, "ext": {"namespace": "ext.a.b", "data": data}}
    payload = wire.payload_from_wire(EventType.TOKEN_DELTA, fields)
    data[0]["joy"] = 2
    assert payload.ext == Ext("ext.a.b", [{"joy": 1}])


def altered(sent: StreamEvent, path: str, value: object) -> dict[str, Any]:
    whole = json.loads(wire.encode(sent))
    holder = whole
    *steps, last = path.split(".")
    for step in steps:
        holder = holder[int(step) if isinstance(holder, list) else step]
    holder[int(last) if isinstance(holder, list) else last] = value
    return cast(dict[str, Any], whole)


BIG = 2**53
REFUSED: list[tuple[StreamEvent, str, object, str]] = [
    (TOKEN, "schema_v", "1.1", 'schema_v: must be "1.0"'),
    (TOKEN, "schema_v", 1.0, 'schema_v: must be "1.0"'),
    (TOKEN, "session_id", 7, "session_id: must be a string"),
    (TOKEN, "session_id", "", "session_id: must not be empty"),
    (TOKEN, "turn_id", None, "turn_id: must be a string"),
    (TOKEN, "seq", "17", "seq: must be an integer"),
    (TOKEN, "seq", 17.0, "seq: must be an integer"),
    (TOKEN, "seq", True, "seq: must be an integer"),
    (TOKEN, "seq", -1, f"seq: must be between 0 and {BIG - 1}"),
    (TOKEN, "seq", BIG, f"seq: must be between 0 and {BIG - 1}"),
    (TOKEN, "mono_ts_ms", None, "mono_ts_ms: must be an integer"),
    (TOKEN, "payload", [], "payload: must be an object"),
    (TOKEN, "wall_ts", "now", "wall_ts: must be a number"),
    (TOKEN, "wall_ts", True, "wall_ts: must be a number"),
    (TOKEN, "wall_ts", float("inf"), "wall_ts: must be a finite number"),
    (TOKEN, "colour", "red", "event: has an unknown field 'colour'"),
    (TOKEN, "payload.colour", "red", "payload: has an unknown field 'colour'"),
    (TOKEN, "payload.delta", "", "payload.delta: must not be empty"),
    (TOKEN, "payload.delta", "\ud800", "payload.delta: must not contain lone surrogates"),
    (TOKEN, "payload.offset", -1, f"payload.offset: must be between 0 and {BIG - 1}"),
    (TOKEN, "payload.offset", None, "payload.offset: must be an integer"),
    (LOADING, "payload.progress", 1.01, "payload.progress: must be between 0 and 1"),
    (LOADING, "payload.progress", -0.5, "payload.progress: must be between 0 and 1"),
    (LOADING, "payload.progress", float("nan"), "payload.progress: must be a finite number"),
    (LOADING, "payload.progress", "0.5", "payload.progress: must be a number"),
    (LOADING, "payload.progress", True, "payload.progress: must be a number"),
    (LOADING, "payload.cold_start", 1, "payload.cold_start: must be true or false"),
    (READY, "payload.load_ms", -1, f"payload.load_ms: must be between 0 and {BIG - 1}"),
    (READY, "payload.warm_state", "HOT", "payload.warm_state: must be one of hot, warm, cold"),
    (RESULT, "payload.tool_name", "", "payload.tool_name: must not be empty"),
    (RESULT, "payload.canceled", None, "payload.canceled: must be true or false"),
    (
        RESULT,
        "payload.side_effects_may_have_occurred",
        None,
        "payload.side_effects_may_have_occurred: is required when canceled is true",
    ),
    (RESULT, "payload.error.code", 5, "payload.error.code: must be a string"),
    (RESULT, "payload.error", "late", "payload.error: must be an object"),
    (INTERRUPTED, "payload.heard", {"seq": 1}, "payload.heard.text: is missing"),
    (FINAL, "payload.authoritative", True, "payload.authoritative: must be false"),
    (FINAL, "payload.authoritative", 0, "payload.authoritative: must be false"),
    (COMMIT, "payload.authoritative", False, "payload.authoritative: must be true"),
    (COMMIT, "payload.authoritative", 1, "payload.authoritative: must be true"),
    (COMMIT, "payload.commit_outcome", "maybe", "payload.commit_outcome: must be one of ok, fail_closed"),
    (COMMIT, "payload.issues", {}, "payload.issues: must be a list"),
    (COMMIT, "payload.issues", "none", "payload.issues: must be a list"),
    (COMMIT, "payload.issues.0", "No.", "payload.issues[0]: must be an object"),
    (COMMIT, "payload.issues.0.message", None, "payload.issues[0].message: must be a string"),
    (COMMIT, "payload.issues.0.rule", "r", "payload.issues[0]: has an unknown field 'rule'"),
    (COMMIT, "payload.artifact_refs", [1], "payload.artifact_refs[0]: must be a string"),
    (COMMIT, "payload.ext.data", float("nan"), "payload.ext.data: must be a finite number"),
    (COMMIT, "payload.ext.data", {"a": BIG}, f"payload.ext.data: must not hold integers beyond {BIG - 1}"),
    (COMMIT, "payload.ext.data", {"a": {1, 2}}, "payload.ext.data: must be plain JSON"),
    (COMMIT, "payload.ext.data", {1: "a"}, "payload.ext.data: must be a string"),
    (COMMIT, "payload.ext.more", 1, "payload.ext: has an unknown field 'more'"),
    (COMMIT, "payload.dropped_seq_ranges", {}, "payload.dropped_seq_ranges: must be a list"),
    (
        COMMIT,
        "payload.dropped_seq_ranges.1.start_seq",
        4,
        "payload.dropped_seq_ranges: must be sorted and must not overlap",
    ),
    (
        COMMIT,
        "payload.dropped_seq_ranges.0.start_seq",
        5,
        "payload.dropped_seq_ranges: must hold ranges that start no later than they end",
    ),
    (
        COMMIT,
        "payload.dropped_seq_ranges.1.end_seq",
        "9",
        "payload.dropped_seq_ranges[1].end_seq: must be an integer",
    ),
]


@pytest.mark.parametrize(("sent", "path", "value", "sentence"), REFUSED)
def test_a_value_outside_its_domain_is_refused_by_name(
    sent: StreamEvent, path: str, value: object, sentence: str
) -> None:
    with pytest.raises(InvalidEvent) as refused:
        wire.from_wire(altered(sent, path, value))
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    "sent", [TOKEN, LOADING, READY, RESULT, INTERRUPTED, FINAL, COMMIT], ids=lambda e: e.event_type
)
def test_a_required_field_that_is_missing_is_refused_by_name(sent: StreamEvent) -> None:
    optional = {"wall_ts", "ext", "dropped_seq_ranges", "progress", "error"}
    whole = wire.to_wire(sent)
    for name in whole.keys() - optional:
        with pytest.raises(InvalidEvent, match=f"^{name}: is missing$"):
            wire.from_wire({key: value for key, value in whole.items() if key != name})
    for name in whole["payload"].keys() - optional - {"side_effects_may_have_occurred"}:
        fields = {key: value for key, value in whole["payload"].items() if key != name}
        with pytest.raises(InvalidEvent, match=f"^payload.{name}: is missing$"):
            wire.from_wire(whole | {"payload": fields})
        with pytest.raises(InvalidEvent, match=f"^payload.{name}: is missing$"):
            wire.payload_from_wire(sent.event_type, fields)


@pytest.mark.shows("core-54")
@pytest.mark.parametrize("namespace", ["ext.a.b", "ext.acme.mood", "ext.0-a_.9", "ext." + "a" * 64 + ".b"])
def test_a_namespace_names_publisher_and_extension(namespace: str) -> None:
    assert (
        cast(Ext, wire.from_wire(altered(COMMIT, "payload.ext.namespace", namespace)).payload.ext).namespace
        == namespace
    )


@pytest.mark.shows("core-54")
@pytest.mark.parametrize(
    "namespace",
    ["", "ext", "ext.a", "ext.a.", "ext..b", "ext.a.b.c", "EXT.a.b", "ext.A.b", "ext.a.b\n", "x.a.b", "ext.é.b", 7],
)
def test_any_other_namespace_is_refused(namespace: object) -> None:
    with pytest.raises(InvalidEvent, match=r"^payload\.ext\.namespace: must "):
        wire.from_wire(altered(COMMIT, "payload.ext.namespace", namespace))


def test_extension_data_may_be_nested_so_deep_and_no_deeper() -> None:
    data: Any = 1
    for _ in range(wire.MAX_EXT_DEPTH // 2):
        data = [{"a": data}]
    sent = evolve(COMMIT, payload=evolve(COMMIT.payload, ext=Ext("ext.a.b", data)))
    assert wire.decode(wire.encode(sent)) == sent
    with pytest.raises(InvalidEvent, match=r"^payload\.ext\.data: must not be nested deeper than 32 levels$"):
        wire.from_wire(altered(COMMIT, "payload.ext.data", [data]))


@pytest.mark.parametrize("frame", ["", "{", "nonsense", "NaN", b"\xff", "[" * 5000, '{"a": "\\ud800"}'])
def test_a_frame_that_is_not_json_is_refused(frame: str | bytes) -> None:
    with pytest.raises(InvalidEvent, match=r"^event: must be valid JSON$"):
        wire.decode(frame)


@pytest.mark.parametrize("frame", ["[]", "7", "null", '"words"'])
def test_a_frame_that_is_not_an_object_is_refused(frame: str) -> None:
    with pytest.raises(InvalidEvent, match=r"^event: must be an object$"):
        wire.decode(frame)


def test_what_json_cannot_say_is_not_sent() -> None:
    with pytest.raises(InvalidEvent, match=r"^event: must hold nothing that JSON cannot say$"):
        wire.encode(evolve(TOKEN, payload=TokenDelta(delta="\ud800", offset=0)))


@pytest.mark.parametrize(
    "whole",
    [
        altered(FINAL, "payload.text", ["the duke did it"]),
        altered(FINAL, "payload.the duke did it", 1),
        altered(FINAL, "the duke did it", 1),
        altered(FINAL, "event_type", "the duke did it"),
        altered(TOKEN, "payload.delta", "the duke did it\ud800"),
        altered(COMMIT, "payload.ext.data", {"the duke did it": float("nan")}),
    ],
    ids=["text", "field of a payload", "field of the envelope", "type", "delta", "ext"],
)
def test_a_refusal_never_quotes_what_was_said(whole: dict[str, Any]) -> None:
    with pytest.raises(InvalidEvent) as refused:
        wire.from_wire(whole)
    assert "duke" not in str(refused.value)
    # Nor does a traceback: what cattrs raised holds the values it refused.
    assert refused.value.__suppress_context__


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from(EventType), JSON)
def test_whatever_comes_in_is_read_or_refused_and_nothing_else(event_type: EventType, anything: Any) -> None:
    for whole in (anything, wire.to_wire(TOKEN) | {"event_type": event_type, "payload": anything}):
        try:
            came = wire.from_wire(whole)
        except InvalidEvent as refusal:
            path, _, sentence = str(refusal).partition(": ")
            assert path
            assert sentence
        else:
            assert wire.decode(wire.encode(came)) == came
