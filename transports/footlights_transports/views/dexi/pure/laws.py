"""Laws of narrated runs, and a checker for any recording of their events.

A recording holds what one client received, in that order: one run after another. The checker is independent of the
narrator, and never raises because of what it is given to judge.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from attrs import define, frozen

from footlights.errors import InvalidEvent
from footlights.laws.recording import parse_fault, parse_line
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
    StepOutcome,
    StepStart,
    Summary,
    ToolResult,
    ToolStart,
    seconds_of,
)
from footlights_transports.views.dexi.pure.schema import check_event

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from footlights_transports.views.dexi.pure.events import DexiEvent

DEXI_LAWS: Mapping[str, str] = MappingProxyType(
    {
        "json": "Each line of a recording is one JSON value in which no object names a field twice.",
        "schema": "Every event has every field of its type, each of its kind, and no other.",
        "mode_first": "The first event of a run is mode.",
        "mode_once": "A run has one mode, which never changes.",
        "run_id": "Every event that names a run names the one that its mode named.",
        "time_order": "Timestamps never go back.",
        "chat_only": "A run in chat mode has only output_delta between mode and done.",
        "plan_once": "A run in execution mode has exactly one plan_narrative.",
        "plan_first": "plan_narrative comes before any step, tool or output.",
        "step_unique": "A step_id is used for one step in a run.",
        "step_known": "Only a step that is open ends.",
        "step_closed": "Every step that began has ended before the summary and before done.",
        "step_some": "A run in execution mode has at least one step.",
        "in_step": "Every narration, tool and artifact event and every heartbeat names an open step.",
        "tool_alone": "A step has at most one tool call.",
        "tool_partner": "Each tool_result belongs to a tool_start of the same step and the same tool.",
        "tool_result": "Each tool_start has its tool_result before its step ends.",
        "narration_action": "Each narration_delta comes right after what it tells of, or right before its step fails.",
        "output_outside": "output_delta never comes while a step is open.",
        "heartbeat_quiet": "A heartbeat comes only after 2 seconds in which nothing was sent.",
        "heartbeat_pace": "While a step is open, something is sent at least every 5 seconds.",
        "heartbeat_step": "A heartbeat names the step that began last of those that are open.",
        "summary_last": "There is at most one summary, and only done follows it.",
        "done_last": "done comes once, and nothing of the run follows it.",
    }
)
"""Each law by its name."""

_QUIET = 2.0
_PACE = 5.0
_ACTIONS = (StepStart, ToolStart, ToolResult, ArtifactRead, ArtifactGenerated)
_IN_STEP = (NarrationDelta, ToolStart, ToolResult, ArtifactRead, ArtifactGenerated, Heartbeat)
_PLANNED = (StepStart, StepEnd, *_IN_STEP, OutputDelta, Summary)


@frozen
class DexiViolation:
    """One broken law. `event` counts the events of the recording from 1; None if the violation is a missing event."""

    law: str
    run_id: str | None
    event: int | None
    sentence: str

    def __str__(self) -> str:
        run = self.run_id if self.run_id is None or self.run_id.isprintable() else ascii(self.run_id)
        parts = (None if run is None else f"run {run}", None if self.event is None else f"event {self.event}")
        where = " ".join(part for part in parts if part is not None)
        return f"{self.law}: {where}: {self.sentence}" if where else f"{self.law}: {self.sentence}"


def check_dexi(events: Iterable[object], *, complete: bool = True, replayed: bool = False) -> list[DexiViolation]:
    """Every violation in what one client received, in that order. An empty list means a lawful recording.

    With `complete=False` the recording was cut short: its last run may be unfinished. With `replayed=True` some events
    were sent later than they were made, without their heartbeats: `heartbeat_pace` is not judged.
    """
    checker = _Checker(replayed=replayed)
    for event in events:
        checker.see(event)
    return checker.close(complete=complete)


def check_dexi_jsonl(
    lines: Iterable[str | bytes], *, complete: bool = True, replayed: bool = False
) -> list[DexiViolation]:
    """`check_dexi`, for a recording with one event a line. A line that cannot be read is a violation too."""
    checker = _Checker(replayed=replayed)
    for line in lines:
        checker.see_line(line)
    return checker.close(complete=complete)


class _Checker:
    """Reads a recording, and passes the events of each run to a checker of that run."""

    def __init__(self, *, replayed: bool) -> None:
        self._violations: list[DexiViolation] = []
        self._replayed = replayed
        self._number = 0
        self._run = _RunChecker(self._report)

    def see_line(self, line: str | bytes) -> None:
        try:
            document = parse_line(line)
        except (ValueError, RecursionError) as error:
            self._number += 1
            self._report("json", parse_fault(error))
        else:
            self.see(document)

    def see(self, document: object) -> None:
        self._number += 1
        try:
            event = check_event(document)
        except InvalidEvent as error:
            self._report("schema", str(error))
            return
        if isinstance(event, ModeEvent) and self._run.is_done:
            self._run = _RunChecker(self._report)
        self._run.see(event)

    def close(self, *, complete: bool) -> list[DexiViolation]:
        if complete and self._number and not self._run.is_done:
            self._violations.append(DexiViolation("done_last", self._run.run_id, None, "the run never ends"))
        return self._violations

    def _report(self, law: str, sentence: str) -> None:
        if not (self._replayed and law == "heartbeat_pace"):
            self._violations.append(DexiViolation(law, self._run.run_id, self._number, sentence))


@define
class _Step:
    tool_name: str | None = None
    """The tool that was started in the step."""
    awaits_result: bool = False


class _RunChecker:
    """Checks each event of one run against every law that is about it."""

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
        """The step of the previous event, if that event was an action."""
        self._told: str | None = None
        """The step of the previous event, if that was a narration of no action: then it must be why the step fails."""

    def see(self, event: DexiEvent) -> None:
        if self.is_done:
            self._report("done_last", f"{event.type} follows done")
            return
        self._judge_time(event)
        self._judge_told(event)
        if self._judge_mode(event):
            self._judge_place(event)
            self._judge(event)
        self._acted = event.step_id if isinstance(event, _ACTIONS) else None
        self._sent_at = seconds_of(event.timestamp)

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

    def _judge_told(self, event: DexiEvent) -> None:
        told, self._told = self._told, None
        fails = isinstance(event, StepEnd) and event.step_id == told and event.outcome is StepOutcome.FAILED
        if told is not None and not fails:
            self._report("narration_action", "follows a narration that tells of no action in its step")

    def _judge_mode(self, event: DexiEvent) -> bool:
        """Whether the event can be judged further."""
        if isinstance(event, ModeEvent):
            if self._mode is not None:
                self._report("mode_once", "is the second mode of its run")
                return False
            self.run_id, self._mode = event.run_id, event.mode
            return True
        if self._mode is None:
            self._report("mode_first", f"{event.type} came before any mode")
            self._mode = Mode.EXECUTION  # so that the rest can be judged
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

    def _judge(self, event: DexiEvent) -> None:
        match event:
            case PlanNarrative():
                self._plans += 1
                if self._plans > 1:
                    self._report("plan_once", "is not the first plan_narrative of its run")
            case StepStart():
                if event.step_id in self._begun:
                    self._report("step_unique", "begins a step under an id that was used before")
                self._begun.add(event.step_id)
                self._open[event.step_id] = _Step()
            case StepEnd() | ToolStart() | ToolResult():
                self._judge_step(event)
            case NarrationDelta():
                self._told = None if self._acted == event.step_id else event.step_id
            case Heartbeat():
                if event.step_id in self._open and event.step_id != next(reversed(self._open)):
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

    def _judge_step(self, event: StepEnd | ToolStart | ToolResult) -> None:
        step = self._open.get(event.step_id)
        match event:
            case StepEnd():
                self._open.pop(event.step_id, None)
                if step is None:
                    self._report("step_known", "ends a step that is not open")
                elif step.awaits_result:
                    self._report("tool_result", "ends a step whose tool has no result")
            case ToolStart() if step is not None:
                if step.tool_name is not None:
                    self._report("tool_alone", "starts a second tool in its step")
                step.tool_name, step.awaits_result = event.tool_name, True
            case ToolResult() if step is not None:
                if not step.awaits_result or step.tool_name != event.tool_name:
                    self._report("tool_partner", "is the result of no tool that was started in its step")
                step.awaits_result = False
            case _:
                pass

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
