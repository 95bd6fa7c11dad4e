"""What the core's events of one turn mean for a dialogue. Pure: no trio.

    reading.take(event)      pieces of text as they come, all of it at `turn_final`, how it ended at `commit_final`
    reading.is_waiting       whether turns of others come first

If deltas are missing, nothing is told from the hole on, until `turn_final` says it all: joined, the pieces are always
the text of the turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, cast

from attrs import frozen

from footlights.errors import RateLimitError
from footlights.events import (
    CommitFinal,
    CommitOutcome,
    Ext,
    InterruptReason,
    TokenDelta,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
)
from footlights.ids import in_order
from footlights_transports.views.kgent.pure.messages import ErrorCode
from footlights_transports.views.kgent.pure.templates import TemplateUse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from footlights.events import StreamEvent

NAMESPACE = "ext.footlights.kgent"
"""Where a delta says that it comes from a template."""

ERROR_CODES: Mapping[InterruptReason, ErrorCode | None] = {
    InterruptReason.CANCELED: None,
    InterruptReason.BARGE_IN: None,
    InterruptReason.MODEL_ERROR: ErrorCode.LLM_UNAVAILABLE,
    InterruptReason.TOOL_ERROR: ErrorCode.LLM_UNAVAILABLE,
    InterruptReason.WORKLOAD_ERROR: ErrorCode.LLM_UNAVAILABLE,
    InterruptReason.TIMEOUT: ErrorCode.STREAM_TIMEOUT,
    InterruptReason.STALLED: ErrorCode.STREAM_TIMEOUT,
    InterruptReason.SESSION_CLOSED: ErrorCode.SESSION_EXPIRED,
    InterruptReason.SHUTDOWN: ErrorCode.SESSION_EXPIRED,
    InterruptReason.RUNTIME_RESTART: ErrorCode.SESSION_EXPIRED,
}
"""What a dialogue is told of an interruption; None if it only ends: somebody wanted it to."""

_MEANINGS: Mapping[InterruptReason, str] = {
    InterruptReason.TOOL_ERROR: "A tool that the answer needs failed.",
    InterruptReason.WORKLOAD_ERROR: "What makes the answer failed.",
}
_NOT_COMMITTED = "The answer was not committed, and does not count."


@frozen
class Spoke:
    """The next piece of the answer."""

    text: str


@frozen
class SpokeAll:
    """The answer is whole. Nothing says yet whether it counts."""

    turn_id: str
    text: str
    tokens: int
    """As the core counts; none if no model spoke."""
    template: TemplateUse | None = None
    """Why it is one, if it is."""


@frozen
class Committed:
    """The answer counts."""

    turn_id: str
    commit_digest: str


@frozen
class BrokeOff:
    """There is no whole answer that counts."""

    code: ErrorCode | None
    """Why; None if it was canceled."""
    said_something: bool = False
    """Whether a part of it was told, or that it is whole and empty."""
    asks_later: bool = False
    """Whether the model only wants to be asked again later."""
    meaning: str | None = None
    """What is wrong, where the code alone would say something else."""


SoulEvent: TypeAlias = Spoke | SpokeAll | Committed | BrokeOff
"""What happens to an answer: pieces, then all of it and that it counts; or that it broke off, at any point."""


class TurnReading:
    """One turn of the core, read as an answer. Of other turns it only counts those that come first."""

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self.is_over = False
        """Whether it has ended, one way or the other."""
        self._ahead = 0
        self._end = 0
        self._has_hole = False
        self._template: TemplateUse | None = None
        self._is_whole = False
        self._cut: TurnInterrupted | None = None

    def take(self, event: StreamEvent) -> Iterator[SoulEvent]:
        if event.turn_id != self.turn_id:
            self._pass_over(event)
            return
        self._ahead = event.payload.turns_ahead if isinstance(event.payload, TurnAccepted) else 0
        match event.payload:
            case TokenDelta(delta=delta, offset=offset, ext=ext):
                self._template = self._template or _template(ext)
                self._has_hole = self._has_hole or offset != self._end
                if not self._has_hole:
                    yield self._piece(delta)
            case TurnFinal(text_forgotten=True):
                pass  # it says how the turn ended, and nothing that could be the answer
            case TurnFinal(text=text, output_tokens=output_tokens):
                if text[self._end :]:
                    yield self._piece(text[self._end :])
                self._is_whole = True
                tokens = 0 if self._template or output_tokens is None else output_tokens
                yield SpokeAll(event.turn_id, text, tokens, self._template)
            case TurnInterrupted() as cut:
                self._cut = cut
            case CommitFinal() as commit:
                yield self._ending(commit)
            case _:
                pass

    def lose_sight(self) -> BrokeOff:
        """The core will not tell how it ended."""
        self.is_over = True
        return BrokeOff(ErrorCode.SESSION_EXPIRED, self._said_something)

    @property
    def is_waiting(self) -> bool:
        """Whether turns that began before it must end before it runs."""
        return self._ahead > 0

    def _pass_over(self, event: StreamEvent) -> None:
        # Later ones may be settled before it: they ran beside the others, or were canceled.
        if isinstance(event.payload, CommitFinal) and in_order(event.turn_id) < in_order(self.turn_id):
            self._ahead = max(self._ahead - 1, 0)

    @property
    def _said_something(self) -> bool:
        return self._end > 0 or self._is_whole

    def _piece(self, text: str) -> Spoke:
        self._end += len(text)
        return Spoke(text)

    def _ending(self, commit: CommitFinal) -> SoulEvent:
        self.is_over = True
        said_something = self._said_something
        if self._cut is not None:
            asks_later = self._cut.detail == RateLimitError.code
            reason = self._cut.reason
            return BrokeOff(ERROR_CODES[reason], said_something, asks_later, _MEANINGS.get(reason))
        if not self._is_whole:  # its words are forgotten
            return BrokeOff(ErrorCode.SESSION_EXPIRED, said_something)
        if commit.commit_outcome is not CommitOutcome.OK:
            return BrokeOff(ErrorCode.LLM_UNAVAILABLE, said_something, meaning=_NOT_COMMITTED)
        return Committed(self.turn_id, commit.commit_digest)


def _template(ext: Ext | None) -> TemplateUse | None:
    if ext is None or ext.namespace != NAMESPACE or not isinstance(ext.data, dict):
        return None
    use = cast("dict[str, object]", ext.data).get("template")
    return next((each for each in TemplateUse if each == use), None)
