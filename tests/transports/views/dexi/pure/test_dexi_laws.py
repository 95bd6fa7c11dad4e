"""Laws of narrated runs: each finds what breaks it and reports nothing else."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, TypeAlias

import pytest

from footlights.events import (
    ErrorInfo,
    InterruptReason,
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
    TurnFinal,
    TurnInterrupted,
)
from footlights_transports.views.dexi.pure.events import timestamp
from footlights_transports.views.dexi.pure.laws import DEXI_LAWS, check_dexi, check_dexi_jsonl
from tests.kit.views.dexi_kit import CHAT, HOT, OK, REFUSED, RUN, Raw, run_of, types

if TYPE_CHECKING:
    from collections.abc import Callable

    Breach: TypeAlias = Callable[[list[Raw]], None]

LOOK = (ToolCallStarted("call-1", "look"), ToolCallResult("call-1", "look", canceled=False, summary="Seen."))
WEIGH = (ToolCallStarted("call-2", "weigh"), ToolCallResult("call-2", "weigh", canceled=False, summary="Heavy."))


def execution() -> list[Raw]:
    """Two tools, one inside the other, with a heartbeat in each; then words."""
    payloads = (LOOK[0], WEIGH[0], WEIGH[1], LOOK[1], TokenDelta("Well.", 0), TurnFinal("Well."), OK)
    return run_of(*payloads, pauses=[0, 3, 3, 3, 0, 0])


def failed() -> list[Raw]:
    """A model that fails while its step is open, and says why."""
    cut = TurnInterrupted(InterruptReason.MODEL_ERROR, error=ErrorInfo("model_error", "It failed."))
    return run_of(*HOT, cut, REFUSED, pauses=[0, 3])


def chat() -> list[Raw]:
    return run_of(TokenDelta("Well.", 0), TurnFinal("Well."), OK, decision=CHAT)


def at(events: list[Raw], kind: str, number: int = 0) -> int:
    return [place for place, each in enumerate(types(events)) if each == kind][number]


def laws_broken(events: list[object]) -> set[str]:
    violations = check_dexi(events)
    assert {each.law for each in violations} <= set(DEXI_LAWS)
    return {each.law for each in violations}


def removed(kind: str, number: int = 0) -> Breach:
    def breach(events: list[Raw]) -> None:
        del events[at(events, kind, number)]

    return breach


def repeated(kind: str, number: int = 0) -> Breach:
    def breach(events: list[Raw]) -> None:
        place = at(events, kind, number)
        events.insert(place, deepcopy(events[place]))

    return breach


def altered(kind: str, number: int = 0, **fields: object) -> Breach:
    def breach(events: list[Raw]) -> None:
        events[at(events, kind, number)].update(fields)

    return breach


def moved(kind: str, number: int, before: str, which: int = 0) -> Breach:
    def breach(events: list[Raw]) -> None:
        event = events.pop(at(events, kind, number))
        place = at(events, before, which)
        events.insert(place, event | {"timestamp": events[place]["timestamp"]})

    return breach


def inserted(before: str, which: int, **event: object) -> Breach:
    def breach(events: list[Raw]) -> None:
        place = at(events, before, which)
        events.insert(place, event | {"timestamp": events[place]["timestamp"]})

    return breach


def shifted(seconds: float, kind: str, number: int = 0) -> Breach:
    """From this event on, everything comes so much later or sooner."""

    def breach(events: list[Raw]) -> None:
        for event in events[at(events, kind, number) :]:
            whole = float(event["timestamp"][17:23]) + seconds
            event["timestamp"] = timestamp(whole)

    return breach


def appended(**event: object) -> Breach:
    def breach(events: list[Raw]) -> None:
        events.append(event | {"timestamp": events[-1]["timestamp"]})

    return breach


BREACHES: list[tuple[str, Callable[[], list[Raw]], Breach]] = [
    ("schema", execution, altered("summary", content=7)),
    ("schema", execution, altered("summary", more="words")),
    ("mode_first", execution, removed("mode")),
    ("mode_first", chat, moved("mode", 0, "done")),
    ("mode_once", execution, inserted("step_start", 0, type="mode", run_id=RUN, mode="chat")),
    ("run_id", execution, altered("done", run_id="r1-000002")),
    ("run_id", execution, altered("plan_narrative", run_id="r1-000002")),
    ("time_order", execution, shifted(-1, "output_delta")),
    ("chat_only", chat, inserted("done", 0, type="summary", content="Words.")),
    ("plan_once", execution, removed("plan_narrative")),
    ("plan_once", execution, repeated("plan_narrative")),
    ("plan_first", execution, moved("plan_narrative", 0, "tool_start")),
    ("plan_first", execution, moved("plan_narrative", 0, "done")),
    ("step_unique", execution, repeated("step_start")),
    ("step_known", execution, repeated("step_end")),
    ("step_known", execution, altered("step_end", step_id="step-9")),
    ("step_closed", execution, removed("step_end", 1)),
    ("step_some", lambda: run_of(TurnFinal(""), OK), lambda events: events.__delitem__(slice(2, 4))),
    ("in_step", execution, altered("narration_delta", step_id="step-9")),
    ("in_step", execution, altered("heartbeat", step_id="step-9")),
    ("in_step", execution, altered("tool_start", step_id="step-9")),
    ("in_step", execution, altered("tool_result", step_id="step-9")),
    (
        "in_step",
        execution,
        inserted("output_delta", 0, type="artifact_read", step_id="step-1", artifact_type="a", identifier="b"),
    ),
    (
        "in_step",
        execution,
        inserted(
            "output_delta",
            0,
            type="artifact_generated",
            step_id="step-1",
            artifact_type="a",
            identifier="b",
            summary="",
        ),
    ),
    ("tool_alone", execution, repeated("tool_start")),
    ("tool_partner", execution, altered("tool_result", tool_name="smell")),
    ("tool_partner", execution, removed("tool_start")),
    ("tool_partner", execution, repeated("tool_result")),
    ("tool_result", execution, removed("tool_result")),
    ("narration_action", execution, repeated("narration_delta")),
    ("narration_action", failed, altered("step_end", -1, outcome="completed")),
    ("narration_action", execution, altered("narration_delta", 1, step_id="step-1")),
    ("output_outside", execution, moved("output_delta", 0, "tool_result")),
    ("heartbeat_quiet", execution, repeated("heartbeat")),
    ("heartbeat_quiet", execution, inserted("tool_result", 0, type="heartbeat", step_id="step-2", state="words")),
    ("heartbeat_pace", execution, shifted(5, "tool_result")),
    ("heartbeat_pace", execution, shifted(3, "heartbeat")),
    ("heartbeat_step", execution, altered("heartbeat", 1, step_id="step-1")),
    ("summary_last", execution, repeated("summary")),
    ("summary_last", execution, moved("summary", 0, "output_delta")),
    ("done_last", execution, removed("done")),
    ("done_last", execution, repeated("done")),
    ("done_last", execution, appended(type="output_delta", content="More.")),
    ("done_last", chat, removed("done")),
]


def test_these_runs_are_lawful() -> None:
    assert types(execution()).count("heartbeat") == 3
    assert check_dexi(execution()) == []
    assert check_dexi([*chat(), *execution(), *chat()]) == []
    assert check_dexi([]) == []


@pytest.mark.shows("narration-7", "narration-31", "narration-54", "narration-61", "narration-65", "narration-68")
@pytest.mark.shows("narration-80", "narration-81", "narration-94", "narration-107")
@pytest.mark.parametrize(("law", "make", "breach"), BREACHES, ids=[f"{n}-{b[0]}" for n, b in enumerate(BREACHES)])
def test_a_breach_is_caught_by_its_law(law: str, make: Callable[[], list[Raw]], breach: Breach) -> None:
    events = deepcopy(make())
    breach(events)
    assert law in laws_broken([*events])


def test_every_law_has_a_breach_here() -> None:
    assert {law for law, _, _ in BREACHES} | {"json"} == set(DEXI_LAWS)


def test_an_incomplete_recording_is_lawful_up_to_its_end() -> None:
    whole = execution()
    for end in range(len(whole)):
        assert check_dexi(whole[:end], complete=False) == []
        assert {each.law for each in check_dexi(whole[:end])} == ({"done_last"} if end else set())


def test_lines_are_checked_like_events() -> None:
    lines = [json.dumps(event) for event in execution()]
    assert check_dexi_jsonl(lines) == []
    assert check_dexi_jsonl(lines[:-1], complete=False) == []
    lines[3:3] = ["{", '{"type": "mode", "type": "mode"}', "NaN"]
    assert [str(each) for each in check_dexi_jsonl(lines)] == [
        "json: run r1-000001 event 4: is not valid JSON",
        "json: run r1-000001 event 5: an object names a field twice",
        "json: run r1-000001 event 6: has a number that JSON does not know",
    ]


@pytest.mark.parametrize("event", [None, 7, "mode", [], {}, {"type": 7}, {"type": []}, {"type": "words"}])
def test_the_checker_never_raises(event: object) -> None:
    assert "schema" in laws_broken([event])


def test_a_violation_names_its_place_in_one_line() -> None:
    events = chat()
    events[0]["run_id"] = events[-1]["run_id"] = "two\nlines"
    (violation,) = check_dexi(events[:-1])
    assert str(violation) == "done_last: run 'two\\nlines': the run never ends"
    (first, *_) = check_dexi([{}])
    assert str(first) == "schema: event 1: type: is not a type of event"
    (last,) = check_dexi([{}])[1:]
    assert str(last) == "done_last: the run never ends"
