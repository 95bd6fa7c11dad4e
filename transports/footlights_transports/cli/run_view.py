"""View of a narrated run: events in, pieces of output out, no I/O.

It shows only what the events say. A heartbeat has no content: it only moves a spinner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from footlights_transports.cli.screen import EndWords, Line, Spinner, Words
from footlights_transports.views.dexi.pure.events import (
    ArtifactGenerated,
    ArtifactRead,
    DexiEvent,
    Done,
    Heartbeat,
    NarrationDelta,
    OutputDelta,
    PlanNarrative,
    RunOutcome,
    StepEnd,
    StepOutcome,
    StepStart,
    Summary,
    ToolResult,
    ToolStart,
    seconds_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights_transports.cli.screen import Piece


_STEP_ENDS = {
    StepOutcome.COMPLETED: ("✓", "green"),
    StepOutcome.FAILED: ("✗", "bold red"),
    StepOutcome.CANCELED: ("✗", "yellow"),
    StepOutcome.WAITING: ("…", "yellow"),
    StepOutcome.UNKNOWN: ("?", "yellow"),
}


@frozen
class _Step:
    label: str
    began: float


class RunView:
    """Turns the events of one run into pieces of output."""

    def __init__(self) -> None:
        self._open: dict[str, _Step] = {}
        self._shown: str | None = None
        """The step whose label was shown last."""

    def show(self, event: DexiEvent) -> Iterator[Piece]:
        match event:
            case PlanNarrative():
                yield Line(f"Plan: {event.content}", "bold")
            case StepStart():
                self._open[event.step_id] = _Step(event.label, seconds_of(event.timestamp))
                self._shown = event.step_id
                yield Line(f"▸ {event.label}", "bold")
            case StepEnd():
                step = self._open.pop(event.step_id)
                mark, style = _STEP_ENDS[event.outcome]
                seconds = seconds_of(event.timestamp) - step.began
                yield Line(f"  {mark} {step.label}: {event.outcome}, {seconds:.1f} s", style)
            case NarrationDelta():
                yield Line(f"    Working: {event.content}{self._aside(event.step_id)}", "dim italic")
            case ToolStart() | ToolResult() | ArtifactRead() | ArtifactGenerated():
                yield Line(f"    · {_logged(event)}{self._aside(event.step_id)}", "dim")
            case Heartbeat():
                yield Spinner(event.state)
            case OutputDelta():
                yield Words(event.content)
            case Summary():
                yield Line(f"Summary: {event.content}", "dim")
            case Done(outcome=RunOutcome.COMPLETED | RunOutcome.WAITING):
                yield EndWords()
            case Done():
                yield Line(f"The run ended: {event.outcome}.", "bold red")
            case _:
                pass  # what follows shows the mode

    def _aside(self, step_id: str) -> str:
        """The label of the step, if another one was shown last."""
        return "" if step_id == self._shown else f" ({self._open[step_id].label})"


def _logged(event: ToolStart | ToolResult | ArtifactRead | ArtifactGenerated) -> str:
    match event:
        case ToolStart():
            return f"{event.tool_name}: {event.purpose}"
        case ToolResult():
            redacted = " (parts were taken out)" if event.redactions_applied else ""
            return f"{event.tool_name}: {event.summary}{redacted}"
        case ArtifactRead():
            return f"read {event.artifact_type} {event.identifier}"
        case ArtifactGenerated():
            return f"made {event.artifact_type} {event.identifier}: {event.summary}"
