"""Steps of a narrated run: one for each model that is asked, one for each tool call, and one for a silence.

Steps overlap when tools run in parallel, so every event of a step names it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from attrs import frozen

from footlights.redaction.redactor import Redacted
from footlights.tools.artifact_notes import ARTIFACTS, MAX_NOTES
from footlights_transports.views.dexi.pure import templates as say
from footlights_transports.views.dexi.pure.events import (
    ArtifactGenerated,
    ArtifactRead,
    Heartbeat,
    NarrationDelta,
    StepEnd,
    StepOutcome,
    StepStart,
    Summary,
    ToolResult,
    ToolStart,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from footlights.authority.approval_news import ApprovalNews
    from footlights.events import ErrorInfo, Ext, JsonValue, ToolCallResult
    from footlights_transports.views.dexi.pure.events import DexiEvent, RunOutcome
    from footlights_transports.views.dexi.pure.redaction import SafeRedactor

_WAITING = ""
"""The key of the step that waits for a model. A step of a tool has its tool_call_id."""


@frozen
class _Step:
    step_id: str
    tool_name: str = ""
    """As it is shown; empty if the step waits for a model."""
    is_redacted: bool = False
    """Whether a part of the name is hidden."""
    asks_model: bool = False
    """Whether the step began because a model was selected."""


class Steps:
    """The steps of one run. Each method passes the events that it causes to `send`, in order."""

    def __init__(self, send: Callable[[DexiEvent], None], redactor: SafeRedactor, tools: Mapping[str, str]) -> None:
        self._send = send
        self._safe = redactor
        self._tools = tools
        """The agent's tools, and their descriptions."""
        self._waits_for = say.QUEUED
        """The state of a step that waits for a model."""
        self._open: dict[str, _Step] = {}
        """In the order in which they began."""
        self._begun = 0
        self._outcomes: Counter[StepOutcome] = Counter()
        self._called: list[tuple[str, StepOutcome]] = []
        """The tools whose calls have ended, by their names as they are shown."""
        self._read = 0
        self._generated = 0

    @property
    def any_open(self) -> bool:
        return bool(self._open)

    # -- waiting for a model

    def model_selected(self, model_id: str, failure: ErrorInfo | None) -> None:
        """`failure` is what was wrong with the model that this one replaces, if it does."""
        asked = _WAITING in self._open and self._open[_WAITING].asks_model
        unanswered = StepOutcome.UNKNOWN if failure is None else StepOutcome.FAILED
        self.end_waiting(unanswered if asked else StepOutcome.COMPLETED)
        self.model_shown(model_id, failure)

    def model_shown(self, model_id: str, failure: ErrorInfo | None = None) -> None:
        """A model is loading or ready, so it was selected, even if that event was missed."""
        if _WAITING not in self._open:
            self._waits_for = say.LOADING
            step = self._begin(_WAITING, say.ASK, _Step(self._next_id(), asks_model=True))
            self._send(NarrationDelta(step.step_id, self._safe(say.model_selected(model_id, failure))))

    def model_ready(self) -> None:
        self._waits_for = say.ANSWERING

    def begin_answer(self) -> None:
        """Begin a step for the answer itself, unless one waits for it already."""
        if _WAITING not in self._open:
            self._begin(_WAITING, say.ANSWER, _Step(self._next_id()))

    def tell_failure(self, failure: ErrorInfo | None) -> None:
        """Say why the step that waits for the answer fails, just before it ends."""
        if failure is not None:
            self._send(NarrationDelta(self._open[_WAITING].step_id, self._safe(say.failed(failure))))

    def end_waiting(self, outcome: StepOutcome) -> None:
        """The model answered, or never will. Ends the step that waits for it, if there is one."""
        self._waits_for = say.ANSWERING
        if _WAITING in self._open:
            self._end(_WAITING, outcome)

    # -- tools

    def tool_started(self, call: str, tool_name: str) -> None:
        if tool_name in self._tools:
            name, purpose = self._safe.redacted(tool_name), self._safe(say.purpose(self._tools[tool_name]))
        else:
            name, purpose = Redacted(say.UNKNOWN_TOOL, applied=False), say.NO_PURPOSE
        step = self._begin(call, say.label(name.text), _Step(self._next_id(), name.text, name.applied))
        self._send(ToolStart(step.step_id, name.text, purpose))
        self._send(NarrationDelta(step.step_id, say.tool_requested(name.text)))

    def tool_ended(self, result: ToolCallResult) -> None:
        call = result.tool_call_id
        if call not in self._open:  # the start was missed
            self.tool_started(call, result.tool_name)
        step_id = self._open[call].step_id
        read, generated = _noted(result.ext, "read"), _noted(result.ext, "generated")
        for kind, identifier, _ in read:
            self._send(ArtifactRead(step_id, self._safe(kind), self._safe(identifier)))
        for note in generated:
            self._send(ArtifactGenerated(step_id, *map(self._safe, note)))
        self._read += len(read)
        self._generated += len(generated)
        self._end_tool(call, say.tool_summary(result), _outcome_of(result), len(read), len(generated))

    def _end_tool(self, call: str, summary: str, outcome: StepOutcome, read: int = 0, generated: int = 0) -> None:
        step, shown = self._open[call], self._safe.redacted(summary)
        self._send(ToolResult(step.step_id, step.tool_name, shown.text, step.is_redacted or shown.applied))
        self._send(NarrationDelta(step.step_id, say.tool_ended(step.tool_name, outcome, read, generated)))
        self._called.append((step.tool_name, outcome))
        self._end(call, outcome)

    # -- all steps

    def close(self, waiting: StepOutcome) -> None:
        """End every step: the one that waits for a model with this outcome, those of tools without a result."""
        self.end_waiting(waiting)
        for call in list(self._open):
            self._end_tool(call, say.NO_RESULT, StepOutcome.UNKNOWN)

    def ensure_one(self, outcome: StepOutcome) -> None:
        """Add a step with this outcome if the run has none."""
        if not self._begun:
            self.begin_answer()
            self._end(_WAITING, outcome)

    def beat(self) -> None:
        """Send a heartbeat of the step that began last. If no step is open, begin one that waits for the answer."""
        if not self._open:
            self.begin_answer()
            return
        call, step = next(reversed(self._open.items()))
        self._send(Heartbeat(step.step_id, self._waits_for if call == _WAITING else say.RUNNING))

    def tell_news(self, news: ApprovalNews) -> None:
        """A step for an act that waits for an approval, or that was decided."""
        label, outcome, narration = say.news(news)
        step = self._begin(news.id, label, _Step(self._next_id()))
        self._send(NarrationDelta(step.step_id, self._safe(narration)))
        self._end(news.id, outcome)

    def sum_up(self, outcome: RunOutcome, why: str, *, is_cut: bool, is_forgotten: bool) -> None:
        """`why` is why it failed, or what waits or was decided. `is_forgotten`: tools may have run that nobody saw."""
        did = "" if is_forgotten and not self._called else say.did(self._called, outcome)
        made = (self._read, self._generated)
        self._send(Summary(say.summary(outcome, self._safe(why), did, self._outcomes, *made, is_cut=is_cut)))

    def _next_id(self) -> str:
        return f"step-{self._begun + 1}"

    def _begin(self, call: str, label: str, step: _Step) -> _Step:
        self._begun += 1
        self._open[call] = step
        self._send(StepStart(step.step_id, label))
        return step

    def _end(self, call: str, outcome: StepOutcome) -> None:
        self._outcomes[outcome] += 1
        self._send(StepEnd(self._open.pop(call).step_id, outcome))


def _outcome_of(result: ToolCallResult) -> StepOutcome:
    if result.canceled:
        return StepOutcome.CANCELED
    if result.error is not None:
        return StepOutcome.FAILED
    return StepOutcome.WAITING if result.awaits_approval else StepOutcome.COMPLETED


def _noted(ext: Ext | None, name: str) -> list[tuple[str, str, str]]:
    """The artifacts under this name in a tool's extension data: kind, identifier and summary of each.

    A tool may write anything there. What does not have the form of a note is ignored.
    """
    if ext is None or ext.namespace != ARTIFACTS or not isinstance(ext.data, dict):
        return []
    given = ext.data.get(name)
    notes = [_note(each) for each in given[:MAX_NOTES]] if isinstance(given, list) else []
    return [note for note in notes if note is not None]


def _note(given: JsonValue) -> tuple[str, str, str] | None:
    match given:
        case {"kind": str(kind), "identifier": str(identifier), "summary": str(summary)}:
            return kind, identifier, summary
        case {"kind": str(kind), "identifier": str(identifier), **rest} if "summary" not in rest:
            return kind, identifier, ""
        case _:
            return None
