"""A draft is lawful in itself, or it is refused with the place that is wrong."""

from __future__ import annotations

import pytest

from footlights import Ext, InvalidEvent, TokenDelta, draft_event

RESULT = {"tool_call_id": "c1", "tool_name": "sweep", "canceled": False}


@pytest.mark.parametrize(
    ("event_type", "payload", "where"),
    [
        ("unheard_of", {}, "event_type"),
        ("", {}, "event_type"),
        ("token_delta", {}, "payload.delta"),
        ("token_delta", {"delta": ""}, "payload.delta"),
        ("token_delta", {"delta": 7}, "payload.delta"),
        ("token_delta", {"delta": "\ud83c"}, "payload.delta"),
        ("token_delta", {"delta": "a", "mood": "glad"}, "payload"),
        ("token_delta", {"delta": "a", "ext": {"data": 1}}, "payload.ext"),
        ("token_delta", {"delta": "a", "ext": {"namespace": "acme", "data": 1}}, "payload.ext"),
        ("token_delta", {"delta": "a", "ext": {"namespace": "ext.acme", "data": 1}}, "payload.ext"),
        ("token_delta", {"delta": "a", "ext": {"namespace": "ext.Acme.Mood", "data": 1}}, "payload.ext"),
        ("token_delta", {"delta": "a", "ext": {"namespace": "ext.acme.mood", "data": object()}}, "payload.ext"),
        ("token_delta", {"delta": "a", "ext": {"namespace": "ext.acme.mood", "data": float("nan")}}, "payload.ext"),
        ("token_delta", {"delta": "a", "ext": {"namespace": "ext.acme.mood", "data": 1, "more": 2}}, "payload.ext"),
        ("model_loading", {"model_id": "m", "cold_start": True, "progress": 1.1}, "payload.progress"),
        ("model_ready", {"model_id": "m", "warm_state": "tepid", "load_ms": 1}, "payload.warm_state"),
        ("tool_call_result", {**RESULT, "canceled": True}, "payload.side_effects_may_have_occurred"),
    ],
)
def test_a_draft_of_what_is_not_lawful_is_refused(event_type: str, payload: dict[str, object], where: str) -> None:
    with pytest.raises(InvalidEvent, match=rf"^{where}"):
        draft_event(event_type, payload)


@pytest.mark.shows("core-52", "core-53")
def test_a_draft_may_carry_the_extensions_own_data() -> None:
    data = {"mood": ["glad", None, 1.5]}
    event = draft_event("token_delta", {"delta": "!", "ext": {"namespace": "ext.acme.mood", "data": data}})
    data["mood"].clear()
    assert event.payload == TokenDelta("!", 0, ext=Ext("ext.acme.mood", {"mood": ["glad", None, 1.5]}))


def test_a_draft_of_what_is_no_object_is_refused() -> None:
    with pytest.raises(InvalidEvent):
        draft_event("token_delta", "hello")  # type: ignore[arg-type]  # what an untyped workload may do
