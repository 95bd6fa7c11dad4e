"""The lifecycle does what its table says, whatever the step, and nothing else."""

from __future__ import annotations

from collections import deque
from typing import TypeAlias

import pytest

from footlights.errors import IllegalTransition
from footlights.events import EventType
from footlights.turn.lifecycle import TRANSITIONS, Lifecycle, Step, TurnState, diagram

TERMINALS = {Step.TURN_INTERRUPTED: TurnState.INTERRUPTED, Step.TURN_FINAL: TurnState.FINAL}
Counts: TypeAlias = tuple[TurnState, int, int]
"""A state, and how many terminals and commits lie behind."""


def lifecycle_in(state: TurnState) -> Lifecycle:
    lifecycle = Lifecycle()
    lifecycle.state = state
    return lifecycle


def using(*tool_call_ids: str) -> Lifecycle:
    lifecycle = lifecycle_in(TurnState.RUNNING)
    for tool_call_id in tool_call_ids:
        lifecycle.start_tool(tool_call_id, "rent_room")
    return lifecycle


def reachable(start: TurnState) -> set[TurnState]:
    found = {start}
    ahead = deque(found)
    while ahead:
        following = set(TRANSITIONS[ahead.popleft()].values()) - found
        found |= following
        ahead.extend(following)
    return found


# -- the table


@pytest.mark.parametrize("state", TurnState)
@pytest.mark.parametrize("step", Step)
def test_a_step_moves_as_the_table_says_or_raises_and_changes_nothing(state: TurnState, step: Step) -> None:
    lifecycle = lifecycle_in(state)
    target = TRANSITIONS[state].get(step)
    assert lifecycle.may(step) is (target is not None)
    if target is None:
        with pytest.raises(IllegalTransition, match=rf"{state} .* {step}"):
            lifecycle.advance(step)
    else:
        lifecycle.advance(step)
    assert lifecycle.state is (target or state)
    assert lifecycle.open_tools == {}


def test_the_table_knows_every_state_and_every_step() -> None:
    assert set(TRANSITIONS) == set(TurnState)
    assert {step for steps in TRANSITIONS.values() for step in steps} == set(Step)


def test_every_event_type_is_a_step() -> None:
    assert {each.value for each in EventType} == {each.value for each in Step} - {
        "run",
        "stop",
        "last_tool_call_result",
        "lose_sight",
        "model_fallback",
    }


def test_every_state_can_be_reached() -> None:
    assert reachable(TurnState.NEW) == set(TurnState)


@pytest.mark.parametrize("state", TurnState)
def test_no_state_is_dead(state: TurnState) -> None:
    assert reachable(state) & {TurnState.COMMITTED, TurnState.IN_DOUBT}


@pytest.mark.shows("core-31")
def test_every_path_from_acceptance_has_one_terminal_and_then_one_commit() -> None:
    """A search of every way through the table, told apart by what lies behind."""
    begin: Counts = (TurnState.ACCEPTED, 0, 0)
    found = {begin}
    ahead = deque(found)
    while ahead:
        state, terminals, commits = ahead.popleft()
        for step, target in TRANSITIONS[state].items():
            following = (target, terminals + (step in TERMINALS), commits + (step is Step.COMMIT_FINAL))
            assert following[2] <= following[1] <= 1, f"{step} in {state}"
            if following not in found:
                found.add(following)
                ahead.append(following)
    ends = {each for each in found if not TRANSITIONS[each[0]]}
    assert ends == {(TurnState.COMMITTED, 1, 1), (TurnState.IN_DOUBT, 1, 0)}


@pytest.mark.shows("core-33")
@pytest.mark.parametrize(("terminal", "state"), TERMINALS.items())
def test_nothing_but_the_commit_follows_a_terminal(terminal: Step, state: TurnState) -> None:
    assert all(steps[terminal] is state for steps in TRANSITIONS.values() if terminal in steps)
    assert TRANSITIONS[state] == {Step.COMMIT_FINAL: TurnState.COMMITTED, Step.LOSE_SIGHT: TurnState.IN_DOUBT}


def test_a_turn_can_be_stopped_until_its_end_is_decided() -> None:
    stoppable = {state for state, steps in TRANSITIONS.items() if Step.STOP in steps}
    decided = reachable(TurnState.STOPPING) | reachable(TurnState.FINAL)
    assert stoppable == set(TurnState) - decided - {TurnState.NEW}


def test_a_stopped_turn_says_nothing_more_of_its_own() -> None:
    ahead = reachable(TurnState.STOPPING)
    allowed = {Step.TOOL_CALL_RESULT, Step.LAST_TOOL_CALL_RESULT, Step.TURN_INTERRUPTED, Step.COMMIT_FINAL}
    assert {step for state in ahead for step in TRANSITIONS[state]} == allowed | {Step.LOSE_SIGHT}


def test_a_turn_cannot_be_final_while_something_is_unfinished() -> None:
    finishing = {state for state, steps in TRANSITIONS.items() if Step.TURN_FINAL in steps}
    assert finishing == {TurnState.RUNNING, TurnState.READY, TurnState.PERFORMING}


def test_a_model_is_replaced_only_until_it_has_said_or_done_something() -> None:
    falling = {state for state, steps in TRANSITIONS.items() if Step.MODEL_FALLBACK in steps}
    assert falling == {TurnState.RUNNING, TurnState.SELECTED, TurnState.LOADING, TurnState.READY}
    assert {TRANSITIONS[state][Step.MODEL_FALLBACK] for state in falling} == {TurnState.SELECTED}
    begun = {TRANSITIONS[TurnState.READY][step] for step in (Step.TOKEN_DELTA, Step.TOOL_CALL_STARTED)}
    assert not begun & falling


# -- tools


def test_only_the_last_tool_to_end_lets_the_turn_go_on() -> None:
    lifecycle = using("c1", "c2")
    assert lifecycle.open_tools == {"c1": "rent_room", "c2": "rent_room"}
    lifecycle.end_tool("c1", "rent_room")
    assert (lifecycle.state, lifecycle.open_tools) == (TurnState.USING_TOOLS, {"c2": "rent_room"})
    lifecycle.end_tool("c2", "rent_room")
    assert (lifecycle.state, lifecycle.open_tools) == (TurnState.PERFORMING, {})


def test_a_stopping_turn_waits_for_every_open_tool() -> None:
    lifecycle = using("c1", "c2")
    seen: list[TurnState] = []
    lifecycle.advance(Step.STOP)
    for tool_call_id in ("c2", "c1"):
        seen.append(lifecycle.state)
        lifecycle.end_tool(tool_call_id, "rent_room")
    assert [*seen, lifecycle.state] == [TurnState.STOPPING, TurnState.STOPPING, TurnState.STOPPED]


@pytest.mark.shows("core-38")
@pytest.mark.parametrize("ended_before", [False, True])
def test_a_tool_call_id_is_used_once_in_a_turn(ended_before: bool) -> None:
    lifecycle = using("c1")
    if ended_before:
        lifecycle.end_tool("c1", "rent_room")
    before = (lifecycle.state, dict(lifecycle.open_tools))
    with pytest.raises(IllegalTransition):
        lifecycle.start_tool("c1", "light_fire")
    assert (lifecycle.state, lifecycle.open_tools) == before


@pytest.mark.shows("core-39")
@pytest.mark.parametrize(("tool_call_id", "tool_name"), [("c2", "rent_room"), ("c1", "light_fire")])
def test_a_result_must_name_an_open_call_and_its_tool(tool_call_id: str, tool_name: str) -> None:
    lifecycle = using("c1")
    with pytest.raises(IllegalTransition):
        lifecycle.end_tool(tool_call_id, tool_name)
    assert (lifecycle.state, lifecycle.open_tools) == (TurnState.USING_TOOLS, {"c1": "rent_room"})


def test_a_result_is_taken_once() -> None:
    lifecycle = using("c1")
    lifecycle.end_tool("c1", "rent_room")
    with pytest.raises(IllegalTransition):
        lifecycle.end_tool("c1", "rent_room")
    assert (lifecycle.state, lifecycle.open_tools) == (TurnState.PERFORMING, {})


@pytest.mark.parametrize("state", [state for state in TurnState if Step.TOOL_CALL_STARTED not in TRANSITIONS[state]])
def test_a_tool_refused_at_the_wrong_time_leaves_its_id_free(state: TurnState) -> None:
    lifecycle = lifecycle_in(state)
    with pytest.raises(IllegalTransition):
        lifecycle.start_tool("c1", "rent_room")
    assert (lifecycle.state, lifecycle.open_tools) == (state, {})
    lifecycle.state = TurnState.PERFORMING
    lifecycle.start_tool("c1", "rent_room")
    assert lifecycle.open_tools == {"c1": "rent_room"}


# -- the diagram


def test_the_diagram_shows_every_transition_and_no_other() -> None:
    header, start, *arrows, one_end, other_end = (line.strip() for line in diagram().splitlines())
    assert (header, start) == ("stateDiagram-v2", "[*] --> new")
    assert (one_end, other_end) == ("committed --> [*]", "in_doubt --> [*]")
    drawn: set[tuple[str, str, str]] = set()
    for arrow in arrows:
        states, _, steps = arrow.strip().partition(": ")
        source, _, target = states.partition(" --> ")
        drawn |= {(source, step, target) for step in steps.split(", ")}
    assert drawn == {
        (state.value, step.value, target.value)
        for state, steps in TRANSITIONS.items()
        for step, target in steps.items()
    }
