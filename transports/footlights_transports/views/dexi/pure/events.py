"""Events of a narrated run: one class for each type, and their JSON.

Every field is required on the wire, and there are no others: `dexi_schema` makes the JSON Schemas from these classes
and their docstrings. An event gets its timestamp when it is sent.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, TypeAlias

import attrs
from attrs import field, frozen

from footlights.params import Mode  # noqa: TC001 - the schemas are made from what stands here

if TYPE_CHECKING:
    from footlights.events import JsonValue


class StepOutcome(StrEnum):
    """How a step ended."""

    COMPLETED = "completed"
    """It did what its label says."""
    FAILED = "failed"
    """It did not, because something went wrong."""
    CANCELED = "canceled"
    """It did not, because the run was canceled or interrupted."""
    WAITING = "waiting"
    """What it asks for waits for an approval, and is not done."""
    UNKNOWN = "unknown"
    """It began, and the stream never learned how it ended."""


class RunOutcome(StrEnum):
    """How a run ended."""

    COMPLETED = "completed"
    """It said all it had to say, and that was committed."""
    WAITING = "waiting"
    """An act of it waits for an approval, and is not done. All that needs none was committed."""
    FAILED = "failed"
    """Something went wrong, or what it asked for was refused. Nothing was committed."""
    CANCELED = "canceled"
    """It was canceled or interrupted. Nothing was committed."""
    UNKNOWN = "unknown"
    """The server closed before it knew whether the run was committed."""


@frozen
class ModeEvent:
    """Which of the two modes the run is in. Always the first event, and fixed from then on."""

    type: Literal["mode"] = field(default="mode", init=False)
    run_id: str
    mode: Mode
    timestamp: str = ""


@frozen
class PlanNarrative:
    """What is about to be done: an intention, and no promise."""

    type: Literal["plan_narrative"] = field(default="plan_narrative", init=False)
    run_id: str
    content: str
    timestamp: str = ""


@frozen
class StepStart:
    """A step begins: a model is asked, a tool is called, or the answer is waited for."""

    type: Literal["step_start"] = field(default="step_start", init=False)
    step_id: str
    label: str
    timestamp: str = ""


@frozen
class NarrationDelta:
    """A sentence about what was just done in a step."""

    type: Literal["narration_delta"] = field(default="narration_delta", init=False)
    step_id: str
    content: str
    timestamp: str = ""


@frozen
class ArtifactRead:
    """The step used this."""

    type: Literal["artifact_read"] = field(default="artifact_read", init=False)
    step_id: str
    artifact_type: str
    identifier: str
    timestamp: str = ""


@frozen
class ArtifactGenerated:
    """The step made this. It is kept if the run is committed."""

    type: Literal["artifact_generated"] = field(default="artifact_generated", init=False)
    step_id: str
    artifact_type: str
    identifier: str
    summary: str
    timestamp: str = ""


@frozen
class ToolStart:
    """A tool was called. Whether it ran is told by its result."""

    type: Literal["tool_start"] = field(default="tool_start", init=False)
    step_id: str
    tool_name: str
    purpose: str
    timestamp: str = ""


@frozen
class ToolResult:
    """It came back, failed or was canceled. `redactions_applied`: whether anything in this event was blotted out."""

    type: Literal["tool_result"] = field(default="tool_result", init=False)
    step_id: str
    tool_name: str
    summary: str
    redactions_applied: bool
    timestamp: str = ""


@frozen
class Heartbeat:
    """Nothing was sent for a while, and the step is still at work."""

    type: Literal["heartbeat"] = field(default="heartbeat", init=False)
    step_id: str
    state: str
    timestamp: str = ""


@frozen
class StepEnd:
    """A step is over."""

    type: Literal["step_end"] = field(default="step_end", init=False)
    step_id: str
    outcome: StepOutcome
    timestamp: str = ""


@frozen
class OutputDelta:
    """The next piece of the answer."""

    type: Literal["output_delta"] = field(default="output_delta", init=False)
    content: str
    timestamp: str = ""


@frozen
class Summary:
    """What was done, in a sentence or two."""

    type: Literal["summary"] = field(default="summary", init=False)
    content: str
    timestamp: str = ""


@frozen
class Done:
    """The run is over, and decided. Always the last event."""

    type: Literal["done"] = field(default="done", init=False)
    run_id: str
    outcome: RunOutcome
    timestamp: str = ""


DexiEvent: TypeAlias = (
    ModeEvent
    | PlanNarrative
    | StepStart
    | NarrationDelta
    | ArtifactRead
    | ArtifactGenerated
    | ToolStart
    | ToolResult
    | Heartbeat
    | StepEnd
    | OutputDelta
    | Summary
    | Done
)

Json: TypeAlias = "dict[str, JsonValue]"


def timestamp(seconds: float) -> str:
    """Seconds since the epoch as an ISO 8601 string in UTC, with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_of(stamp: str) -> float:
    """Seconds since the epoch of a string that `timestamp` made, to the millisecond."""
    return datetime.fromisoformat(stamp).timestamp()


def to_json(event: DexiEvent) -> Json:
    """The event as JSON, its type first."""
    return {each.name: _plain(getattr(event, each.name)) for each in attrs.fields(type(event))}


def _plain(value: str | bool) -> str | bool:
    return value.value if isinstance(value, StrEnum) else value
