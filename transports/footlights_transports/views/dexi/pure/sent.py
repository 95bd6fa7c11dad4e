"""What was sent of a run: enough to end its stream lawfully when making it has failed.

It believes nothing but what was sent, so it knows no step that broke before anybody saw it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights_transports.views.dexi.pure import templates as say
from footlights_transports.views.dexi.pure.events import (
    StepEnd,
    StepOutcome,
    StepStart,
    Summary,
    ToolResult,
    ToolStart,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights_transports.views.dexi.pure.events import DexiEvent


class Sent:
    def __init__(self) -> None:
        self.at = 0.0
        """When the last event was sent."""
        self._open: dict[str, str | None] = {}
        """The steps that are open, each with the tool whose result it awaits."""
        self._has_steps = False

    def note(self, event: DexiEvent, now: float) -> None:
        self.at = now
        match event:
            case StepStart():
                self._has_steps = True
                self._open[event.step_id] = None
            case ToolStart():
                self._open[event.step_id] = event.tool_name
            case ToolResult():
                self._open[event.step_id] = None
            case StepEnd():
                del self._open[event.step_id]
            case _:
                pass

    def broken_run(self, stamp: str) -> Iterator[DexiEvent]:
        """The end of a run in execution mode, in words that cannot fail; all but `done`."""
        for step_id, tool_name in self._open.items():
            if tool_name is not None:
                yield ToolResult(step_id, tool_name, say.NO_RESULT, redactions_applied=False, timestamp=stamp)
            yield StepEnd(step_id, StepOutcome.FAILED, stamp)
        if not self._has_steps:
            yield StepStart(_ONLY_STEP, say.ANSWER, stamp)
            yield StepEnd(_ONLY_STEP, StepOutcome.FAILED, stamp)
        yield Summary(say.BROKEN_OFF, stamp)


_ONLY_STEP = "step-1"
