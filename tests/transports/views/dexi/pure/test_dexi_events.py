"""Events of narrated runs: their fields, their schemas, and the check against a schema."""

from __future__ import annotations

from typing import Any

import attrs
import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights import InvalidEvent
from footlights.params import Mode
from footlights_transports.views.dexi.pure.events import (
    Done,
    ModeEvent,
    RunOutcome,
    StepEnd,
    StepOutcome,
    ToolResult,
    seconds_of,
    timestamp,
    to_json,
)
from footlights_transports.views.dexi.pure.laws import check_dexi
from footlights_transports.views.dexi.pure.schema import EVENT_NAMES, check_event, dexi_schema
from tests.kit.views.dexi_kit import VALIDATOR, Raw

FIELDS = {
    "mode": "type run_id mode timestamp",
    "plan_narrative": "type run_id content timestamp",
    "step_start": "type step_id label timestamp",
    "narration_delta": "type step_id content timestamp",
    "artifact_read": "type step_id artifact_type identifier timestamp",
    "artifact_generated": "type step_id artifact_type identifier summary timestamp",
    "tool_start": "type step_id tool_name purpose timestamp",
    "tool_result": "type step_id tool_name summary redactions_applied timestamp",
    "heartbeat": "type step_id state timestamp",
    "step_end": "type step_id outcome timestamp",
    "output_delta": "type content timestamp",
    "summary": "type content timestamp",
    "done": "type run_id outcome timestamp",
}
"""As the specification lists them."""

STAMP = "2026-11-16T12:00:00.250Z"
OTHERS: list[Any] = [None, True, 0, [], {}, "", "words", "chat", "failed", "done", STAMP, "2026-13-01T00:00:00.000Z"]
VALUES: dict[str, Any] = {"mode": "chat", "outcome": "failed", "redactions_applied": True, "timestamp": STAMP}


def example(name: str) -> Raw:
    return {field: name if field == "type" else VALUES.get(field, "words") for field in FIELDS[name].split()}


@pytest.mark.shows("narration-57", "narration-62", "narration-66", "narration-67", "narration-72", "narration-74")
@pytest.mark.shows("narration-75", "narration-76", "narration-79", "narration-83", "narration-85", "narration-88")
@pytest.mark.shows("narration-89", "narration-90")
@pytest.mark.parametrize("name", EVENT_NAMES)
def test_each_schema_has_the_fields_of_the_specification_and_no_others(name: str) -> None:
    schema: Any = dexi_schema()["$defs"]
    assert list(schema[name]["properties"]) == FIELDS[name].split()
    assert schema[name]["required"] == FIELDS[name].split()
    assert schema[name]["additionalProperties"] is False
    assert schema[name]["properties"]["type"] == {"const": name}
    assert schema[name]["description"]


def test_every_type_of_the_specification_has_a_schema() -> None:
    assert list(EVENT_NAMES) == list(FIELDS)


@pytest.mark.parametrize("name", EVENT_NAMES)
def test_an_event_survives_writing_and_reading(name: str) -> None:
    event = check_event(example(name))
    assert to_json(event) == example(name)
    assert list(to_json(event)) == FIELDS[name].split()
    assert attrs.fields(type(event)).type.default == name
    VALIDATOR.validate(to_json(event))


@pytest.mark.shows("narration-16", "narration-17", "narration-18", "narration-19", "narration-20", "narration-60")
@pytest.mark.shows("narration-93")
@pytest.mark.parametrize("name", sorted({*EVENT_NAMES} - {"mode", "output_delta", "done"}))
def test_a_chat_with_any_other_event_is_unlawful(name: str) -> None:
    chat = [example("mode"), example("output_delta"), example("done")]
    assert check_dexi([*chat]) == []
    assert "chat_only" in {each.law for each in check_dexi([*chat[:2], example(name), chat[2]])}


def test_the_type_of_an_event_comes_first() -> None:
    assert to_json(ModeEvent("r1", Mode.CHAT, STAMP)) == {
        "type": "mode", "run_id": "r1", "mode": "chat", "timestamp": STAMP,
    }  # fmt: skip
    assert to_json(StepEnd("step-1", StepOutcome.FAILED, STAMP))["outcome"] == "failed"
    assert to_json(Done("r1", RunOutcome.CANCELED, STAMP))["outcome"] == "canceled"
    assert to_json(ToolResult("step-1", "look", "Seen.", False, STAMP))["redactions_applied"] is False


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (7, "event: must be an object"),
        ({}, "type: is not a type of event"),
        ({"type": "token_delta"}, "type: is not a type of event"),
        (example("summary") | {"more": 1}, "event: has a field that its type does not have"),
        ({"type": "summary", "timestamp": STAMP}, "content: is missing"),
        (example("summary") | {"content": 1}, "content: must be a string"),
        (example("summary") | {"content": "\ud800"}, "content: must not contain lone surrogates"),
        (example("tool_result") | {"redactions_applied": 1}, "redactions_applied: must be true or false"),
        (example("mode") | {"mode": "both"}, "mode: must be one of chat, execution"),
        (example("done") | {"outcome": "ok"}, "outcome: must be one of completed, waiting, failed, canceled, unknown"),
        (example("done") | {"timestamp": "now"}, "timestamp: must be an ISO time in UTC, to the millisecond"),
        (
            example("done") | {"timestamp": "2026-02-31T12:00:00.250Z"},
            "timestamp: must be an ISO time in UTC, to the millisecond",
        ),
    ],
)
def test_an_invalid_event_is_refused_without_being_quoted(document: object, sentence: str) -> None:
    with pytest.raises(InvalidEvent) as refused:
        check_event(document)
    assert str(refused.value) == sentence


@pytest.mark.shows("narration-90")
@given(st.data())
def test_the_schema_and_the_check_agree_about_altered_events(data: st.DataObject) -> None:
    document = example(data.draw(st.sampled_from(EVENT_NAMES)))
    name = data.draw(st.sampled_from([*document, "more"]))
    if data.draw(st.booleans()):
        document.pop(name, None)
    else:
        document[name] = data.draw(st.sampled_from(OTHERS))
    try:
        check_event(document)
        fits = True
    except InvalidEvent:
        fits = False
    assert VALIDATOR.is_valid(document) is fits


@pytest.mark.shows("narration-127")
def test_the_schema_is_a_valid_json_schema() -> None:
    jsonschema_rs.validator_for(dexi_schema())
    assert jsonschema_rs.meta.is_valid(dexi_schema())


@given(st.integers(0, 4_000_000_000_000))
def test_timestamps_keep_their_milliseconds(milliseconds: int) -> None:
    stamp = timestamp(milliseconds / 1000)
    assert len(stamp) == len(STAMP)
    assert round(seconds_of(stamp) * 1000) == milliseconds
