"""Every alteration of a lawful recording is found, except where the recording alone cannot show it.

Those exceptions are listed in `invisible`, each with its reason. They are decided from the whole turn, by other
means than the checker's.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from footlights import laws, wire
from footlights.testing.streams import Recording, recordings

Raw: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str | int, ...]


def raw_events(recording: Recording) -> list[Raw]:
    return [deepcopy(wire.to_wire(event)) for event in recording.events]


def found_in(recording: Recording, events: list[Raw]) -> list[laws.Violation]:
    return laws.check(events, after=recording.after, canceled=recording.canceled)


def place_of(data: st.DataObject, events: list[Raw]) -> int:
    return data.draw(st.integers(0, len(events) - 1), label="place")


def siblings(events: list[Raw], event: Raw) -> list[int]:
    key = (event["session_id"], event["turn_id"])
    return [at for at, other in enumerate(events) if (other["session_id"], other["turn_id"]) == key]


@pytest.mark.shows("core-12")
@given(recordings(least=2), st.data())  # with the only event of a turn all is gone that could be missed
def test_an_event_that_is_left_out_is_missed(recording: Recording, data: st.DataObject) -> None:
    events = raw_events(recording)
    del events[place_of(data, events)]
    assert found_in(recording, events)


@pytest.mark.shows("core-4")
@given(recordings(least=1), st.data())
def test_an_event_that_comes_twice_is_found(recording: Recording, data: st.DataObject) -> None:
    events = raw_events(recording)
    at = place_of(data, events)
    events.insert(data.draw(st.integers(at + 1, len(events))), events[at])
    assert found_in(recording, events)


@pytest.mark.shows("core-5")
@given(recordings(least=2), st.data())
def test_two_events_of_a_turn_that_change_places_are_found(recording: Recording, data: st.DataObject) -> None:
    events = raw_events(recording)
    at = place_of(data, events)
    other = data.draw(st.sampled_from([place for place in siblings(events, events[at]) if place != at]))
    events[at], events[other] = events[other], events[at]
    assert found_in(recording, events)


@given(recordings(least=1), st.data())
def test_events_that_are_renumbered_are_found(recording: Recording, data: st.DataObject) -> None:
    """From some event on, every seq of a turn is shifted, as if one had been taken out or put in without a word."""
    events = raw_events(recording)
    at = place_of(data, events)
    shift = data.draw(st.sampled_from([-2, -1, 1, 2]))
    for place in siblings(events, events[at]):
        if place >= at:
            events[place]["seq"] += shift
    assert found_in(recording, events)


@pytest.mark.shows("core-13")
@given(recordings(gap=True), st.data())
def test_ranges_that_say_more_or_less_or_otherwise_are_found(recording: Recording, data: st.DataObject) -> None:
    events = raw_events(recording)
    declaring = [event for event in events if "dropped_seq_ranges" in event["payload"]]
    payload = data.draw(st.sampled_from(declaring))["payload"]
    ranges = payload["dropped_seq_ranges"]
    at = data.draw(st.integers(0, len(ranges) - 1))
    changes = ["widen", "shrink", "remove", "repeat", "all", *(["reverse"] if len(ranges) > 1 else [])]
    match data.draw(st.sampled_from(changes), label="change"):
        case "widen":
            end, by = data.draw(st.sampled_from([("start_seq", -1), ("end_seq", 1)]))
            ranges[at][end] += by
        case "shrink":
            end, by = data.draw(st.sampled_from([("start_seq", 1), ("end_seq", -1)]))
            ranges[at][end] += by
        case "remove":
            del ranges[at]
        case "repeat":
            ranges.append(dict(ranges[at]))
        case "reverse":
            ranges.reverse()
        case _:
            del payload["dropped_seq_ranges"]
    assert found_in(recording, events)


@given(recordings(least=1), st.data())
def test_a_range_where_nothing_is_missing_is_found(recording: Recording, data: st.DataObject) -> None:
    events = raw_events(recording)
    event = events[place_of(data, events)]
    start = data.draw(st.integers(0, event["seq"] + 2))
    more = {"start_seq": start, "end_seq": start + data.draw(st.integers(0, 2))}
    event["payload"]["dropped_seq_ranges"] = [*event["payload"].get("dropped_seq_ranges", ()), more]
    assert found_in(recording, events)


@given(recordings(least=1), st.data())
def test_a_forged_second_ending_is_found(recording: Recording, data: st.DataObject) -> None:
    """A copy of a terminal event or a commit, with the next free seq, and everything after it renumbered."""
    events = raw_events(recording)
    endings = ("turn_final", "turn_interrupted", "commit_final")
    at = data.draw(st.sampled_from([at for at, event in enumerate(events) if event["event_type"] in endings]))
    forged = deepcopy(events[at])
    forged["payload"].pop("dropped_seq_ranges", None)
    for place in siblings(events, forged):
        if place > at:
            events[place]["seq"] += 1
    forged["seq"] += 1
    events.insert(at + 1, forged)
    assert found_in(recording, events)


VALUES: dict[type, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: st.integers(-1, 40) | st.just(1_000_000_000),
    float: st.floats(-0.5, 1.5),
    str: st.sampled_from(["", "x", "c1", "c2", "hot", "warm", "cold", "ok", "fail_closed", "canceled", "turn_final"])
    | st.text("ab", max_size=3),
}
ANOTHER: dict[type, Any] = {
    bool: lambda old: not old,
    int: lambda old: old + 1,
    float: lambda old: old + 0.25,
    str: lambda old: old + "x",
    type(None): lambda old: 7,
}
"""Replacement for a drawn value that equals the old one."""
FOREIGN = st.sampled_from([None, True, 7, 0.5, "words", [], {}, [1], {"a": 1}])


@settings(max_examples=200)
@given(recordings(lossy=False), st.data())
def test_any_scalar_that_is_altered_is_found(recording: Recording, data: st.DataObject) -> None:
    events = raw_events(recording)
    at = place_of(data, events)
    path = data.draw(st.sampled_from(list(scalars(events[at]))), label="path")
    old = look(events[at], path)
    new = data.draw(VALUES.get(type(old), st.nothing()) | FOREIGN, label="new")
    if type(new) is type(old) and new == old:
        new = ANOTHER[type(old)](old)
    altered = deepcopy(events)
    look(altered[at], path[:-1])[path[-1]] = new
    reason = invisible(events, at, path, old, new)
    found = found_in(recording, altered)
    if reason is None:
        assert found
    else:
        assert not found, f"{reason}: {[str(violation) for violation in found]}"


def scalars(value: Any, path: Path = ()) -> list[Path]:
    if isinstance(value, dict):
        return [inner for key in value for inner in scalars(value[key], (*path, key))]
    if isinstance(value, list):
        return [inner for at, item in enumerate(value) for inner in scalars(item, (*path, at))]
    return [path]


def look(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


FREE_TEXT = {
    "model_selected": {"reason"},
    "tool_call_result": {"summary"},
    "turn_interrupted": {"detail"},
    "commit_final": {"commit_id"},
}
"""Texts for people, and ids that nothing else in the stream refers to."""
NULLABLE = {"summary", "detail", "commit_id", "progress"}


def invisible(events: list[Raw], at: int, path: Path, old: Any, new: Any) -> str | None:
    """Why nobody could tell that this scalar was altered; None if somebody could."""
    event = events[at]
    turn = [events[place] for place in siblings(events, event)]
    if path == ("wall_ts",):
        return "wall_ts orders nothing" if new is None or is_number(new) else None
    if path == ("mono_ts_ms",):
        return "a clock that still runs forward" if is_natural(new) and in_order(turn, event, new) else None
    if path[0] != "payload":
        return None
    if path[1] == "ext":
        if path[2] == "data":
            return "an extension's data is its own"
        return None
    return invisible_in_payload(turn, event, path[1:], old, new)


def invisible_in_payload(turn: list[Raw], event: Raw, path: Path, old: Any, new: Any) -> str | None:
    kind, name, payload = event["event_type"], path[0], event["payload"]
    if new is None:
        if name in NULLABLE or path[-1] == "ref":
            return "an optional field that is not said"
        if name == "side_effects_may_have_occurred" and not payload["canceled"]:
            return "an optional field that is not said"
        return None
    if name == "progress":
        return "a load that still goes forward" if is_number(new) and progress_fits(turn, event, new) else None
    if name == "turns_ahead" or (name == "load_ms" and payload["warm_state"] != "hot"):
        return "a number that nothing depends on" if is_natural(new) else None
    if type(new) is not type(old):
        return None
    if kind == "model_selected" and name == "reason" and "error" in payload:
        return None
    if name in FREE_TEXT.get(kind, ()) or path[-1] in ("message", "ref"):
        return "free text"
    if name == "error":
        return "an error that nothing depends on" if new else None
    if name == "artifact_refs":
        return "a reference that nothing depends on"
    if name in ("cold_start", "side_effects_may_have_occurred"):
        return "a statement that nothing contradicts"
    if name == "canceled":
        return "a statement that nothing contradicts" if "side_effects_may_have_occurred" in payload else None
    if name == "warm_state":
        return "neither was hot" if {old, new} <= {"warm", "cold"} else None
    if name == "reason":
        return "another reason" if new == "canceled" and "error" not in payload else None
    if name == "issues":
        needed = turn[-2]["event_type"] == "turn_interrupted" and sole_reason(payload["issues"]) == path[1]
        return "another issue" if new and not needed else None
    if name == "model_id" and kind == "model_selected":
        return "the model was never heard of again" if new and never_heard_of(turn, event, new) else None
    if name == "delta":
        return delta_is_not_repeated(turn, event, new)
    if path == ("heard", "seq"):
        return "the same text was heard" if heard_as_much(turn, event, new) else None
    return None


def is_natural(value: object) -> bool:
    return type(value) is int and value >= 0


def is_number(value: object) -> bool:
    return type(value) in (int, float)


def in_order(turn: list[Raw], event: Raw, mono_ts_ms: int) -> bool:
    stamps = [mono_ts_ms if each is event else each["mono_ts_ms"] for each in turn]
    return stamps == sorted(stamps)


def progress_fits(turn: list[Raw], event: Raw, progress: float) -> bool:
    load: list[float] = []
    at = turn.index(event)
    for place, each in enumerate(turn):
        if each["event_type"] == "model_selected" and place < at:
            load.clear()
        elif each["event_type"] == "model_selected":
            break
        elif each["event_type"] == "model_loading" and "progress" in each["payload"]:
            load.append(progress if each is event else each["payload"]["progress"])
    return 0 <= progress <= 1 and load == sorted(load)


def sole_reason(issues: list[Raw]) -> int | None:
    """Which issue is the only one that says that the turn was interrupted."""
    saying = [at for at, issue in enumerate(issues) if issue["code"] in ("turn_interrupted", "runtime_restart")]
    return saying[0] if len(saying) == 1 else None


def never_heard_of(turn: list[Raw], event: Raw, model_id: str) -> bool:
    """Whether no event is about the selected model, and it is neither replaced by itself nor replaces itself."""
    about = [each for each in turn if each["event_type"].startswith("model_")]
    at = about.index(event)
    following = about[at + 1] if at + 1 < len(about) else None
    if following is not None and following["event_type"] != "model_selected":
        return False
    pairs = [(event, about[at - 1])] * (at > 0) + ([(following, event)] if following is not None else [])
    fallbacks = [other if each is event else each for each, other in pairs if "error" in each["payload"]]
    return all(each["payload"]["model_id"] != model_id for each in fallbacks)


def last_of(turn: list[Raw], prefix: str) -> Raw | None:
    matching = [event for event in turn if event["event_type"].startswith(prefix)]
    return matching[-1] if matching else None


def delta_is_not_repeated(turn: list[Raw], event: Raw, new: str) -> str | None:
    terminal = turn[-2]
    fits = len(new) == len(event["payload"]["delta"]) or event is last_of(turn, "token_delta")
    if not new or terminal["event_type"] == "turn_final" or not fits:
        return None
    heard = terminal["payload"].get("heard")
    if heard is not None and heard["seq"] >= event["seq"]:
        return None
    return "an interrupted turn repeats only what was heard"


def heard_as_much(turn: list[Raw], event: Raw, seq: int) -> bool:
    said = (each for each in turn if each["event_type"] == "token_delta" and each["seq"] <= seq)
    text = "".join(each["payload"]["delta"] for each in said)
    return 0 <= seq <= int(event["seq"]) and text == str(event["payload"]["heard"]["text"])
