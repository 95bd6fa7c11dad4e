"""The steps of a narrated run: one for each model that is asked, one for each tool call, and one for a silence.

Steps may overlap, because tools run side by side; everything that is told of one names it. Each method yields what is
to be sent, and whoever calls it takes all of that.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from attrs import frozen

from footlights_transports.views.dexi.pure import templates as say
from footlights_transports.views.dexi.pure.artifacts import artifacts_in
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
    from collections.abc import Collection, Iterator

    from footlights.events import ToolCallResult
    from footlights_transports.views.dexi.pure.artifacts import Notes
    from footlights_transports.views.dexi.pure.events import DexiEvent, RunOutcome
    from footlights_transports.views.dexi.pure.redaction import Blotter


@frozen
class _Step:
    step_id: str
    tool_name: str | None
    """As it is shown; None if it waits for a model."""
    redacted: bool = False
    """Whether a part of the name was taken out."""
    asks: bool = False
    """Whether it asks a model that was selected."""


_WAITING = ""
"""What the step that waits for a model is found by; tool calls have their ids."""


class Steps:
    def __init__(self, safe: Blotter, tools: Collection[str] | None = None) -> None:
        self._safe = safe
        self._tools = tools
        """The names that exist; None if any may."""
        self._awaited = say.QUEUED
        """What the step that waits for a model is waiting for."""
        self._open: dict[str, _Step] = {}
        """By tool_call_id, in the order they began."""
        self._outcomes: Counter[StepOutcome] = Counter()
        self._begun = 0
        self._read = 0
        self._generated = 0

    @property
    def any_open(self) -> bool:
        return bool(self._open)

    # -- models

    def model_selected(self, model_id: str, stamp: str) -> Iterator[DexiEvent]:
        asked = _WAITING in self._open and self._open[_WAITING].asks
        yield from self.waiting_over(StepOutcome.UNKNOWN if asked else StepOutcome.COMPLETED, stamp)
        yield from self._model_begins(model_id, stamp)

    def model_shown(self, model_id: str, stamp: str) -> Iterator[DexiEvent]:
        """It is loading, or ready; and so it was selected, whether that was seen or not."""
        if _WAITING not in self._open:
            yield from self._model_begins(model_id, stamp)

    def model_is_ready(self) -> None:
        self._awaited = say.ANSWERING

    def answer_begins(self, stamp: str) -> Iterator[DexiEvent]:
        """Something is to be said of the answer itself. Nothing happens if it is waited for already."""
        if _WAITING not in self._open:
            yield self._answer_begins(stamp)

    def waiting_over(self, outcome: StepOutcome, stamp: str) -> Iterator[DexiEvent]:
        """The model said something, or never will. Nothing happens if that is not waited for."""
        self._awaited = say.ANSWERING
        if _WAITING in self._open:
            yield self._end(_WAITING, outcome, stamp)

    def _model_begins(self, model_id: str, stamp: str) -> Iterator[DexiEvent]:
        self._awaited = say.LOADING
        step = self._begin(_WAITING, _Step(self._next_id(), None, asks=True))
        yield StepStart(step.step_id, say.ASK, stamp)
        yield NarrationDelta(step.step_id, self._safe(say.model_selected(model_id)), stamp)

    # -- tools

    def tool_started(self, call: str, tool_name: str, stamp: str) -> Iterator[DexiEvent]:
        if self._tools is not None and tool_name not in self._tools:
            step = self._begin(call, _Step(self._next_id(), say.UNKNOWN_TOOL))
            purpose = say.NO_PURPOSE
        else:
            name = self._safe.redacted(tool_name)
            step = self._begin(call, _Step(self._next_id(), name.text, name.applied))
            purpose = say.purpose(tool_name)
        assert step.tool_name is not None
        yield StepStart(step.step_id, say.label(step.tool_name), stamp)
        yield ToolStart(step.step_id, step.tool_name, purpose, stamp)
        yield NarrationDelta(step.step_id, say.tool_requested(step.tool_name), stamp)

    def tool_ended(self, result: ToolCallResult, stamp: str) -> Iterator[DexiEvent]:
        call = result.tool_call_id
        if call not in self._open:  # its beginning was missed
            yield from self.tool_started(call, result.tool_name, stamp)
        notes = artifacts_in(result.ext)
        yield from self._artifacts(self._open[call].step_id, notes, stamp)
        yield from self._tool_over(call, say.tool_summary(result), _outcome_of(result), notes, stamp)

    def _artifacts(self, step_id: str, notes: Notes, stamp: str) -> Iterator[DexiEvent]:
        self._read += len(notes.read)
        self._generated += len(notes.generated)
        for note in notes.read:
            yield ArtifactRead(step_id, self._safe(note.kind), self._safe(note.identifier), stamp)
        for note in notes.generated:
            kind, identifier, summary = map(self._safe, (note.kind, note.identifier, note.summary))
            yield ArtifactGenerated(step_id, kind, identifier, summary, stamp)

    def _tool_over(
        self, call: str, summary: str, outcome: StepOutcome, notes: Notes | None, stamp: str
    ) -> Iterator[DexiEvent]:
        step = self._open[call]
        assert step.tool_name is not None
        told = self._safe.redacted(summary)
        read, generated = (0, 0) if notes is None else (len(notes.read), len(notes.generated))
        yield ToolResult(step.step_id, step.tool_name, told.text, step.redacted or told.applied, stamp)
        yield NarrationDelta(step.step_id, say.tool_ended(step.tool_name, outcome, read, generated), stamp)
        yield self._end(call, outcome, stamp)

    # -- all of them

    def close(self, waiting: StepOutcome, stamp: str) -> Iterator[DexiEvent]:
        """The turn is over. Waiting for a model ends like this; of a tool that is open, no result was seen."""
        yield from self.waiting_over(waiting, stamp)
        for call in list(self._open):
            yield from self._tool_over(call, say.NO_RESULT, StepOutcome.UNKNOWN, None, stamp)

    def at_least_one(self, outcome: StepOutcome, stamp: str) -> Iterator[DexiEvent]:
        """A step of its own for what the turn does, if there was no other."""
        if not self._begun:
            yield from self.answer_begins(stamp)
            yield self._end(_WAITING, outcome, stamp)

    def sign_of_life(self, stamp: str) -> Heartbeat | StepStart:
        """Of the step that began last; if none is open, of one that begins now and waits for the answer."""
        if not self._open:
            return self._answer_begins(stamp)
        step = next(reversed(self._open.values()))
        return Heartbeat(step.step_id, self._awaited if step.tool_name is None else say.RUNNING, stamp)

    def summary(self, outcome: RunOutcome, stamp: str) -> Summary:
        return Summary(say.summary(outcome, self._outcomes, self._read, self._generated), stamp)

    # -- inside

    def _answer_begins(self, stamp: str) -> StepStart:
        return StepStart(self._begin(_WAITING, _Step(self._next_id(), None)).step_id, say.ANSWER, stamp)

    def _next_id(self) -> str:
        return f"step-{self._begun + 1}"

    def _begin(self, call: str, step: _Step) -> _Step:
        self._begun += 1
        self._open[call] = step
        return step

    def _end(self, call: str, outcome: StepOutcome, stamp: str) -> StepEnd:
        self._outcomes[outcome] += 1
        return StepEnd(self._open.pop(call).step_id, outcome, stamp)


def _outcome_of(result: ToolCallResult) -> StepOutcome:
    if result.canceled:
        return StepOutcome.CANCELED
    return StepOutcome.COMPLETED if result.error is None else StepOutcome.FAILED
