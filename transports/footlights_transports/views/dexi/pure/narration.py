"""Narrator: turns the events of one turn into the events of a narrated run. Pure: no trio, no sockets.

    narrator = Narrator("t1-000001.s1-000001", decision, agent="analyst")
    narrator.begin(now)          mode; then the plan, or why nothing is executed
    narrator.take(event, now)    what an event of the turn adds
    narrator.silence(now)        a heartbeat, if one is due
    narrator.lose_sight(now)     the end, if the server closes before the outcome is known
    narrator.break_off(sent, now) the end, if one of these failed

`now` is in seconds since the epoch and never goes back. In execution mode there is a step from the selection of a model
to its first word or tool call, one for each tool call, and one for each silence in which no other is open. A run that
fails has a step that failed. Text is held back while a step is open and sent when it ends, so that all output together
is the text of the turn, or the part of it before an interruption. In chat mode there is only text, and if the turn
failed, a last sentence that says why.

If execution was requested and not authorized, a first `output_delta` explains that, before the model's text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from attrs import evolve

from footlights.authority.approval_news import ApprovalState, approval_news
from footlights.events import (
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    InterruptReason,
    ModelLoading,
    ModelReady,
    ModelSelected,
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
    TurnFinal,
    TurnInterrupted,
)
from footlights.modes import Candidate
from footlights.params import Mode
from footlights.redaction.redactor import Redactor
from footlights_transports.views.dexi.pure import templates as say
from footlights_transports.views.dexi.pure.events import (
    Done,
    Heartbeat,
    ModeEvent,
    OutputDelta,
    PlanNarrative,
    RunOutcome,
    StepEnd,
    StepOutcome,
    StepStart,
    Summary,
    ToolResult,
    ToolStart,
    timestamp,
    to_json,
)
from footlights_transports.views.dexi.pure.heartbeat import HEARTBEAT_AFTER
from footlights_transports.views.dexi.pure.redaction import SafeRedactor
from footlights_transports.views.dexi.pure.schema import check_event
from footlights_transports.views.dexi.pure.steps import Steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from footlights.authority.approval_news import ApprovalNews
    from footlights.events import Payload, StreamEvent
    from footlights.modes import ModeDecision
    from footlights_transports.views.dexi.pure.events import DexiEvent

_CANCELED = frozenset(
    {InterruptReason.CANCELED, InterruptReason.BARGE_IN, InterruptReason.SESSION_CLOSED, InterruptReason.SHUTDOWN}
)


class Narrator:
    """The narration of one turn. Each method returns the events to send, in order.

    `tools` are the tools of the agent, and their descriptions: the name of any other is not shown. If `checked`, each
    event is checked against its schema before it is returned; raises `InvalidEvent` then.
    """

    def __init__(
        self,
        run_id: str,
        decision: ModeDecision,
        *,
        agent: str | None = None,
        redactor: Redactor | None = None,
        tools: Mapping[str, str],
        checked: bool = True,
    ) -> None:
        self.run_id = run_id
        self.decision = decision
        self.is_done = False
        self._agent = agent
        self._tools = tools
        self._safe = SafeRedactor(redactor or Redactor())
        self._checked = checked
        self._out: list[DexiEvent] = []
        """What the current call sends."""
        self._steps = Steps(self._out.append, self._safe, tools)
        self._sent_at = 0.0
        self._held: list[str] = []
        """Text that waits for the open steps to end."""
        self._heard = 0
        """How many characters of the turn's text were sent or held."""
        self._has_gap = False
        """Whether a delta was missed. The rest of the text then comes from `turn_final`."""
        self._has_ended = False
        """Whether the turn has said all its text."""
        self._cut: StepOutcome | None = None
        """How the turn was interrupted, if it was."""
        self._failure: ErrorInfo | None = None
        """Why the turn failed, if it did and said so."""
        self._news: tuple[ApprovalNews, ...] = ()
        """What the commit says about acts that need an approval."""
        self._is_cut = False
        """Whether the turn's text was cut at its limit of tokens."""
        self._is_forgotten = False
        """Whether the end comes from the ledger, which keeps no steps."""

    @property
    def is_execution(self) -> bool:
        return self.decision.mode is Mode.EXECUTION

    @property
    def heartbeat_at(self) -> float | None:
        """When a heartbeat is due if nothing is sent before; None if none will be."""
        works = self.is_execution and not self.is_done and (self._steps.any_open or not self._has_ended)
        return self._sent_at + HEARTBEAT_AFTER if works else None

    def begin(self, now: float) -> list[DexiEvent]:
        """The first events, before any of the turn."""
        self._out.append(ModeEvent(self.run_id, self.decision.mode))
        if self.is_execution:
            self._out.append(PlanNarrative(self.run_id, self._safe(say.plan(self.decision, self._agent, self._tools))))
        elif self.decision.candidate is Candidate.EXECUTION:
            self._out.append(OutputDelta(self._safe(say.denied(self.decision, self._tools))))
        return self._sent(now)

    def take(self, event: StreamEvent, now: float) -> list[DexiEvent]:
        """What this event of the turn adds, which may be nothing."""
        if not self.is_done:
            if self.is_execution:
                self._tell_steps(event.payload)
            self._tell_text(event.payload)
        return self._sent(now)

    def silence(self, now: float) -> list[DexiEvent]:
        """A heartbeat if one is due; if no step is open that could have one, the start of a step."""
        due = self.heartbeat_at
        if due is not None and now >= due:
            self._steps.beat()
        return self._sent(now)

    def lose_sight(self, now: float) -> list[DexiEvent]:
        """The end of a run whose outcome will never be known, because the server closes."""
        if not self.is_done:
            self._end(RunOutcome.UNKNOWN)
        return self._sent(now)

    def _sent(self, now: float) -> list[DexiEvent]:
        stamp = timestamp(now)
        events = [evolve(event, timestamp=stamp) for event in self._out]
        self._out.clear()
        if self._checked:
            for event in events:
                check_event(to_json(event))
        if events:
            self._sent_at = now
            self.is_done = isinstance(events[-1], Done)
        return events

    def _tell_steps(self, payload: Payload) -> None:
        steps = self._steps
        match payload:
            case ModelSelected():
                steps.model_selected(payload.model_id, payload.error)
            case ModelLoading():
                steps.model_shown(payload.model_id)
            case ModelReady():
                steps.model_shown(payload.model_id)
                steps.model_ready()
            case TokenDelta():
                steps.end_waiting(StepOutcome.COMPLETED)
            case ToolCallStarted():
                steps.end_waiting(StepOutcome.COMPLETED)
                steps.tool_started(payload.tool_call_id, payload.tool_name)
            case ToolCallResult():
                steps.tool_ended(payload)
            case TurnFinal():
                # A ledger keeps no steps: how those that were seen to begin have ended is not known.
                steps.close(StepOutcome.UNKNOWN if payload.text_forgotten else StepOutcome.COMPLETED)
            case TurnInterrupted():
                cut = _cut_by(payload)
                if cut is StepOutcome.FAILED and payload.reason is not InterruptReason.TOOL_ERROR:
                    steps.begin_answer()
                    steps.tell_failure(payload.error)
                steps.close(cut)
            case _:
                pass

    def _tell_text(self, payload: Payload) -> None:
        match payload:
            case TokenDelta():
                self._has_gap = self._has_gap or payload.offset != self._heard
                if not self._has_gap:
                    self._hear(payload.delta)
            case TurnFinal():
                self._has_ended = True
                self._is_cut = payload.cut
                self._is_forgotten = payload.text_forgotten
                self._hear(payload.text[self._heard :])
            case TurnInterrupted():
                self._has_ended = True
                self._cut = _cut_by(payload)
                self._failure = payload.error
                self._is_forgotten = payload.text_forgotten
            case _:
                pass
        self._send_held()
        if isinstance(payload, CommitFinal):
            self._news = approval_news(payload)
            if self._cut is None and payload.issues:
                self._failure = ErrorInfo(payload.issues[0].code, payload.issues[0].message)
            self._end(self._outcome(payload))

    def _hear(self, text: str) -> None:
        self._held.append(text)
        self._heard += len(text)

    def _send_held(self) -> None:
        if not self._steps.any_open and (text := "".join(self._held)):
            self._held.clear()
            if self.is_execution:
                self._steps.ensure_one(StepOutcome.COMPLETED)
            self._out.append(OutputDelta(text))

    def _end(self, outcome: RunOutcome) -> None:
        if self.is_execution:
            self._steps.close(StepOutcome.UNKNOWN)
            self._send_held()
            for each in self._news:
                self._steps.tell_news(each)
            self._steps.ensure_one(StepOutcome(outcome.value))
            why = say.decided(self._news) if self._failure is None else say.failed(self._failure)
            self._steps.sum_up(outcome, why, is_cut=self._is_cut, is_forgotten=self._is_forgotten)
        else:
            self._tell_asides()
        self._out.append(Done(self.run_id, outcome))

    def _tell_asides(self) -> None:
        """What follows the answer of a chat: nothing but text may stand there, so it is added to it."""
        if self._failure is not None and self._cut is not None:
            self._out.append(OutputDelta(self._safe(say.broke_off(self._failure, has_text=self._heard > 0))))
            return
        if self._is_cut:
            self._out.append(OutputDelta(say.CUT_ASIDE))
        refused = [] if self._failure is None else [say.refused(self._failure)]
        for aside in (*refused, *map(say.news_aside, self._news)):
            self._out.append(OutputDelta(self._safe(aside)))

    def _outcome(self, commit: CommitFinal) -> RunOutcome:
        if self._cut is not None:
            return RunOutcome(self._cut.value)
        if commit.commit_outcome is not CommitOutcome.OK:
            return RunOutcome.FAILED
        waits = any(each.state is ApprovalState.PENDING for each in self._news)
        return RunOutcome.WAITING if waits else RunOutcome.COMPLETED

    def break_off(self, shown: Iterable[DexiEvent], now: float) -> list[DexiEvent]:
        """The end of a run whose narration failed, in fixed sentences that cannot fail again.

        It ends the steps that are open by what was shown, since the narrator may know steps that were never shown. The
        outcome is unknown: the turn itself may be committed all the same.
        """
        return _broken_end(self.run_id, shown, now)

    @staticmethod
    def is_end(event: DexiEvent) -> bool:
        return isinstance(event, Done)

    @staticmethod
    def is_heartbeat(event: DexiEvent) -> bool:
        return isinstance(event, Heartbeat)

    @staticmethod
    def write(place: int, event: DexiEvent) -> bytes:
        """The event as a Server-Sent Event; its id is its place."""
        return b"id: %d\nevent: %b\ndata: %b\n\n" % (place, event.type.encode(), orjson.dumps(to_json(event)))


def _cut_by(interrupted: TurnInterrupted) -> StepOutcome:
    return StepOutcome.CANCELED if interrupted.reason in _CANCELED else StepOutcome.FAILED


def _broken_end(run_id: str, sent: Iterable[DexiEvent], now: float) -> list[DexiEvent]:
    open_steps: dict[str, str | None] = {}
    """By step_id, the tool that has no result yet."""
    is_execution, has_steps = False, False
    for event in sent:
        match event:
            case ModeEvent():
                is_execution = event.mode is Mode.EXECUTION
            case StepStart():
                has_steps = True
                open_steps[event.step_id] = None
            case ToolStart():
                open_steps[event.step_id] = event.tool_name
            case ToolResult():
                open_steps[event.step_id] = None
            case StepEnd():
                del open_steps[event.step_id]
            case _:
                pass
    stamp = timestamp(now)
    end: list[DexiEvent] = []
    if is_execution and not has_steps:
        open_steps["step-1"] = None
        end.append(StepStart("step-1", say.ANSWER, stamp))
    for step_id, tool_name in open_steps.items():
        if tool_name is not None:
            end.append(ToolResult(step_id, tool_name, say.NO_RESULT, redactions_applied=False, timestamp=stamp))
        end.append(StepEnd(step_id, StepOutcome.FAILED, stamp))
    if is_execution:
        end.append(Summary(say.BROKEN_OFF, stamp))
    return [*end, Done(run_id, RunOutcome.UNKNOWN, stamp)]
