"""The Dexi dialect: whole runs, event by event."""

from __future__ import annotations

import pytest

from footlights.errors import InvalidEvent
from footlights.events import (
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    Ext,
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
from footlights.modes import Confirmation, ExecutionPolicy
from footlights.redaction.redactor import Redactor, SecretPattern
from footlights_transports.views.dexi.pure.events import timestamp, to_json
from footlights_transports.views.dexi.pure.narration import Narrator, broken_end
from tests.kit.views.dexi_kit import (
    CHAT,
    EXECUTION,
    OK,
    REFUSED,
    RUN,
    core_events,
    decided,
    lawful,
    output,
    run_of,
    told,
    types,
)

HOT = (ModelSelected("odo", "default"), ModelReady("odo", WarmState.HOT, 0))
STARTED = ToolCallStarted("call-1", "search_documents")
FOUND = ToolCallResult("call-1", "search_documents", canceled=False, summary="Two documents were found.")
PLAN = ("plan_narrative", "The agent will search, and then answer. Each tool that is run is shown as a step.")
PREPARED = [
    ("step_start", "step-1", "Ask a model"),
    ("narration_delta", "step-1", "The model odo was selected."),
    ("step_end", "step-1", "completed"),
]
SEARCHING = [
    ("step_start", "step-2", "Search documents"),
    ("tool_start", "step-2", "search_documents", "To find what the request asks about."),
    ("narration_delta", "step-2", "Search documents was requested."),
]


def artifacts(read: object = (), generated: object = ()) -> Ext:
    return Ext("ext.footlights.artifacts", {"read": list(read), "generated": list(generated)})  # type: ignore[call-overload]


# -- chat


def test_a_chat_is_its_mode_its_words_and_its_end() -> None:
    run = run_of(
        TurnAccepted(), *HOT, TokenDelta("Good ", 0), TokenDelta("evening.", 5), TurnFinal("Good evening."), OK,
        decision=CHAT,
    )  # fmt: skip
    assert told(run) == [
        ("mode", "chat"),
        ("output_delta", "Good "),
        ("output_delta", "evening."),
        ("done", "completed"),
    ]
    assert [event["run_id"] for event in run if "run_id" in event] == [RUN, RUN]


def test_a_chat_shows_nothing_of_tools_or_silence() -> None:
    run = run_of(STARTED, FOUND, TokenDelta("Well.", 0), TurnFinal("Well."), OK, decision=CHAT, pauses=[20] * 5)
    assert types(run) == ["mode", "output_delta", "done"]


@pytest.mark.parametrize(
    ("confirmation", "question"),
    [
        (None, ""),
        (Confirmation.AMBIGUOUS, " Should it be run, or only talked about?"),
        (Confirmation.DESTRUCTIVE, " It may change or remove what is there. Should it be run?"),
        (Confirmation.DIFFERENT_PATHS, " There is more than one way to run it. Which one should be taken?"),
    ],
)
def test_execution_that_is_denied_is_explained_and_only_three_cases_ask(
    confirmation: Confirmation | None, question: str
) -> None:
    denied = decided(ExecutionPolicy.DENY, ["search", "simulate", "search"], confirmation)
    run = run_of(*HOT, TokenDelta("I can explain it.", 0), TurnFinal("I can explain it."), OK, decision=denied)
    either = "or" if confirmation is Confirmation.DIFFERENT_PATHS else "and"
    explanation = (
        f"This request asks to search {either} simulate. Nothing was run, because that is not authorized here. "
        f'To run it, send it with "execution_policy": "auto".{question}\n\n'
    )
    assert told(run) == [
        ("mode", "chat"),
        ("output_delta", explanation),
        ("output_delta", "I can explain it."),
        ("done", "completed"),
    ]
    assert ("?" in run[1]["content"]) is (confirmation is not None)


def test_denied_execution_of_no_named_kind_is_explained_too() -> None:
    for activities in (["unnamed"], ["tool"], ["delete"], ["change"]):
        run = run_of(TurnFinal(""), OK, decision=decided(ExecutionPolicy.DENY, activities))
        assert "Nothing was run" in run[1]["content"]
        assert "unnamed" not in run[1]["content"]


def test_small_talk_is_never_lectured_about_execution() -> None:
    run = run_of(TokenDelta("Hm.", 0), TurnFinal("Hm."), OK, decision=decided(ExecutionPolicy.DENY, []))
    assert output(run) == "Hm."


# -- execution


def test_a_run_with_a_tool_has_a_plan_steps_output_a_summary_and_an_end() -> None:
    run = run_of(
        TurnAccepted(), *HOT, TokenDelta("Let me look. ", 0), STARTED, FOUND, TokenDelta("Here.", 13),
        TurnFinal("Let me look. Here."), OK,
    )  # fmt: skip
    assert told(run) == [
        ("mode", "execution"),
        PLAN,
        *PREPARED,
        ("output_delta", "Let me look. "),
        *SEARCHING,
        ("tool_result", "step-2", "search_documents", "Two documents were found.", False),
        ("narration_delta", "step-2", "Search documents finished."),
        ("step_end", "step-2", "completed"),
        ("output_delta", "Here."),
        ("summary", "The run is completed. Steps: 2 completed."),
        ("done", "completed"),
    ]


def test_a_turn_without_tools_has_one_step_from_selection_to_its_first_word() -> None:
    cold = (ModelSelected("odo", "default"), ModelLoading("odo", True), ModelLoading("odo", True, 0.5))
    run = run_of(*cold, ModelReady("odo", WarmState.COLD, 900), TokenDelta("Yes.", 0), TurnFinal("Yes."), OK)
    assert told(run)[2:] == [
        *PREPARED,
        ("output_delta", "Yes."),
        ("summary", "The run is completed. Steps: 1 completed."),
        ("done", "completed"),
    ]


def test_forced_small_talk_still_has_a_plan_and_a_step() -> None:
    run = run_of(
        *HOT, TokenDelta("Hi.", 0), TurnFinal("Hi."), OK, decision=decided(ExecutionPolicy.FORCE, []), agent="analyst"
    )
    assert told(run)[:2] == [
        ("mode", "execution"),
        ("plan_narrative", "analyst will prepare an answer. If a tool is run, it is shown as a step."),
    ]
    assert types(run).count("step_start") == 1


def test_a_turn_that_needs_no_model_has_a_step_too() -> None:
    run = run_of(TokenDelta("Hi.", 0), TokenDelta(" You.", 3), TurnFinal("Hi. You."), OK)
    assert told(run)[2:5] == [
        ("step_start", "step-1", "Prepare the answer"),
        ("step_end", "step-1", "completed"),
        ("output_delta", "Hi."),
    ]
    silent = run_of(TurnFinal(""), OK)
    assert types(silent) == ["mode", "plan_narrative", "step_start", "step_end", "summary", "done"]


def test_a_plan_names_what_will_be_done_in_words() -> None:
    plans = {
        activities: run_of(TurnFinal(""), OK, decision=decided(activities=activities))[1]["content"]
        for activities in [("search", "simulate", "evaluate"), ("tool",), ("divine",)]
    }
    end = ", and then answer. Each tool that is run is shown as a step."
    assert plans == {
        ("search", "simulate", "evaluate"): f"The agent will search, simulate and evaluate{end}",
        ("tool",): f"The agent will use a tool{end}",
        ("divine",): f"The agent will divine{end}",
    }


@pytest.mark.parametrize(
    ("activities", "plan"),
    [
        (
            ["search", "simulate"],
            PLAN[1].replace("search,", "search or simulate, whichever is chosen,"),
        ),
        ([], "The agent will prepare an answer. If a tool is run, it is shown as a step."),
    ],
)
def test_a_plan_says_that_there_are_different_paths(activities: list[str], plan: str) -> None:
    decision = decided(ExecutionPolicy.FORCE, activities, Confirmation.DIFFERENT_PATHS)
    assert run_of(TurnFinal(""), OK, decision=decision)[1]["content"] == plan


def test_of_a_tool_that_does_not_exist_nothing_is_shown_that_a_model_came_up_with() -> None:
    prose = "I think the user secretly wants to search"
    refused = ToolCallResult("call-1", prose, False, error=ErrorInfo("unknown_tool", "There is no such tool."))
    run = run_of(*HOT, ToolCallStarted("call-1", prose), refused, TurnFinal(""), OK, tools=["search_documents"])
    assert told(run)[5:11] == [
        ("step_start", "step-2", "Unknown tool"),
        ("tool_start", "step-2", "unknown_tool", "There is no such tool."),
        ("narration_delta", "step-2", "Unknown tool was requested."),
        ("tool_result", "step-2", "unknown_tool", "The tool failed: unknown_tool.", False),
        ("narration_delta", "step-2", "Unknown tool failed."),
        ("step_end", "step-2", "failed"),
    ]
    assert "secretly" not in str(run)


def test_artifacts_are_told_inside_their_step_before_the_result() -> None:
    ext = artifacts(
        read=[{"kind": "document", "identifier": "inn.md"}, {"kind": "document", "identifier": "moor.md"}],
        generated=[{"kind": "cohort", "identifier": "blake3:00", "summary": "200 people."}],
    )
    run = run_of(*HOT, STARTED, ToolCallResult("call-1", "search_documents", False, ext=ext), TurnFinal(""), OK)
    assert told(run)[8:] == [
        ("artifact_read", "step-2", "document", "inn.md"),
        ("artifact_read", "step-2", "document", "moor.md"),
        ("artifact_generated", "step-2", "cohort", "blake3:00", "200 people."),
        ("tool_result", "step-2", "search_documents", "The tool finished.", False),
        ("narration_delta", "step-2", "Search documents finished. Artifacts: 2 read, 1 generated."),
        ("step_end", "step-2", "completed"),
        ("summary", "The run is completed. Steps: 2 completed. Artifacts: 2 read, 1 generated."),
        ("done", "completed"),
    ]


@pytest.mark.parametrize(
    "ext",
    [
        None,
        Ext("ext.acme.artifacts", {"read": [{"kind": "document", "identifier": "a"}]}),
        Ext("ext.footlights.artifacts", "words"),
        Ext("ext.footlights.artifacts", {"read": "words", "generated": 7}),
        Ext("ext.footlights.artifacts", {"read": ["words", {"kind": 1, "identifier": "a"}, {"kind": "document"}]}),
    ],
)
def test_what_is_no_note_of_an_artifact_is_passed_over(ext: Ext | None) -> None:
    run = run_of(STARTED, ToolCallResult("call-1", "search_documents", False, ext=ext), TurnFinal(""), OK)
    assert not {"artifact_read", "artifact_generated"} & set(types(run))


def test_tools_side_by_side_have_overlapping_steps_and_hold_the_words_back() -> None:
    run = run_of(
        *HOT,
        STARTED,
        ToolCallStarted("call-2", "simulate_cohort"),
        TokenDelta("Both.", 0),
        FOUND,
        TokenDelta(" Done?", 5),
        ToolCallResult("call-2", "simulate_cohort", canceled=False, summary="Ran."),
        TurnFinal("Both. Done?"),
        OK,
    )
    assert [(event["type"], event["step_id"]) for event in run[5:] if "step_id" in event] == [
        ("step_start", "step-2"),
        ("tool_start", "step-2"),
        ("narration_delta", "step-2"),
        ("step_start", "step-3"),
        ("tool_start", "step-3"),
        ("narration_delta", "step-3"),
        ("tool_result", "step-2"),
        ("narration_delta", "step-2"),
        ("step_end", "step-2"),
        ("tool_result", "step-3"),
        ("narration_delta", "step-3"),
        ("step_end", "step-3"),
    ]
    assert told(run)[-3] == ("output_delta", "Both. Done?")


# -- what goes wrong


def test_a_tool_that_refuses_fails_its_step_and_the_run_goes_on() -> None:
    refused = ToolCallResult("call-1", "search_documents", False, error=ErrorInfo("no_index", "My secret is 4711."))
    run = run_of(*HOT, STARTED, refused, TokenDelta("Sorry.", 0), TurnFinal("Sorry."), OK)
    assert told(run)[8:] == [
        ("tool_result", "step-2", "search_documents", "The tool failed: no_index.", False),
        ("narration_delta", "step-2", "Search documents failed."),
        ("step_end", "step-2", "failed"),
        ("output_delta", "Sorry."),
        ("summary", "The run is completed. Steps: 1 completed, 1 failed."),
        ("done", "completed"),
    ]


def test_a_tool_that_crashes_fails_its_step_and_the_run() -> None:
    crashed = ToolCallResult("call-1", "search_documents", False, error=ErrorInfo("tool_error", "The tool failed."))
    run = run_of(*HOT, STARTED, crashed, TurnInterrupted(InterruptReason.TOOL_ERROR), REFUSED)
    assert told(run)[8:] == [
        ("tool_result", "step-2", "search_documents", "The tool failed: tool_error.", False),
        ("narration_delta", "step-2", "Search documents failed."),
        ("step_end", "step-2", "failed"),
        ("summary", "The run failed, and nothing was committed. Steps: 1 completed, 1 failed."),
        ("done", "failed"),
    ]


@pytest.mark.parametrize(
    ("effects", "told_of_them"), [(True, "it may have had side effects"), (False, "it had no side effects")]
)
def test_a_cancel_closes_the_step_and_keeps_what_was_said(effects: bool, told_of_them: str) -> None:
    canceled = ToolCallResult("call-1", "search_documents", canceled=True, side_effects_may_have_occurred=effects)
    run = run_of(
        *HOT, STARTED, TokenDelta("Wait", 0), canceled, TurnInterrupted(InterruptReason.CANCELED), REFUSED
    )  # fmt: skip
    assert told(run)[8:] == [
        ("tool_result", "step-2", "search_documents", f"The tool was canceled; {told_of_them}.", False),
        ("narration_delta", "step-2", "Search documents was canceled."),
        ("step_end", "step-2", "canceled"),
        ("output_delta", "Wait"),
        ("summary", "The run was canceled, and nothing was committed. Steps: 1 completed, 1 canceled."),
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


def test_what_the_authority_refuses_has_failed() -> None:
    refused = CommitFinal("0" * 64, CommitOutcome.FAIL_CLOSED, (Issue("no_money", "The purse is empty."),))
    run = run_of(*HOT, TokenDelta("Sold!", 0), TurnFinal("Sold!"), refused)
    assert told(run)[-3:] == [
        ("output_delta", "Sold!"),
        ("summary", "The run failed, and nothing was committed. Steps: 1 completed."),
        ("done", "failed"),
    ]


def test_a_server_that_closes_without_knowing_says_so_once() -> None:
    run = Narrator(RUN, EXECUTION)
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
            "The run ended, and whether it was committed is not known. Steps: 1 completed, 1 of unknown outcome.",
        ),
        ("done", "unknown"),
    ]
    assert run.is_done
    assert run.lose_sight(3) == []


def test_nothing_follows_the_end() -> None:
    narrator = Narrator(RUN, EXECUTION)
    narrator.begin(0)
    events = core_events([STARTED, FOUND, TurnFinal(""), OK])
    for event in events:
        narrator.take(event, 1)
    assert narrator.take(events[0], 2) == narrator.silence(9) == narrator.lose_sight(9) == []


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
    narrator = Narrator(RUN, EXECUTION)
    sent = narrator.begin(0)
    for event in core_events(payloads):
        sent += narrator.take(event, 1)
    with pytest.raises(InvalidEvent):
        narrator.take(core_events([ToolCallStarted("call-3", "\ud800")])[0], 1)
    run = lawful([to_json(event) for event in [*sent, *broken_end(RUN, sent, 2)]])
    assert told(run)[len(sent) :] == [*end, BROKEN_OFF, ("done", "unknown")]


@pytest.mark.parametrize("reason", [InterruptReason.MODEL_ERROR, InterruptReason.STALLED, InterruptReason.TIMEOUT])
def test_when_the_answer_fails_there_is_a_step_that_failed(reason: InterruptReason) -> None:
    before = run_of(*HOT, TurnInterrupted(reason), REFUSED)
    assert told(before)[2:5] == [*PREPARED[:2], ("step_end", "step-1", "failed")]
    half_way = run_of(*HOT, TokenDelta("We", 0), TurnInterrupted(reason), REFUSED)
    assert told(half_way)[5:] == [
        ("output_delta", "We"),
        ("step_start", "step-2", "Prepare the answer"),
        ("step_end", "step-2", "failed"),
        ("summary", "The run failed, and nothing was committed. Steps: 1 completed, 1 failed."),
        ("done", "failed"),
    ]
    after_a_tool = run_of(*HOT, STARTED, FOUND, TurnInterrupted(reason), REFUSED, pauses=[0, 0, 0, 0, 3])
    assert told(after_a_tool)[-4:-2] == [
        ("step_start", "step-3", "Prepare the answer"),
        ("step_end", "step-3", "failed"),
    ]
    assert types(after_a_tool).count("step_start") == 3


# -- what was missed


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
def test_a_run_is_lawful_and_whole_whatever_was_missed(payloads: tuple[Payload, ...]) -> None:
    assert output(run_of(*payloads, TurnFinal("Yes."), OK)) == "Yes."


def test_a_model_that_another_one_followed_without_a_word_ended_nobody_knows_how() -> None:
    run = run_of(HOT[0], *HOT, TurnFinal(""), OK)
    assert [event["outcome"] for event in run if event["type"] == "step_end"] == ["unknown", "completed"]


def test_words_that_were_missed_come_with_the_final_text() -> None:
    run = run_of(*HOT, TokenDelta("One ", 0), TokenDelta("three ", 8), TurnFinal("One two three four"), OK)
    assert [event["content"] for event in run if event["type"] == "output_delta"] == ["One ", "two three four"]


def test_a_run_whose_words_are_forgotten_keeps_those_that_came_and_knows_no_more_of_its_steps() -> None:
    forgotten = TurnFinal("", text_forgotten=True)
    run = run_of(*HOT, TokenDelta("One ", 0), STARTED, TokenDelta("two", 4), forgotten, OK)
    assert output(run) == "One two"
    assert [event["outcome"] for event in run if event["type"] == "step_end"] == ["completed", "unknown"]
    assert told(run)[-1] == ("done", "completed")
    assert output(run_of(*HOT, TokenDelta("One ", 0), TokenDelta("three", 8), forgotten, OK)) == "One "


def test_after_a_hole_an_interrupted_run_says_nothing_that_would_read_wrong() -> None:
    cut = TurnInterrupted(InterruptReason.CANCELED)
    run = run_of(*HOT, TokenDelta("One ", 0), TokenDelta("three ", 8), TokenDelta("four", 14), cut, REFUSED)
    assert output(run) == "One "


# -- silence


def test_every_silence_before_the_end_of_the_answer_is_filled() -> None:
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


def test_waiting_for_a_turn_that_is_queued_is_a_step_of_its_own() -> None:
    run = run_of(TurnAccepted(1), *HOT, TurnFinal(""), OK, pauses=[0, 3])
    assert told(run)[2:5] == [
        ("step_start", "step-1", "Prepare the answer"),
        ("step_end", "step-1", "completed"),
        ("step_start", "step-2", "Ask a model"),
    ]


def test_a_heartbeat_speaks_for_the_step_that_began_last() -> None:
    other = ToolCallStarted("call-2", "simulate_cohort")
    last = ToolCallResult("call-2", "simulate_cohort", False)
    run = run_of(STARTED, other, last, FOUND, TurnFinal(""), OK, pauses=[0, 0, 3, 3])
    assert [event["step_id"] for event in run if event["type"] == "heartbeat"] == ["step-2", "step-1"]


def test_words_that_are_held_back_do_not_count_as_sent() -> None:
    words = [TokenDelta("a", at) for at in range(4)]
    run = run_of(STARTED, *words, FOUND, TurnFinal("aaaa"), OK, pauses=[0, 1, 1, 1, 1, 1])
    assert types(run).count("heartbeat") == 2


def test_there_is_no_heartbeat_before_it_is_due() -> None:
    run = Narrator(RUN, EXECUTION)
    run.begin(98)
    assert run.silence(100) == []
    run.take(core_events([STARTED])[0], 100)
    assert run.heartbeat_at == 102.4
    assert run.silence(102.3) == []
    assert [event.type for event in run.silence(102.4)] == ["heartbeat"]
    assert run.heartbeat_at == pytest.approx(104.8)


# -- redaction

KEY = "sk-abcdefghijklmnopqrstuvwxyz123456"


def test_a_secret_in_a_result_is_blotted_out_and_the_event_says_so() -> None:
    leaked = ToolCallResult("call-1", "search_documents", False, summary=f"The key is {KEY}.")
    run = run_of(*HOT, STARTED, leaked, TurnFinal(""), OK)
    (result,) = [event for event in run if event["type"] == "tool_result"]
    assert result["redactions_applied"] is True
    assert "[redacted]" in result["summary"]
    assert KEY not in str(run)


def test_a_secret_anywhere_but_in_the_answer_is_blotted_out() -> None:
    ext = artifacts(
        read=[{"kind": "document", "identifier": "ann@example.org/inn.md"}],
        generated=[{"kind": "cohort", "identifier": "blake3:00", "summary": f"Made with {KEY}."}],
    )
    run = run_of(
        ModelSelected("ann@example.org", "default"),
        ToolCallStarted("call-1", KEY),
        ToolCallResult("call-1", KEY, False, summary="Done.", ext=ext),
        TurnFinal(""),
        OK,
        agent="bob@example.org",
    )
    assert KEY not in str(run)
    assert "example.org" not in str(run)
    (result,) = [event for event in run if event["type"] == "tool_result"]
    assert result["redactions_applied"] is True
    assert "blake3:00" in str(run)


def test_what_a_tool_has_taken_out_itself_is_told_too() -> None:
    result = ToolCallResult("call-1", "search_documents", False, summary="2 found, 1 shown with parts [redacted]")
    [told_of] = [event for event in run_of(STARTED, result, TurnFinal(""), OK) if event["type"] == "tool_result"]
    assert (told_of["summary"], told_of["redactions_applied"]) == ("2 found, 1 shown with parts [redacted]", True)


def test_a_host_may_have_secrets_of_its_own() -> None:
    redactor = Redactor(patterns=[SecretPattern("the password", "swordfish")])
    leaked = ToolCallResult("call-1", "search_documents", False, summary="Say swordfish.")
    run = run_of(STARTED, leaked, TurnFinal(""), OK, redactor=redactor)
    assert "swordfish" not in str(run)


@pytest.mark.parametrize("failure", [RuntimeError, SystemExit])
def test_what_a_host_s_redactor_fails_for_is_not_shown(failure: type[BaseException]) -> None:
    def check(found: str) -> bool:
        raise failure(found)

    redactor = Redactor(patterns=[SecretPattern("the password", "swordfish", check)])
    leaked = ToolCallResult("call-1", "search_documents", False, summary="Say swordfish.")
    run = run_of(STARTED, leaked, TurnFinal(""), OK, redactor=redactor)
    (result,) = [event for event in run if event["type"] == "tool_result"]
    assert (result["summary"], result["redactions_applied"]) == ("[redacted]", True)


def test_the_answer_is_the_turn_s_own_text() -> None:
    assert output(run_of(*HOT, TokenDelta(KEY, 0), TurnFinal(KEY), OK)) == KEY


# -- the check


def test_events_are_held_to_their_schema_unless_that_is_switched_off() -> None:
    half_a_pair = core_events([*HOT, TurnFinal("\ud800")])
    for checked in (True, False):
        run = Narrator(RUN, EXECUTION, checked=checked)
        run.begin(0)
        for event in half_a_pair[:-1]:
            run.take(event, 0)
        if checked:
            with pytest.raises(InvalidEvent, match="lone surrogates"):
                run.take(half_a_pair[-1], 0)
        else:
            assert [event.type for event in run.take(half_a_pair[-1], 0)] == ["step_end", "output_delta"]
