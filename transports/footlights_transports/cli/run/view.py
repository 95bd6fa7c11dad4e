"""What a person in front of a screen is shown of a run: Dexi events in, pieces out, no I/O.

Nothing is shown that no event said. A heartbeat is no content: it only moves a spinner. Every piece is printable, so a
control character that a model or a tool came up with never reaches a terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from attrs import field, frozen

from footlights_transports.cli.play.narration import one_line, printable
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


@frozen
class Plan:
    """What is intended, before anything is done."""

    text: str = field(converter=one_line)


@frozen
class StepBegun:
    """A new step; what follows belongs to it, unless it says otherwise."""

    label: str = field(converter=one_line)


@frozen
class Working:
    """What was just done in a step."""

    text: str = field(converter=one_line)
    aside: str | None = None
    """The label of its step, if that is not the one that was shown last."""


@frozen
class Activity:
    """One line of the log of a step: a tool, or an artifact."""

    text: str = field(converter=one_line)
    aside: str | None = None


@frozen
class StepOver:
    """A step ended. One that failed stays to be seen."""

    label: str = field(converter=one_line)
    outcome: StepOutcome
    seconds: float


@frozen
class Beat:
    """Nothing to read: the step is still at work."""

    state: str = field(converter=one_line)


@frozen
class Words:
    """The next words of the answer."""

    text: str = field(converter=printable)


@frozen
class SummedUp:
    """What was done."""

    text: str = field(converter=one_line)


@frozen
class Over:
    """How the run ended."""

    outcome: RunOutcome


Piece: TypeAlias = Plan | StepBegun | Working | Activity | StepOver | Beat | Words | SummedUp | Over


@frozen
class _Step:
    label: str
    began: float


class RunView:
    """Turns the events of one run into pieces."""

    def __init__(self) -> None:
        self._open: dict[str, _Step] = {}
        self._shown: str | None = None
        """The step whose label was shown last."""

    def show(self, event: DexiEvent) -> Iterator[Piece]:
        match event:
            case PlanNarrative():
                yield Plan(event.content)
            case StepStart():
                self._open[event.step_id] = _Step(one_line(event.label), seconds_of(event.timestamp))
                self._shown = event.step_id
                yield StepBegun(event.label)
            case StepEnd():
                step = self._open.pop(event.step_id)
                yield StepOver(step.label, event.outcome, seconds_of(event.timestamp) - step.began)
            case NarrationDelta():
                yield Working(event.content, self._aside(event.step_id))
            case ToolStart() | ToolResult() | ArtifactRead() | ArtifactGenerated():
                yield Activity(_logged(event), self._aside(event.step_id))
            case Heartbeat():
                yield Beat(event.state)
            case OutputDelta():
                yield Words(event.content)
            case Summary():
                yield SummedUp(event.content)
            case Done():
                yield Over(event.outcome)
            case _:
                pass  # the mode is shown by what follows

    def _aside(self, step_id: str) -> str | None:
        return None if step_id == self._shown else self._open[step_id].label


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
