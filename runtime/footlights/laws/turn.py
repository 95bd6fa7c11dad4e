"""Turn of a recording: passes each event to the laws that concern it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.events import (
    CommitFinal,
    CommitOutcome,
    EventType,
    InterruptReason,
    ModelLoading,
    ModelReady,
    ModelSelected,
    Payload,
    StreamEvent,
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
    TurnFinal,
    TurnInterrupted,
)
from footlights.laws.commit import judge_commit
from footlights.laws.gap_places import Hidden
from footlights.laws.law_texts import RESTART_SEQ
from footlights.laws.models import Models
from footlights.laws.order import Order, State
from footlights.laws.sequence import Sequence
from footlights.laws.text import Text
from footlights.laws.tools import Tools

if TYPE_CHECKING:
    from footlights.laws.law_texts import Report

_FAILURES = frozenset(
    {
        InterruptReason.MODEL_ERROR,
        InterruptReason.TOOL_ERROR,
        InterruptReason.WORKLOAD_ERROR,
        InterruptReason.TIMEOUT,
        InterruptReason.STALLED,
    }
)
_AFTER_RESTART = frozenset({EventType.TURN_INTERRUPTED, EventType.TURN_FINAL, EventType.COMMIT_FINAL})


class Turn:
    def __init__(self, report: Report, *, seen: int, canceled: bool) -> None:
        self._report = report
        self._canceled = canceled
        self._hidden = Hidden()
        self._sequence = Sequence(report, self._hidden, seen)
        self._order = Order(report, resumed=seen >= 0)
        self._text = Text(report, self._hidden)
        self._tools = Tools(report, self._hidden)
        self._models = Models(report, self._hidden)
        self._mono_ts_ms = 0

    @property
    def committed(self) -> bool:
        return self._order.state is State.COMMITTED

    def see(self, seq: int, event_type: EventType | None, event: StreamEvent | None) -> None:
        """Judge the next event. `event` is None if it could not be read; then only its seq is judged."""
        if self.committed:
            self._order.step(seq, event_type)
            return
        ranges = None if event is None else event.payload.dropped_seq_ranges
        if not self._sequence.admit(seq, ranges, ended=self._order.state is State.ENDED):
            return
        self._judge_restart(seq, event_type)
        speaks = self._order.step(seq, event_type)
        if event is None:
            # Its content is unknown, so it may excuse one missing event.
            self._hidden.add(seq, seq)
            return
        self._judge_clock(seq, event.mono_ts_ms)
        if speaks:
            self._judge_payload(seq, event.payload)

    def close(self) -> None:
        """Judge the end of the recording."""
        self._order.close()

    def _judge_restart(self, seq: int, event_type: EventType | None) -> None:
        if seq >= RESTART_SEQ and event_type is not None and event_type not in _AFTER_RESTART:
            self._report("restart_seq", seq, f"{event_type} came where only a restart speaks")

    def _judge_clock(self, seq: int, mono_ts_ms: int) -> None:
        if mono_ts_ms < self._mono_ts_ms:
            self._report("mono_order", seq, f"has mono_ts_ms {mono_ts_ms} after {self._mono_ts_ms}")
        self._mono_ts_ms = mono_ts_ms

    def _judge_payload(self, seq: int, payload: Payload) -> None:
        match payload:
            case TokenDelta():
                self._models.used(seq)
                self._text.delta(seq, payload)
            case ModelSelected():
                self._models.selected(seq, payload)
            case ModelLoading():
                self._models.loading(seq, payload)
            case ModelReady():
                self._models.ready(seq, payload)
            case ToolCallStarted():
                self._models.used(seq)
                self._tools.started(seq, payload)
            case ToolCallResult():
                self._tools.result(seq, payload)
            case TurnInterrupted():
                if payload.error is not None and payload.reason not in _FAILURES:
                    self._report("failure_said", seq, f"says what was wrong with a turn that ended by {payload.reason}")
                self._tools.ended(seq)
                if payload.heard is not None:
                    self._text.heard(seq, payload.heard)
            case TurnFinal():
                self._judge_final(seq, payload)
            case CommitFinal():
                self._judge_commit(seq, payload)
            case _:
                pass

    def _judge_final(self, seq: int, payload: TurnFinal) -> None:
        if self._canceled:
            self._report("cancel_wins", seq, "ends a turn that was canceled as if it were not")
        self._models.used(seq)
        self._tools.ended(seq)
        if payload.text_forgotten or seq >= RESTART_SEQ:
            self._text.forgotten(seq, payload)
        else:
            self._text.final(seq, payload.text)

    def _judge_commit(self, seq: int, payload: CommitFinal) -> None:
        terminal = self._order.terminal
        if self._canceled and terminal is None and payload.commit_outcome is CommitOutcome.OK:
            self._report("cancel_wins", seq, "commits a turn that was canceled")
        judge_commit(self._report, seq, payload, terminal)
