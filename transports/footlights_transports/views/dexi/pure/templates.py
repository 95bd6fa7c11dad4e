"""Sentences of a narrated run: all of its text except the answer.

They are made only from the decision record and the events of the turn, so that no prompt, policy text or word of a
model can get into them. The answer is the model's text and is not made here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.authority.approval_news import ApprovalState
from footlights.modes import Activity, Confirmation
from footlights_transports.views.dexi.pure.events import RunOutcome, StepOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from footlights.authority.approval_news import ApprovalNews
    from footlights.events import ErrorInfo, ToolCallResult
    from footlights.modes import ModeDecision

ASK = "Ask a model"
"""Label of the step from a model's selection to its first word or tool call."""
ANSWER = "Prepare the answer"
"""Label of a step that waits for the answer when no other is open, and of one in which the answer failed."""
QUEUED = "waiting for its turn"
"""State of a step that waits for the answer, until a model is selected."""
LOADING = "loading the model"
"""State of a step that waits for a model, until it is ready."""
ANSWERING = "waiting for the model"
"""State of a step that waits for a model that is ready."""
RUNNING = "waiting for the tool"
"""State of a step that called a tool."""
UNKNOWN_TOOL = "unknown_tool"
"""Shown in place of the name of a tool that does not exist, since a model invented that name."""
NO_PURPOSE = "There is no such tool."
NO_RESULT = "The tool's result was not seen."
CUT = "The answer was cut at its limit of tokens."
CUT_ASIDE = f"\n\n({CUT})"
"""The same in the answer of a chat, which has no summary."""
RECALLED = "This run is over. The ledger has its outcome, and neither its steps nor its words."
"""In place of the plan of a run that only the ledger remembers."""
BROKEN_OFF = "The run could not be told to its end, and whether it was committed is not known."

_ACTIVITIES: Mapping[str, str] = {
    Activity.CHANGE: "change something that is kept",
    Activity.DELETE: "delete something that is kept",
    Activity.TOOL: "use a tool",
    Activity.UNNAMED: "run something",
}
"""Phrases for activities whose names are not verbs."""

_PURPOSES: Mapping[str, str] = {
    "search": "To find what the request asks about.",
    "simulate": "To simulate what the request asks about.",
    "evaluate": "To evaluate what the request asks about.",
    "generate": "To make what the request asks for.",
}
_PURPOSE = "To carry out a part of the request."

_QUESTIONS: Mapping[Confirmation, str] = {
    Confirmation.AMBIGUOUS: "Should it be run, or only talked about?",
    Confirmation.DESTRUCTIVE: "It may change or remove what is there. Should it be run?",
    Confirmation.DIFFERENT_PATHS: "There is more than one way to run it. Which one should be taken?",
}

_NEWS: Mapping[ApprovalState, tuple[str, StepOutcome, str]] = {
    ApprovalState.PENDING: ("Wait for approval", StepOutcome.WAITING, "{id} waits for approval: {question}"),
    ApprovalState.APPROVED: (
        "Do what was approved",
        StepOutcome.COMPLETED,
        "{id} was approved, and is done: {question}",
    ),
    ApprovalState.DENIED: (
        "Drop what was denied",
        StepOutcome.COMPLETED,
        "{id} was denied, and is dropped: {question}",
    ),
}
"""What a commit says about an act that needs an approval: label and outcome of its step, and the narration."""

_ENDINGS: Mapping[StepOutcome, str] = {
    StepOutcome.COMPLETED: "finished",
    StepOutcome.FAILED: "failed",
    StepOutcome.CANCELED: "was canceled",
    StepOutcome.WAITING: "waits for approval",
    StepOutcome.UNKNOWN: "ended, and how is not known",
}

_VERDICTS: Mapping[RunOutcome, str] = {
    RunOutcome.COMPLETED: "The run is completed.",
    RunOutcome.WAITING: "The run waits for approval.",
    RunOutcome.FAILED: "The run failed, and nothing was committed.",
    RunOutcome.CANCELED: "The run was canceled, and nothing was committed.",
    RunOutcome.UNKNOWN: "The run ended, and whether it was committed is not known.",
}


def plan(decision: ModeDecision, agent: str | None) -> str:
    """What the agent is about to do."""
    who = "The agent" if agent is None else agent
    work = _work(decision)
    if work is None:
        return f"{who} will prepare an answer. If a tool is run, it is shown as a step."
    if decision.confirmation is Confirmation.DIFFERENT_PATHS:
        return f"{who} will {work}, whichever is chosen, and then answer. Each tool that is run is shown as a step."
    return f"{who} will {work}, and then answer. Each tool that is run is shown as a step."


def denied(decision: ModeDecision) -> str:
    """Why nothing is executed, what could be, and how to allow it; with a question only if the record has a reason."""
    could = f"This request asks to {_work(decision) or _ACTIVITIES[Activity.UNNAMED]}."
    how = 'Nothing was run, because that is not authorized here. To run it, send it with "execution_policy": "auto".'
    question = "" if decision.confirmation is None else f" {_QUESTIONS[decision.confirmation]}"
    return f"{could} {how}{question}\n\n"


def model_selected(model_id: str, failure: ErrorInfo | None) -> str:
    if failure is None:
        return f"The model {model_id} was selected."
    return f"The model {model_id} was selected in place of another. {failed(failure)}"


def failed(failure: ErrorInfo) -> str:
    """Why something failed. The sentence of a failure quotes nobody."""
    return f"Why ({failure.code}): {failure.message}"


def broke_off(failure: ErrorInfo, *, has_text: bool) -> str:
    """The end of a chat that failed."""
    gap = "\n\n" if has_text else ""
    return f"{gap}There is no whole answer. {failed(failure)}"


def refused(failure: ErrorInfo) -> str:
    """The end of a chat that the rules refused."""
    return f"\n\n(Nothing was committed. {failed(failure)})"


def label(tool_name: str) -> str:
    """`search_documents` is shown as `Search documents`."""
    words = tool_name.replace("_", " ").strip()
    return words[:1].upper() + words[1:] or "Run a tool"


def purpose(tool_name: str) -> str:
    """The purpose of a tool, by the first word of its name."""
    return _PURPOSES.get(tool_name.partition("_")[0], _PURPOSE)


def tool_requested(tool_name: str) -> str:
    """Not "started": the tool may be refused, or wait for others."""
    return f"{label(tool_name)} was requested."


def tool_ended(tool_name: str, outcome: StepOutcome, read: int, generated: int) -> str:
    counts = [text for number, text in ((read, f"{read} read"), (generated, f"{generated} generated")) if number]
    artifacts = f" Artifacts: {', '.join(counts)}." if counts else ""
    return f"{label(tool_name)} {_ENDINGS[outcome]}.{artifacts}"


def tool_summary(result: ToolCallResult) -> str:
    """The summary of a result. Of a failure it has only the code, because the message is written for the model."""
    if result.canceled:
        effects = "it may have had side effects" if result.side_effects_may_have_occurred else "it had no side effects"
        return f"The tool was canceled; {effects}."
    if result.error is not None:
        return f"The tool failed: {result.error.code}."
    if result.awaits_approval:
        return f"Waits for approval: {result.summary}" if result.summary else "Waits for approval."
    return result.summary or "The tool finished."


def verdict(outcome: RunOutcome) -> str:
    return _VERDICTS[outcome]


def recorded(intents: int, changes: int, artifacts: int) -> str:
    """What the ledger has of a run."""
    return f"In the ledger: {intents} intents, {changes} changes, {artifacts} artifacts."


def news(told: ApprovalNews) -> tuple[str, StepOutcome, str]:
    """Label, outcome and narration of the step about an act that needs an approval."""
    label, outcome, sentence = _NEWS[told.state]
    return label, outcome, sentence.format(id=told.id, question=told.question)


def waiting(told: Iterable[ApprovalNews]) -> str:
    """What waits for an approval, for the summary; empty if nothing does."""
    pending = [f"{each.id}: {each.question}" for each in told if each.state is ApprovalState.PENDING]
    return f"Waiting: {'; '.join(pending)}" if pending else ""


def news_aside(told: ApprovalNews) -> str:
    """The same news in the answer of a chat, which has no steps."""
    return f"\n\n({news(told)[2]})"


def summary(
    outcome: RunOutcome, steps: Mapping[StepOutcome, int], read: int, generated: int, why: str, *, is_cut: bool
) -> str:
    """How the run ended and why, how its steps ended, how many artifacts they used and made, and whether it is whole.

    `is_cut`: the answer was cut at its limit of tokens.
    """
    done = [f"{number} {_words(each)}" for each, number in steps.items() if number]
    made = f" Artifacts: {read} read, {generated} generated." if read or generated else ""
    verdict = f"{_VERDICTS[outcome]} {why}" if why else _VERDICTS[outcome]
    return f"{verdict} Steps: {', '.join(done)}.{made}{f' {CUT}' if is_cut else ''}"


def _words(outcome: StepOutcome) -> str:
    return "of unknown outcome" if outcome is StepOutcome.UNKNOWN else outcome.value


def _work(decision: ModeDecision) -> str | None:
    """`search`, `search and simulate`, `search, simulate or evaluate`; None if the record names no activity."""
    phrases = [_ACTIVITIES.get(each, each) for each in dict.fromkeys(decision.intent.activities)]
    if not phrases:
        return None
    *most, last = phrases
    joint = "or" if decision.confirmation is Confirmation.DIFFERENT_PATHS else "and"
    return f"{', '.join(most)} {joint} {last}" if most else last
