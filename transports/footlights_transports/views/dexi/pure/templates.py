"""Sentences of a narrated run: all of its text except the answer.

They are made only from the decision record and the events of the turn, so that no prompt, policy text or word of a
model can get into them. The answer is the model's text and is not made here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from footlights.authority.approval_news import ApprovalState
from footlights.modes import Activity, Confirmation
from footlights.modes.lexicon import ORDER, class_of
from footlights_transports.views.dexi.pure.events import RunOutcome, StepOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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
NO_PURPOSE = "The agent has no such tool."
NO_RESULT = "The tool's result was not seen."
CUT = "The answer was cut at its limit of tokens."
CUT_ASIDE = f"\n\n({CUT})"
"""The same in the answer of a chat, which has no summary."""
RECALLED = "This run is over. The ledger has its outcome, and neither its steps nor its words."
"""In place of the plan of a run that only the ledger remembers."""
BROKEN_OFF = "The run could not be told to its end, and whether it was committed is not known."

APPROVAL = "approval"
"""The id in the record of a request that approves something."""

_ACTIVITIES: Mapping[str, str] = {
    Activity.CHANGE: "change something that is kept",
    Activity.DELETE: "delete something that is kept",
    Activity.TOOL: "use a tool",
    Activity.UNNAMED: "run something",
}
"""Phrases for activities whose names are not verbs."""
_STEMS: Mapping[str, str] = {
    Activity.SEARCH: "search|find|look|read|retriev|fetch|list",
    Activity.SIMULATE: "simulat",
    Activity.EVALUATE: "evaluat|analy|compar|measur|assess|estimat|calculat|plot",
    Activity.GENERATE: "generat|creat|make|write|draw|build|produc",
    Activity.CHANGE: "chang|set|updat|edit|modif|add|mov|renam",
    Activity.DELETE: "delet|remov|drop|eras|purg|clear|cancel",
}
"""How the words begin by which a tool says that it does such work."""
_ENDS = r"(?:e|s|es|ed|ing|ion|ions|y|ies|al|se|ze|sis)?(?![^\W_])"
"""How they end."""

_PURPOSE = "To carry out a part of the request."

_QUESTIONS: Mapping[Confirmation, str] = {
    Confirmation.AMBIGUOUS: "What should I work on?",
    Confirmation.DESTRUCTIVE: "It would delete or replace what is kept. Shall I?",
    Confirmation.DIFFERENT_PATHS: "Which of them shall it be?",
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

_STATES: Mapping[ApprovalState, str] = {
    ApprovalState.PENDING: "Waiting",
    ApprovalState.APPROVED: "Approved and done",
    ApprovalState.DENIED: "Denied and dropped",
}

_ENDINGS: Mapping[StepOutcome, str] = {
    StepOutcome.COMPLETED: "finished",
    StepOutcome.FAILED: "failed",
    StepOutcome.CANCELED: "was canceled",
    StepOutcome.WAITING: "waits for approval",
    StepOutcome.UNKNOWN: "ended, and how is not known",
}

_RAN: Mapping[RunOutcome, str] = {
    RunOutcome.FAILED: "Run, but not committed",
    RunOutcome.CANCELED: "Run, but not committed",
    RunOutcome.UNKNOWN: "Run, and perhaps not committed",
}
"""What calls that ended well are called, where they are not done."""

_VERDICTS: Mapping[RunOutcome, str] = {
    RunOutcome.COMPLETED: "The run is completed.",
    RunOutcome.WAITING: "The run waits for approval.",
    RunOutcome.FAILED: "The run failed, and nothing was committed.",
    RunOutcome.CANCELED: "The run was canceled, and nothing was committed.",
    RunOutcome.UNKNOWN: "The run ended, and whether it was committed is not known.",
}


def plan(decision: ModeDecision, agent: str | None, tools: Mapping[str, str]) -> str:
    """What the agent is about to do, with the tools that it has: their names and descriptions."""
    who, work = "The agent" if agent is None else agent, _work(decision)
    if APPROVAL in decision.intent.rule_ids:
        return f"{who} will answer. What was approved is done when the run ends, if the rules still allow it."
    if not tools:
        cannot = "nothing can be run" if work is None else f"it cannot {work}"
        return f"{who} has no tools, so {cannot}. It will answer in words."
    if work is None:
        return f"{who} will prepare an answer. If a tool is run, it is shown as a step."
    may_use = f"may use {_listed(map(label, tools))}, and then answer."
    if {*decision.intent.activities} <= {Activity.TOOL, Activity.UNNAMED}:
        return f"{who} {may_use}"
    fitting = _fitting(decision, tools)
    if not fitting:
        return f"{who} has no tool that is described as one to {work}. It {may_use}"
    choice = ", whichever is chosen" if decision.confirmation is Confirmation.DIFFERENT_PATHS else ""
    return f"{who} will {work}{choice}, with {_listed(map(label, fitting))}, and then answer."


def denied(decision: ModeDecision, tools: Mapping[str, str]) -> str:
    """That nothing was run, and what could be; with a question only if the record has a reason."""
    fitting = _fitting(decision, tools)
    if not tools:
        told = f"I have not run anything, and I have no tools to {_work(decision) or 'run anything'} with."
    elif fitting:
        could = _listed(dict.fromkeys(_could(name, tools[name]) for name in fitting), "or")
        told = f"I have not run anything. I can {could} if you allow it."
    else:
        told = f"I have not run anything. If you allow it, I can use {_listed(map(label, tools))}."
    question = "" if decision.confirmation is None else f" {_QUESTIONS[decision.confirmation]}"
    return f"{told}{question}\n\n"


def _fitting(decision: ModeDecision, tools: Mapping[str, str]) -> list[str]:
    """The tools whose names or descriptions speak of what was asked for."""
    stems = "|".join(_STEMS.get(each, re.escape(each)) for each in decision.intent.activities)
    return [
        name
        for name, about in tools.items()
        if re.search(rf"(?<![^\W_])(?:{stems}){_ENDS}", f"{name} {about}".casefold())
    ]


def _could(name: str, about: str) -> str:
    """What a tool does, if its description begins with a verb: "I can ..."."""
    first, _, rest = purpose(about).rstrip(".").partition(" ")
    verb = first.casefold()
    return f"{verb} {rest}" if class_of(verb) == ORDER else f"use {label(name)}"


def _listed(items: Iterable[str], joint: str = "and") -> str:
    *most, last = items
    return f"{', '.join(most)} {joint} {last}" if most else last


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


def purpose(description: str) -> str:
    """The purpose of a tool: the first sentence of its description."""
    sentence, end, _ = " ".join(description.split()).partition(". ")
    return (sentence + end).strip() or _PURPOSE


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


def decided(told: Sequence[ApprovalNews]) -> str:
    """What waits for an approval, was approved and was denied, for the summary; empty if nothing was."""
    parts: list[str] = []
    for state, what in _STATES.items():
        acts = [f"{each.id}: {each.question}" for each in told if each.state is state]
        parts += [f"{what}: {'; '.join(acts)}"] if acts else []
    return " ".join(parts)


def news_aside(told: ApprovalNews) -> str:
    """The same news in the answer of a chat, which has no steps."""
    return f"\n\n({news(told)[2]})"


def summary(
    outcome: RunOutcome,
    why: str,
    did: str,
    steps: Mapping[StepOutcome, int],
    read: int,
    generated: int,
    *,
    is_cut: bool,
) -> str:
    """How the run ended and why, what was and was not done, how its steps ended, and whether it is whole.

    `is_cut`: the answer was cut at its limit of tokens.
    """
    ended = ", ".join(f"{number} {_words(each)}" for each, number in steps.items() if number)
    made = f"Artifacts: {read} read, {generated} generated." if read or generated else ""
    return " ".join(filter(None, (_VERDICTS[outcome], why, did, f"Steps: {ended}.", made, CUT if is_cut else "")))


def did(tools: Sequence[tuple[str, StepOutcome]], outcome: RunOutcome) -> str:
    """What was and was not done: the names of the tools that were called, by how each call ended and what it left."""
    ran = _RAN.get(outcome, "Done")
    done = [label(name) for name, outcome in tools if outcome is StepOutcome.COMPLETED]
    others = [f"{label(name)} ({_ENDINGS[outcome]})" for name, outcome in tools if outcome is not StepOutcome.COMPLETED]
    parts = [f"{what}: {', '.join(names)}." for what, names in ((ran, done), ("Not done", others)) if names]
    return " ".join(parts) or "No tool was run."


def _words(outcome: StepOutcome) -> str:
    return "of unknown outcome" if outcome is StepOutcome.UNKNOWN else outcome.value


def _work(decision: ModeDecision) -> str | None:
    """`search`, `search and simulate`, `search, simulate or evaluate`; None if the record names no activity."""
    phrases = [_ACTIVITIES.get(each, each) for each in dict.fromkeys(decision.intent.activities)]
    if not phrases:
        return None
    return _listed(phrases, "or" if decision.confirmation is Confirmation.DIFFERENT_PATHS else "and")
