"""One run of a Dexi stream, as a client sees it: brings each event before every law that is about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define

from footlights.params import Mode
from footlights_transports.views.dexi.pure.events import (
    ArtifactGenerated,
    ArtifactRead,
    Done,
    Heartbeat,
    ModeEvent,
    NarrationDelta,
    OutputDelta,
    PlanNarrative,
    StepEnd,
    StepStart,
    Summary,
    ToolResult,
    ToolStart,
    seconds_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights_transports.views.dexi.pure.events import DexiEvent

_QUIET = 2.0
_PACE = 5.0


@define
class _Step:
    tool_name: str | None = None
    """Of its tool call, once there is one."""
    awaits_result: bool = False


class Run:
    def __init__(self, report: Callable[[str, str], None]) -> None:
        self.run_id: str | None = None
        self.is_done = False
        self._report = report
        self._mode: Mode | None = None
        self._plans = 0
        self._open: dict[str, _Step] = {}
        self._begun: set[str] = set()
        self._is_summed_up = False
        self._sent_at: float | None = None
        self._acted: str | None = None
        """The step of the event before, if that was an action."""

    def see(self, event: DexiEvent) -> None:
        if self.is_done:
            self._report("done_last", f"{event.type} follows done")
            return
        self._judge_time(event)
        if self._judge_mode(event):
            self._judge_place(event)
            self._judge(event)
        self._acted = event.step_id if isinstance(event, _ACTIONS) else None
        self._sent_at = seconds_of(event.timestamp)

    # -- when

    def _judge_time(self, event: DexiEvent) -> None:
        if self._sent_at is None:
            return
        silence = round(seconds_of(event.timestamp) - self._sent_at, 3)
        if silence < 0:
            self._report("time_order", f"{event.type} has a timestamp before the one of the event before it")
        if isinstance(event, Heartbeat) and silence < _QUIET:
            self._report("heartbeat_quiet", f"comes {max(silence, 0)} s after another event")
        if self._open and silence > _PACE:
            self._report("heartbeat_pace", f"{event.type} comes after {silence} s of silence in an open step")

    # -- where

    def _judge_mode(self, event: DexiEvent) -> bool:
        """Whether the event may be judged further."""
        if isinstance(event, ModeEvent):
            if self._mode is not None:
                self._report("mode_once", "is the second mode of its run")
                return False
            self.run_id, self._mode = event.run_id, event.mode
            return True
        if self._mode is None:
            self._report("mode_first", f"{event.type} came before any mode")
            self._mode = Mode.EXECUTION  # whatever it is, the rest can be judged as if it were this
        if self._mode is Mode.CHAT and not isinstance(event, OutputDelta | Done):
            self._report("chat_only", f"{event.type} came in chat mode")
            return False
        return True

    def _judge_place(self, event: DexiEvent) -> None:
        if isinstance(event, PlanNarrative | Done) and self.run_id is not None and event.run_id != self.run_id:
            self._report("run_id", f"{event.type} names another run")
        if self._mode is Mode.EXECUTION and not self._plans and isinstance(event, _PLANNED):
            self._report("plan_first", f"{event.type} came before any plan_narrative")
        if self._is_summed_up and not isinstance(event, Done):
            self._report("summary_last", f"{event.type} follows the summary")
        if isinstance(event, _IN_STEP) and event.step_id not in self._open:
            self._report("in_step", f"{event.type} names a step that is not open")

    # -- what

    def _judge(self, event: DexiEvent) -> None:
        match event:
            case PlanNarrative():
                self._plans += 1
                if self._plans > 1:
                    self._report("plan_once", "is not the first plan_narrative of its run")
            case StepStart():
                self._begin(event)
            case StepEnd():
                self._end(event)
            case ToolStart():
                self._start_tool(event)
            case ToolResult():
                self._end_tool(event)
            case NarrationDelta():
                if self._acted != event.step_id:
                    self._report("narration_action", "tells of no action in its step")
            case Heartbeat():
                if self._open and event.step_id in self._open and event.step_id != next(reversed(self._open)):
                    self._report("heartbeat_step", "names a step that is not the current one")
            case OutputDelta():
                if self._open:
                    self._report("output_outside", "comes while a step is open")
            case Summary():
                self._is_summed_up = True
                self._judge_closed("summary")
            case Done():
                self._finish()
            case _:
                pass

    def _begin(self, event: StepStart) -> None:
        if event.step_id in self._begun:
            self._report("step_unique", "begins a step under an id that was used before")
        self._begun.add(event.step_id)
        self._open[event.step_id] = _Step()

    def _end(self, event: StepEnd) -> None:
        step = self._open.pop(event.step_id, None)
        if step is None:
            self._report("step_known", "ends a step that is not open")
        elif step.awaits_result:
            self._report("tool_result", "ends a step whose tool has no result")

    def _start_tool(self, event: ToolStart) -> None:
        step = self._open.get(event.step_id, _Step())
        if step.tool_name is not None:
            self._report("tool_alone", "starts a second tool in its step")
        step.tool_name = event.tool_name
        step.awaits_result = True

    def _end_tool(self, event: ToolResult) -> None:
        step = self._open.get(event.step_id)
        if step is None:
            return
        if not step.awaits_result or step.tool_name != event.tool_name:
            self._report("tool_partner", "is the result of no tool that was started in its step")
        step.awaits_result = False

    def _judge_closed(self, ending: str) -> None:
        if self._open:
            self._report("step_closed", f"{ending} comes while a step is open")

    def _finish(self) -> None:
        self.is_done = True
        if self._mode is Mode.CHAT:
            return
        self._judge_closed("done")
        if not self._begun:
            self._report("step_some", "ends a run in execution mode that had no step")
        if not self._plans:
            self._report("plan_once", "ends a run in execution mode that had no plan_narrative")


_ACTIONS = (StepStart, ToolStart, ToolResult, ArtifactRead, ArtifactGenerated)
_IN_STEP = (NarrationDelta, ToolStart, ToolResult, ArtifactRead, ArtifactGenerated, Heartbeat)
_PLANNED = (StepStart, StepEnd, *_IN_STEP, OutputDelta, Summary)
