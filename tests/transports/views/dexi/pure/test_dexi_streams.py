"""Properties of narrated runs, for any turn and any events that a subscriber misses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights.events import CommitFinal, EventType, StreamEvent, TokenDelta, TurnFinal
from footlights.modes import ExecutionPolicy, ModeDecision
from footlights.testing.streams import Events, turns, views_of
from footlights_transports.views.dexi.pure.events import to_json
from footlights_transports.views.dexi.pure.laws import check_dexi
from footlights_transports.views.dexi.pure.narration import Narrator
from footlights_transports.views.dexi.pure.templates import CUT_ASIDE
from tests.kit.views.dexi_kit import RUN, TOOLS, decided, lawful, output, project, types

DECISIONS = [
    decided(policy, activities)
    for policy in ExecutionPolicy
    for activities in ([], ["search"], ["search", "simulate", "unnamed"])
]
decisions = st.sampled_from(DECISIONS)
pauses = st.lists(st.sampled_from([0.0, 0.1, 1.9, 2.5, 3.0, 7.0, 60.0]), max_size=20)


def said(events: Events) -> str:
    return "".join(event.payload.delta for event in events if isinstance(event.payload, TokenDelta))


def explained(run: list[dict[str, str]]) -> int:
    """The length of the explanation of denied execution in the output."""
    first = run[1].get("content", "")
    return len(first) if "I have not run anything" in first else 0


def aside(run: list[dict[str, str]], events: Events) -> str:
    """What follows the answer of a chat that was cut at its limit of tokens, or refused."""
    if run[0]["mode"] != "chat" or not any(isinstance(event.payload, TurnFinal) for event in events):
        return ""
    is_cut = any(isinstance(event.payload, TurnFinal) and event.payload.cut for event in events)
    issues = [each for event in events if isinstance(event.payload, CommitFinal) for each in event.payload.issues]
    refused = [f"\n\n(Nothing was committed. Why ({each.code}): {each.message})" for each in issues[:1]]
    return "".join([CUT_ASIDE if is_cut else "", *refused])


@pytest.mark.shows("narration-7", "narration-9", "narration-10", "narration-52", "narration-54", "narration-58")
@pytest.mark.shows("narration-59", "narration-60", "narration-61", "narration-84", "narration-93", "narration-126")
@given(turns(), decisions, pauses)
def test_every_turn_is_a_lawful_run_with_all_of_its_text(
    events: Events, decision: ModeDecision, waits: list[float]
) -> None:
    run = project(events, decision, pauses=waits)
    assert output(run)[explained(run) :] == said(events) + aside(run, events)
    assert types(run)[-1] == "done"
    if run[0]["mode"] == "execution":
        started = [each for each in events if each.event_type is EventType.TOOL_CALL_STARTED]
        assert types(run).count("tool_start") == types(run).count("tool_result") == len(started)


@given(st.data(), decisions, pauses)
def test_a_turn_with_missed_events_is_a_lawful_run_without_wrong_text(
    data: st.DataObject, decision: ModeDecision, waits: list[float]
) -> None:
    whole = data.draw(turns())
    events, _ = data.draw(views_of(whole, least=1))
    run = project(events, decision, pauses=waits)
    words = output(run)[explained(run) :]
    finals = [event.payload for event in events if isinstance(event.payload, TurnFinal)]
    if any(not final.text_forgotten for final in finals):
        assert [words] == [final.text + aside(run, events) for final in finals]
    else:
        assert said(whole).startswith(words)


@pytest.mark.shows("narration-92")
@given(turns(), decisions)
def test_the_same_events_make_the_same_run(events: tuple[StreamEvent, ...], decision: ModeDecision) -> None:
    assert project(events, decision) == project(events, decision)


@pytest.mark.shows("narration-107")
@given(turns(), decisions, st.data())
def test_a_run_whose_narration_fails_anywhere_ends_lawfully(
    events: Events, decision: ModeDecision, data: st.DataObject
) -> None:
    narrator = Narrator(RUN, decision, tools=TOOLS)
    sent = narrator.begin(0)
    for event in events[: data.draw(st.integers(0, len(events) - 1))]:
        sent += narrator.take(event, 0)
    run = lawful([to_json(event) for event in [*sent, *narrator.break_off(sent, 1)]])
    assert run[-1]["outcome"] == "unknown"


MISSED = {"mode", "plan_narrative", "step_start", "step_end", "tool_start", "tool_result", "done"}
"""Types of events whose absence a recording shows."""
ONCE = MISSED | {"narration_delta", "summary", "heartbeat"}


@given(turns(), decisions, pauses, st.data())
def test_the_laws_find_a_missing_or_repeated_event(
    events: Events, decision: ModeDecision, waits: list[float], data: st.DataObject
) -> None:
    run = project(events, decision, pauses=waits)
    place = data.draw(st.integers(0, len(run) - 1))
    kind = run[place]["type"]
    if kind in MISSED:
        assert check_dexi([*run[:place], *run[place + 1 :]])
    if kind in ONCE:
        assert check_dexi([*run[: place + 1], *run[place:]])


@pytest.mark.shows("narration-9", "narration-10")
@given(turns(), decisions)
def test_the_laws_find_a_wrong_mode(events: Events, decision: ModeDecision) -> None:
    run = project(events, decision)
    other = "chat" if run[0]["mode"] == "execution" else "execution"
    assert check_dexi([{**run[0], "mode": other}, *run[1:]])
