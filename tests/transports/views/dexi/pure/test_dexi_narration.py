"""Narration of runs: the exact events of whole turns, in chat and in execution mode."""

from __future__ import annotations

import pytest

from footlights.events import (
    ErrorInfo,
    Ext,
    ModelLoading,
    ModelReady,
    ModelSelected,
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
    TurnAccepted,
    TurnFinal,
    WarmState,
)
from footlights.modes import Confirmation, ExecutionPolicy
from tests.kit.views.dexi_kit import (
    CHAT,
    FOUND,
    HOT,
    OK,
    PREPARED,
    RUN,
    STARTED,
    artifacts,
    decided,
    output,
    run_of,
    told,
    types,
)

PLAN = ("plan_narrative", "The agent will search, with Search documents, and then answer.")
SEARCHING = [
    ("step_start", "step-2", "Search documents"),
    ("tool_start", "step-2", "search_documents", "Search the documents."),
    ("narration_delta", "step-2", "Search documents was requested."),
]


# -- chat


def test_an_answer_that_was_cut_says_so_in_the_summary_or_else_behind_the_answer() -> None:
    work = run_of(*HOT, TokenDelta("Once", 0), TurnFinal("Once", cut=True), OK)
    (summary,) = [each["content"] for each in work if each["type"] == "summary"]
    assert str(summary).endswith("The answer was cut at its limit of tokens.")
    chat = run_of(TokenDelta("Once", 0), TurnFinal("Once", cut=True), OK, decision=CHAT)
    said = [each["content"] for each in chat if each["type"] == "output_delta"]
    assert said == ["Once", "\n\n(The answer was cut at its limit of tokens.)"]


@pytest.mark.shows("narration-3", "narration-15")
def test_a_chat_has_mode_output_and_done() -> None:
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


@pytest.mark.shows("narration-16", "narration-17", "narration-18", "narration-19", "narration-20", "narration-21")
def test_a_chat_shows_no_tools_and_no_heartbeats() -> None:
    run = run_of(STARTED, FOUND, TokenDelta("Well.", 0), TurnFinal("Well."), OK, decision=CHAT, pauses=[20] * 5)
    assert types(run) == ["mode", "output_delta", "done"]


@pytest.mark.shows("narration-49", "narration-96")
@pytest.mark.parametrize(
    ("confirmation", "question"),
    [
        (None, ""),
        (Confirmation.AMBIGUOUS, " What should I work on?"),
        (Confirmation.DESTRUCTIVE, " It would delete or replace what is kept. Shall I?"),
        (Confirmation.DIFFERENT_PATHS, " Which of them shall it be?"),
    ],
)
def test_denied_execution_is_explained_and_asks_only_for_a_recorded_reason(
    confirmation: Confirmation | None, question: str
) -> None:
    denied = decided(ExecutionPolicy.DENY, ["search", "simulate", "search"], confirmation)
    run = run_of(*HOT, TokenDelta("I can explain it.", 0), TurnFinal("I can explain it."), OK, decision=denied)
    could = "search the documents or simulate how many people keep to a habit"
    explanation = f"I have not run anything. I can {could} if you allow it.{question}\n\n"
    assert told(run) == [
        ("mode", "chat"),
        ("output_delta", explanation),
        ("output_delta", "I can explain it."),
        ("done", "completed"),
    ]
    assert ("?" in run[1]["content"]) is (confirmation is not None)


def test_denied_execution_without_a_named_activity_is_explained_too() -> None:
    for activities in (["unnamed"], ["tool"], ["delete"], ["change"]):
        run = run_of(TurnFinal(""), OK, decision=decided(ExecutionPolicy.DENY, activities))
        assert "I have not run anything." in run[1]["content"]
        assert "unnamed" not in run[1]["content"]


def test_small_talk_gets_no_explanation_about_execution() -> None:
    run = run_of(TokenDelta("Hm.", 0), TurnFinal("Hm."), OK, decision=decided(ExecutionPolicy.DENY, []))
    assert output(run) == "Hm."


# -- execution


@pytest.mark.shows("narration-29", "narration-69", "narration-86", "narration-118")
def test_a_run_with_a_tool_has_plan_steps_output_summary_and_done() -> None:
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
        ("summary", "The run is completed. Done: Search documents. Steps: 2 completed."),
        ("done", "completed"),
    ]


def test_a_turn_without_tools_has_one_step_from_selection_to_its_first_word() -> None:
    cold = (ModelSelected("odo", "default"), ModelLoading("odo", True), ModelLoading("odo", True, 0.5))
    run = run_of(*cold, ModelReady("odo", WarmState.COLD, 900), TokenDelta("Yes.", 0), TurnFinal("Yes."), OK)
    assert told(run)[2:] == [
        *PREPARED,
        ("output_delta", "Yes."),
        ("summary", "The run is completed. No tool was run. Steps: 1 completed."),
        ("done", "completed"),
    ]


@pytest.mark.shows("narration-51")
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


@pytest.mark.shows("narration-64")
def test_a_plan_names_the_activities() -> None:
    plans = {
        activities: run_of(TurnFinal(""), OK, decision=decided(activities=activities))[1]["content"]
        for activities in [("search", "simulate", "evaluate"), ("tool",), ("divine",)]
    }
    both = "Search documents and Simulate cohort"
    assert plans == {
        (
            "search",
            "simulate",
            "evaluate",
        ): f"The agent will search, simulate and evaluate, with {both}, and then answer.",
        ("tool",): f"The agent may use {both}, and then answer.",
        ("divine",): f"The agent has no tool that is described as one to divine. It may use {both}, and then answer.",
    }


@pytest.mark.parametrize(
    ("activity", "tools", "fits"),
    [
        ("search", {"find_book": "Find a book in the catalogue."}, True),
        ("search", {"publish": "Publish research about readers."}, False),
        ("evaluate", {"compare_arms": "Compare two arms."}, True),
        ("generate", {"report": "Write a report."}, True),
        ("delete", {"purge": "Remove old runs."}, True),
        ("delete", {"search_documents": "Search the documents."}, False),
    ],
)
def test_a_plan_finds_the_tools_that_are_described_as_what_is_asked_for(
    activity: str, tools: dict[str, str], *, fits: bool
) -> None:
    plan = run_of(TurnFinal(""), OK, tools=tools, decision=decided(activities=(activity,)))[1]["content"]
    assert ("no tool that is described as one to" not in plan) is fits


@pytest.mark.parametrize(
    ("about", "could"),
    [
        ("Search the archive. It is old.", "search the archive"),
        ("GPS search of the ship.", "use Search archive"),
        ("Returns what a search finds.", "use Search archive"),
        ("", "use Search archive"),
    ],
)
def test_what_could_be_run_is_a_sentence_whatever_the_description_of_the_tool(about: str, could: str) -> None:
    run = run_of(TurnFinal(""), OK, tools={"search_archive": about}, decision=decided(ExecutionPolicy.DENY))
    assert run[1]["content"] == f"I have not run anything. I can {could} if you allow it.\n\n"


def test_a_plan_that_cannot_be_carried_out_says_so() -> None:
    run = run_of(TurnFinal(""), OK, tools={})
    assert run[1]["content"] == "The agent has no tools, so it cannot search. It will answer in words."
    denied = run_of(TurnFinal(""), OK, tools={}, decision=decided(ExecutionPolicy.DENY))
    assert denied[1]["content"] == "I have not run anything, and I have no tools to search with.\n\n"


@pytest.mark.shows("narration-98")
@pytest.mark.parametrize(
    ("activities", "plan"),
    [
        (
            ["search", "simulate"],
            (
                "The agent will search or simulate, whichever is chosen, with Search documents and Simulate cohort, "
                "and then answer."
            ),
        ),
        ([], "The agent will prepare an answer. If a tool is run, it is shown as a step."),
    ],
)
def test_a_plan_offers_the_different_paths(activities: list[str], plan: str) -> None:
    decision = decided(ExecutionPolicy.FORCE, activities, Confirmation.DIFFERENT_PATHS)
    assert run_of(TurnFinal(""), OK, decision=decision)[1]["content"] == plan


@pytest.mark.shows("narration-70", "narration-95")
def test_the_name_of_a_tool_that_does_not_exist_is_not_shown() -> None:
    prose = "I think the user secretly wants to search"
    refused = ToolCallResult("call-1", prose, False, error=ErrorInfo("unknown_tool", "There is no such tool."))
    run = run_of(*HOT, ToolCallStarted("call-1", prose), refused, TurnFinal(""), OK, tools={"search_documents": ""})
    assert told(run)[5:11] == [
        ("step_start", "step-2", "Unknown tool"),
        ("tool_start", "step-2", "unknown_tool", "The agent has no such tool."),
        ("narration_delta", "step-2", "Unknown tool was requested."),
        ("tool_result", "step-2", "unknown_tool", "The tool failed: unknown_tool.", False),
        ("narration_delta", "step-2", "Unknown tool failed."),
        ("step_end", "step-2", "failed"),
    ]
    assert "secretly" not in str(run)


@pytest.mark.shows("narration-29", "narration-71", "narration-73")
def test_artifacts_come_inside_their_step_before_the_result() -> None:
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
        (
            "summary",
            "The run is completed. Done: Search documents. Steps: 2 completed. Artifacts: 2 read, 1 generated.",
        ),
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
def test_invalid_notes_of_artifacts_are_ignored(ext: Ext | None) -> None:
    run = run_of(STARTED, ToolCallResult("call-1", "search_documents", False, ext=ext), TurnFinal(""), OK)
    assert not {"artifact_read", "artifact_generated"} & set(types(run))


@pytest.mark.shows("narration-68")
def test_parallel_tools_have_overlapping_steps_and_hold_text_back() -> None:
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
