"""Heartbeats of narrated runs."""

from __future__ import annotations

import pytest

from footlights.events import (
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
    TurnAccepted,
    TurnFinal,
)
from footlights_transports.views.dexi.pure.events import timestamp
from footlights_transports.views.dexi.pure.narration import Narrator
from tests.kit.views.dexi_kit import (
    EXECUTION,
    FOUND,
    HOT,
    OK,
    RUN,
    STARTED,
    TOOLS,
    core_events,
    run_of,
    told,
    types,
)


@pytest.mark.shows("narration-78", "narration-80")
def test_every_silence_before_the_end_of_the_answer_has_heartbeats() -> None:
    pauses = [0, 3, 3, 6, 6, 3, 30]
    run = run_of(*HOT, STARTED, FOUND, TokenDelta("So.", 0), TurnFinal("So."), OK, pauses=pauses)
    beats = [
        (event["step_id"], event.get("state", event["type"]), event["timestamp"])
        for event in run
        if event["type"] in ("heartbeat", "step_start")
    ]
    assert beats == [
        ("step-1", "step_start", timestamp(0)),
        ("step-1", "loading the model", timestamp(2.4)),
        ("step-1", "waiting for the model", timestamp(4.8)),
        ("step-2", "step_start", timestamp(6)),
        ("step-2", "waiting for the tool", timestamp(8.4)),
        ("step-2", "waiting for the tool", timestamp(10.8)),
        ("step-3", "step_start", timestamp(14.4)),
        ("step-3", "waiting for the model", timestamp(16.8)),
        ("step-4", "step_start", timestamp(20.4)),
    ]
    assert types(run)[-4:] == ["step_start", "step_end", "summary", "done"]


def test_waiting_for_a_queued_turn_is_a_step() -> None:
    run = run_of(TurnAccepted(1), *HOT, TurnFinal(""), OK, pauses=[0, 3])
    assert told(run)[2:5] == [
        ("step_start", "step-1", "Prepare the answer"),
        ("step_end", "step-1", "completed"),
        ("step_start", "step-2", "Ask a model"),
    ]


def test_a_heartbeat_names_the_step_that_began_last() -> None:
    other = ToolCallStarted("call-2", "simulate_cohort")
    last = ToolCallResult("call-2", "simulate_cohort", False)
    run = run_of(STARTED, other, last, FOUND, TurnFinal(""), OK, pauses=[0, 0, 3, 3])
    assert [event["step_id"] for event in run if event["type"] == "heartbeat"] == ["step-2", "step-1"]


def test_text_that_is_held_back_does_not_delay_heartbeats() -> None:
    words = [TokenDelta("a", at) for at in range(4)]
    run = run_of(STARTED, *words, FOUND, TurnFinal("aaaa"), OK, pauses=[0, 1, 1, 1, 1, 1])
    assert types(run).count("heartbeat") == 2


@pytest.mark.shows("narration-80", "narration-81")
def test_no_heartbeat_comes_before_it_is_due() -> None:
    run = Narrator(RUN, EXECUTION, tools=TOOLS)
    run.begin(98)
    assert run.silence(100) == []
    run.take(core_events([STARTED])[0], 100)
    assert run.heartbeat_at == 102.4
    assert run.silence(102.3) == []
    assert [event.type for event in run.silence(102.4)] == ["heartbeat"]
    assert run.heartbeat_at == pytest.approx(104.8)
