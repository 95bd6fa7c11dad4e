"""Runs that fail, are interrupted, or miss events of their turn."""

from __future__ import annotations

import pytest

from footlights.errors import InvalidEvent
from footlights.events import (
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    InterruptReason,
    Issue,
    ModelLoading,
    ModelReady,
    ModelSelected,
    Payload,
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
    WarmState,
)
from footlights_transports.views.dexi.pure.events import to_json
from footlights_transports.views.dexi.pure.narration import Narrator
from tests.kit.views.dexi_kit import (
    CHAT,
    EXECUTION,
    FOUND,
    HOT,
    OK,
    PREPARED,
    REFUSED,
    RUN,
    STARTED,
    TOOLS,
    core_events,
    lawful,
    output,
    run_of,
    told,
    types,
)


def test_a_tool_error_fails_the_step_and_the_run_continues() -> None:
    refused = ToolCallResult("call-1", "search_documents", False, error=ErrorInfo("no_index", "My secret is 4711."))
    run = run_of(*HOT, STARTED, refused, TokenDelta("Sorry.", 0), TurnFinal("Sorry."), OK)
    assert told(run)[8:] == [
        ("tool_result", "step-2", "search_documents", "The tool failed: no_index.", False),
        ("narration_delta", "step-2", "Search documents failed."),
        ("step_end", "step-2", "failed"),
        ("output_delta", "Sorry."),
        ("summary", "The run is completed. Not done: Search documents (failed). Steps: 1 completed, 1 failed."),
        ("done", "completed"),
    ]


AWAY = ErrorInfo("model_unreachable", "127.0.0.1:9 cannot be reached (ConnectError).")
WHY = f"Why ({AWAY.code}): {AWAY.message}"


@pytest.mark.shows("narration-87")
def test_the_step_that_fails_and_the_summary_say_why() -> None:
    cut = TurnInterrupted(InterruptReason.MODEL_ERROR, AWAY.code, error=AWAY)
    assert told(run_of(*HOT, cut, REFUSED))[4:] == [
        ("narration_delta", "step-1", WHY),
        ("step_end", "step-1", "failed"),
        ("summary", f"The run failed, and nothing was committed. {WHY} No tool was run. Steps: 1 failed."),
        ("done", "failed"),
    ]


def test_a_chat_that_fails_ends_with_the_reason() -> None:
    cut = TurnInterrupted(InterruptReason.MODEL_ERROR, AWAY.code, error=AWAY)
    assert output(run_of(*HOT, cut, REFUSED, decision=CHAT)) == f"There is no whole answer. {WHY}"
    begun = run_of(*HOT, TokenDelta("We", 0), cut, REFUSED, decision=CHAT)
    assert output(begun) == f"We\n\nThere is no whole answer. {WHY}"


def test_a_model_that_is_replaced_failed_its_step_and_the_next_says_why() -> None:
    instead = ModelSelected("script", "fallback", AWAY)
    run = run_of(*HOT, instead, ModelReady("script", WarmState.HOT, 0), TokenDelta("Yes.", 0), TurnFinal("Yes."), OK)
    assert told(run)[4:8] == [
        ("step_end", "step-1", "failed"),
        ("step_start", "step-2", "Ask a model"),
        ("narration_delta", "step-2", f"The model script was selected in place of another. {WHY}"),
        ("step_end", "step-2", "completed"),
    ]
    assert told(run)[-1] == ("done", "completed")


def test_a_tool_crash_fails_the_step_and_the_run() -> None:
    crashed = ToolCallResult("call-1", "search_documents", False, error=ErrorInfo("tool_error", "The tool failed."))
    run = run_of(*HOT, STARTED, crashed, TurnInterrupted(InterruptReason.TOOL_ERROR), REFUSED)
    assert told(run)[8:] == [
        ("tool_result", "step-2", "search_documents", "The tool failed: tool_error.", False),
        ("narration_delta", "step-2", "Search documents failed."),
        ("step_end", "step-2", "failed"),
        (
            "summary",
            f"The run failed, and nothing was committed. {UNDONE} Steps: 1 completed, 1 failed.",
        ),
        ("done", "failed"),
    ]


@pytest.mark.shows("narration-121")
@pytest.mark.parametrize(
    ("effects", "told_of_them"), [(True, "it may have had side effects"), (False, "it had no side effects")]
)
def test_a_cancel_ends_the_step_and_sends_the_text_so_far(effects: bool, told_of_them: str) -> None:
    canceled = ToolCallResult("call-1", "search_documents", canceled=True, side_effects_may_have_occurred=effects)
    run = run_of(
        *HOT, STARTED, TokenDelta("Wait", 0), canceled, TurnInterrupted(InterruptReason.CANCELED), REFUSED
    )  # fmt: skip
    assert told(run)[8:] == [
        ("tool_result", "step-2", "search_documents", f"The tool was canceled; {told_of_them}.", False),
        ("narration_delta", "step-2", "Search documents was canceled."),
        ("step_end", "step-2", "canceled"),
        ("output_delta", "Wait"),
        (
            "summary",
            (
                "The run was canceled, and nothing was committed. "
                "Not done: Search documents (was canceled). Steps: 1 completed, 1 canceled."
            ),
        ),
        ("done", "canceled"),
    ]


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        (InterruptReason.CANCELED, "canceled"),
        (InterruptReason.BARGE_IN, "canceled"),
        (InterruptReason.SESSION_CLOSED, "canceled"),
        (InterruptReason.SHUTDOWN, "canceled"),
        (InterruptReason.MODEL_ERROR, "failed"),
        (InterruptReason.TOOL_ERROR, "failed"),
        (InterruptReason.WORKLOAD_ERROR, "failed"),
        (InterruptReason.TIMEOUT, "failed"),
        (InterruptReason.STALLED, "failed"),
        (InterruptReason.RUNTIME_RESTART, "failed"),
    ],
)
def test_an_interruption_while_a_model_loads_ends_its_step(reason: InterruptReason, outcome: str) -> None:
    run = run_of(ModelSelected("odo", "default"), ModelLoading("odo", True), TurnInterrupted(reason), REFUSED)
    assert told(run)[4] == ("step_end", "step-1", outcome)
    assert told(run)[-1] == ("done", outcome)
    queued = run_of(TurnAccepted(1), TurnInterrupted(reason), REFUSED)
    assert told(queued)[3] == ("step_end", "step-1", outcome)


@pytest.mark.shows("narration-87")
def test_a_refused_commit_fails_the_run() -> None:
    refused = CommitFinal("0" * 64, CommitOutcome.FAIL_CLOSED, (Issue("no_money", "The purse is empty."),))
    run = run_of(*HOT, TokenDelta("Sold!", 0), TurnFinal("Sold!"), refused)
    why = "Why (no_money): The purse is empty."
    assert told(run)[-3:] == [
        ("output_delta", "Sold!"),
        ("summary", f"The run failed, and nothing was committed. {why} No tool was run. Steps: 1 completed."),
        ("done", "failed"),
    ]


def test_a_server_that_closes_ends_the_run_as_unknown_once() -> None:
    run = Narrator(RUN, EXECUTION, tools=TOOLS)
    sent = run.begin(0)
    for event in core_events([*HOT, STARTED, TokenDelta("Wait", 0)]):
        sent += run.take(event, 1)
    sent += run.lose_sight(2)
    assert told(lawful([to_json(event) for event in sent]))[8:] == [
        ("tool_result", "step-2", "search_documents", "The tool's result was not seen.", False),
        ("narration_delta", "step-2", "Search documents ended, and how is not known."),
        ("step_end", "step-2", "unknown"),
        ("output_delta", "Wait"),
        (
            "summary",
            (
                "The run ended, and whether it was committed is not known. "
                "Not done: Search documents (ended, and how is not known). Steps: 1 completed, 1 of unknown outcome."
            ),
        ),
        ("done", "unknown"),
    ]
    assert run.is_done
    assert run.lose_sight(3) == []


def test_nothing_follows_the_end() -> None:
    narrator = Narrator(RUN, EXECUTION, tools=TOOLS)
    narrator.begin(0)
    events = core_events([STARTED, FOUND, TurnFinal(""), OK])
    for event in events:
        narrator.take(event, 1)
    assert narrator.take(events[0], 2) == narrator.silence(9) == narrator.lose_sight(9) == []


UNDONE = "Not done: Search documents (failed)."
BROKEN_OFF = ("summary", "The run could not be told to its end, and whether it was committed is not known.")


@pytest.mark.parametrize(
    ("payloads", "end"),
    [
        ((), [("step_start", "step-1", "Prepare the answer"), ("step_end", "step-1", "failed")]),
        (HOT, [("step_end", "step-1", "failed")]),
        (
            (*HOT, STARTED, ToolCallStarted("call-2", "look"), FOUND),
            [
                ("tool_result", "step-3", "look", "The tool's result was not seen.", False),
                ("step_end", "step-3", "failed"),
            ],
        ),
    ],
)
def test_a_run_whose_narration_fails_ends_what_was_sent(
    payloads: tuple[Payload, ...], end: list[tuple[object, ...]]
) -> None:
    narrator = Narrator(RUN, EXECUTION, tools={**TOOLS, "look": "", "\ud800": ""})
    sent = narrator.begin(0)
    for event in core_events(payloads):
        sent += narrator.take(event, 1)
    with pytest.raises(InvalidEvent):
        narrator.take(core_events([ToolCallStarted("call-3", "\ud800")])[0], 1)
    run = lawful([to_json(event) for event in [*sent, *narrator.break_off(sent, 2)]])
    assert told(run)[len(sent) :] == [*end, BROKEN_OFF, ("done", "unknown")]


@pytest.mark.parametrize("reason", [InterruptReason.MODEL_ERROR, InterruptReason.STALLED, InterruptReason.TIMEOUT])
def test_a_failed_answer_has_a_failed_step(reason: InterruptReason) -> None:
    before = run_of(*HOT, TurnInterrupted(reason), REFUSED)
    assert told(before)[2:5] == [*PREPARED[:2], ("step_end", "step-1", "failed")]
    half_way = run_of(*HOT, TokenDelta("We", 0), TurnInterrupted(reason), REFUSED)
    assert told(half_way)[5:] == [
        ("output_delta", "We"),
        ("step_start", "step-2", "Prepare the answer"),
        ("step_end", "step-2", "failed"),
        ("summary", "The run failed, and nothing was committed. No tool was run. Steps: 1 completed, 1 failed."),
        ("done", "failed"),
    ]
    after_a_tool = run_of(*HOT, STARTED, FOUND, TurnInterrupted(reason), REFUSED, pauses=[0, 0, 0, 0, 3])
    assert told(after_a_tool)[-4:-2] == [
        ("step_start", "step-3", "Prepare the answer"),
        ("step_end", "step-3", "failed"),
    ]
    assert types(after_a_tool).count("step_start") == 3


# -- missed events


@pytest.mark.parametrize(
    "payloads",
    [
        (HOT[1], TokenDelta("Yes.", 0)),
        (ModelLoading("odo", True), TokenDelta("Yes.", 0)),
        (HOT[0], TokenDelta("Yes.", 0)),
        (HOT[0], ToolCallStarted("call-1", "look"), ToolCallResult("call-1", "look", False)),
        (HOT[0], HOT[0], HOT[1]),
        (FOUND,),
        (*HOT, STARTED),
    ],
)
def test_a_run_is_lawful_and_complete_after_missed_events(payloads: tuple[Payload, ...]) -> None:
    assert output(run_of(*payloads, TurnFinal("Yes."), OK)) == "Yes."


def test_a_model_that_was_replaced_without_output_ended_as_unknown() -> None:
    run = run_of(HOT[0], *HOT, TurnFinal(""), OK)
    assert [event["outcome"] for event in run if event["type"] == "step_end"] == ["unknown", "completed"]


def test_missed_text_comes_with_turn_final() -> None:
    run = run_of(*HOT, TokenDelta("One ", 0), TokenDelta("three ", 8), TurnFinal("One two three four"), OK)
    assert [event["content"] for event in run if event["type"] == "output_delta"] == ["One ", "two three four"]


def test_a_run_from_the_ledger_keeps_the_text_so_far_and_ends_open_steps_as_unknown() -> None:
    forgotten = TurnFinal("", text_forgotten=True)
    run = run_of(*HOT, TokenDelta("One ", 0), STARTED, TokenDelta("two", 4), forgotten, OK)
    assert output(run) == "One two"
    assert [event["outcome"] for event in run if event["type"] == "step_end"] == ["completed", "unknown"]
    assert told(run)[-1] == ("done", "completed")
    assert output(run_of(*HOT, TokenDelta("One ", 0), TokenDelta("three", 8), forgotten, OK)) == "One "


def test_an_interrupted_run_sends_no_text_after_a_gap() -> None:
    cut = TurnInterrupted(InterruptReason.CANCELED)
    run = run_of(*HOT, TokenDelta("One ", 0), TokenDelta("three ", 8), TokenDelta("four", 14), cut, REFUSED)
    assert output(run) == "One "
