"""The Dexi dialect: what the core's events of one turn look like as a narrated run. Pure: no trio, no sockets.

    run = DexiRun("r1-000001", decision, agent="analyst")
    run.begin(now)           mode; then the plan, or why nothing is run
    run.take(event, now)     what an event of the turn adds
    run.silent(now)          a heartbeat, if it is time for one
    run.lose_sight(now)      the end, when the core will not tell how the turn ended
    run.break_off(now)       the end, when telling it has failed

`now` is in seconds since the epoch and never goes back. In execution mode there is a step from the selection of a model
to its first word or tool call, one for each tool call, and one for each silence in which no other is open. A run that
fails has a step that failed. Text is held back while a step is open, and none of it is lost: all of it together
is the text of the turn, or what was said before it was interrupted. In chat mode there is text, and nothing else.

Execution that was asked for and not authorized is explained in an `output_delta` of its own, before the model's words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.events import (
    CommitFinal,
    CommitOutcome,
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
    ModeEvent,
    OutputDelta,
    PlanNarrative,
    RunOutcome,
    StepOutcome,
    timestamp,
    to_json,
)
from footlights_transports.views.dexi.pure.redaction import Blotter
from footlights_transports.views.dexi.pure.schema import check_event
from footlights_transports.views.dexi.pure.sent import Sent
from footlights_transports.views.dexi.pure.steps import Steps
from footlights_transports.views.dexi.pure.text import Text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from footlights.events import Payload, StreamEvent
    from footlights.modes import ModeDecision
    from footlights_transports.views.dexi.pure.events import DexiEvent

HEARTBEAT_AFTER = 2.4
"""So many seconds of silence make a heartbeat. It must be 2 at least; and 5 at most, also if one is left out."""

_CANCELED = frozenset(
    {InterruptReason.CANCELED, InterruptReason.BARGE_IN, InterruptReason.SESSION_CLOSED, InterruptReason.SHUTDOWN}
)
_RUN_OUTCOMES: Mapping[StepOutcome, RunOutcome] = {
    StepOutcome.CANCELED: RunOutcome.CANCELED,
    StepOutcome.FAILED: RunOutcome.FAILED,
}


class DexiRun:
    """One turn as a narrated run. Each method returns what is to be sent, in order.

    `tools` are the names that exist: of a call of any other nothing is shown that a model came up with.
    `checked` says whether each event is held to its schema before it is returned; `InvalidEvent` is raised then.
    """

    def __init__(
        self,
        run_id: str,
        decision: ModeDecision,
        *,
        agent: str | None = None,
        redactor: Redactor | None = None,
        tools: Collection[str] | None = None,
        checked: bool = True,
    ) -> None:
        self.run_id = run_id
        self.decision = decision
        self.is_done = False
        self._agent = agent
        self._safe = Blotter(redactor or Redactor())
        self._checked = checked
        self._steps = Steps(self._safe, tools)
        self._text = Text()
        self._cut: StepOutcome | None = None
        """How the turn was interrupted, if it was."""
        self._sent_so_far = Sent()
        self._is_said = False
        """Whether the turn has said all it will say."""

    @property
    def is_execution(self) -> bool:
        return self.decision.mode is Mode.EXECUTION

    @property
    def heartbeat_at(self) -> float | None:
        """When a sign of life is due if nothing else is sent before; None if none will be."""
        works = self.is_execution and not self.is_done and (self._steps.any_open or not self._is_said)
        return self._sent_so_far.at + HEARTBEAT_AFTER if works else None

    # -- in

    def begin(self, now: float) -> list[DexiEvent]:
        """The first events, before anything of the turn."""
        return self._sent(self._opening(timestamp(now)), now)

    def take(self, event: StreamEvent, now: float) -> list[DexiEvent]:
        """What this event of the turn adds, which may be nothing."""
        return [] if self.is_done else self._sent(self._told(event.payload, timestamp(now)), now)

    def silent(self, now: float) -> list[DexiEvent]:
        """A heartbeat, if one is due; or, if no step is open that could have one, a step that does."""
        due = self.heartbeat_at
        return [] if due is None or now < due else self._sent([self._steps.sign_of_life(timestamp(now))], now)

    def lose_sight(self, now: float) -> list[DexiEvent]:
        """Nobody will tell how the turn ended: the server closes."""
        return [] if self.is_done else self._sent(self._ending(RunOutcome.UNKNOWN, timestamp(now)), now)

    def break_off(self, now: float) -> list[DexiEvent]:
        """Telling the turn has failed: what is open ends, in words that are always the same.

        The run is of unknown outcome: the turn itself may be committed all the same.
        """
        if self.is_done:
            return []
        self.is_done = True
        stamp = timestamp(now)
        ending = self._sent_so_far.broken_run(stamp) if self.is_execution else ()
        return [*ending, Done(self.run_id, RunOutcome.UNKNOWN, stamp)]

    # -- out

    def _sent(self, told: Iterable[DexiEvent], now: float) -> list[DexiEvent]:
        events = list(told)
        if self._checked:
            for event in events:
                check_event(to_json(event))
        for event in events:
            self._sent_so_far.note(event, now)
        self.is_done = isinstance(events[-1], Done) if events else self.is_done
        return events

    def _opening(self, stamp: str) -> Iterator[DexiEvent]:
        yield ModeEvent(self.run_id, self.decision.mode, stamp)
        if self.is_execution:
            yield PlanNarrative(self.run_id, self._safe(say.plan(self.decision, self._agent)), stamp)
        elif self.decision.candidate is Candidate.EXECUTION:
            yield OutputDelta(self._safe(say.denied(self.decision)), stamp)

    def _told(self, payload: Payload, stamp: str) -> Iterator[DexiEvent]:
        if self.is_execution:
            yield from self._step(payload, stamp)
        match payload:
            case TokenDelta():
                self._text.hear(payload.delta, payload.offset)
                yield from self._output(stamp)
            case TurnFinal():
                self._is_said = True
                self._text.hear_all(payload.text)
                yield from self._output(stamp)
            case ToolCallResult():
                yield from self._output(stamp)
            case TurnInterrupted():
                self._is_said = True
                self._cut = _cut_by(payload)
                yield from self._output(stamp)
            case CommitFinal():
                yield from self._ending(self._outcome(payload), stamp)
            case _:
                pass

    def _step(self, payload: Payload, stamp: str) -> Iterator[DexiEvent]:
        steps = self._steps
        match payload:
            case ModelSelected():
                yield from steps.model_selected(payload.model_id, stamp)
            case ModelLoading():
                yield from steps.model_shown(payload.model_id, stamp)
            case ModelReady():
                yield from steps.model_shown(payload.model_id, stamp)
                steps.model_is_ready()
            case TokenDelta():
                yield from steps.waiting_over(StepOutcome.COMPLETED, stamp)
            case ToolCallStarted():
                yield from steps.waiting_over(StepOutcome.COMPLETED, stamp)
                yield from steps.tool_started(payload.tool_call_id, payload.tool_name, stamp)
            case ToolCallResult():
                yield from steps.tool_ended(payload, stamp)
            case TurnFinal():
                # From a ledger nobody knows what became of the steps that were seen to begin.
                ended = StepOutcome.UNKNOWN if payload.text_forgotten else StepOutcome.COMPLETED
                yield from steps.close(ended, stamp)
            case TurnInterrupted():
                cut, tool_failed = _cut_by(payload), payload.reason is InterruptReason.TOOL_ERROR
                if cut is StepOutcome.FAILED and not tool_failed:
                    yield from steps.answer_begins(stamp)
                yield from steps.close(cut, stamp)
            case _:
                pass

    def _output(self, stamp: str) -> Iterator[DexiEvent]:
        if not self._steps.any_open and (text := self._text.take()):
            if self.is_execution:
                yield from self._steps.at_least_one(StepOutcome.COMPLETED, stamp)
            yield OutputDelta(text, stamp)

    def _ending(self, outcome: RunOutcome, stamp: str) -> Iterator[DexiEvent]:
        if self.is_execution:
            yield from self._steps.close(StepOutcome.UNKNOWN, stamp)
            yield from self._output(stamp)
            yield from self._steps.at_least_one(StepOutcome(outcome.value), stamp)
            yield self._steps.summary(outcome, stamp)
        yield Done(self.run_id, outcome, stamp)

    def _outcome(self, commit: CommitFinal) -> RunOutcome:
        if self._cut is not None:
            return _RUN_OUTCOMES[self._cut]
        return RunOutcome.COMPLETED if commit.commit_outcome is CommitOutcome.OK else RunOutcome.FAILED


def _cut_by(interrupted: TurnInterrupted) -> StepOutcome:
    return StepOutcome.CANCELED if interrupted.reason in _CANCELED else StepOutcome.FAILED
