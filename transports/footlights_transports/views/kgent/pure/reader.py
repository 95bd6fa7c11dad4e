"""Dialogue reader: translates the core's events of one turn into events of an answer.

    reader.take(event)      text as it arrives, `AnswerText` at `turn_final`, the outcome at `commit_final`
    reader.is_waiting       whether earlier turns of the session must end first

If deltas are missing, the reader emits no text from the gap on until `turn_final`, which holds the whole text. So the
joined pieces are always the text of the turn.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, TypeAlias, cast

from attrs import frozen

from footlights.authority.approval_news import ApprovalState, approval_news
from footlights.events import (
    CommitFinal,
    CommitOutcome,
    Ext,
    InterruptReason,
    TokenDelta,
    ToolCallResult,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
)
from footlights.failure_texts import UNSPECIFIC, known
from footlights.ids import in_order
from footlights_transports.views.kgent.pure.messages import ErrorCode
from footlights_transports.views.kgent.pure.templates import TemplateUse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from footlights.authority.approval_news import ApprovalNews
    from footlights.events import StreamEvent

NAMESPACE = "ext.footlights.kgent"
"""The extension namespace in which a delta is marked as a template's."""

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
"""The error code for each reason of an interruption; None for a cancellation, which is no error."""

_MEANINGS: Mapping[InterruptReason, str] = {
    InterruptReason.TOOL_ERROR: "A tool that the answer needs failed.",
    InterruptReason.WORKLOAD_ERROR: "What makes the answer failed.",
}
_NOT_COMMITTED = "The answer was not committed, and does not count."
_TOKENS_PER_ENTROPY = 1_000


@frozen
class AnswerPiece:
    """The next piece of the answer's text."""

    text: str
    is_last: bool = False
    """Whether no other follows, as behind the text of a template."""


@frozen
class AnswerText:
    """The text is complete. Its commit is still pending."""

    tokens: int
    """Output tokens as the core counts them; 0 for a template."""


@frozen
class Committed:
    """The answer is complete and committed."""

    turn_id: str
    text: str
    tokens: int
    commit_digest: str
    template: TemplateUse | None = None
    """Why a template answered, if one did."""
    cut: bool = False
    """Whether the text was cut at its limit of tokens."""
    approvals: tuple[ApprovalNews, ...] = ()
    """What the commit says about acts that need an approval."""
    acted: bool = False
    """Whether a tool ran or something was approved, so that the commit may have changed the world."""

    @property
    def entropy_cost(self) -> float:
        return self.tokens / _TOKENS_PER_ENTROPY


@frozen
class Failed:
    """There is no complete, committed answer."""

    code: ErrorCode | None
    """The reason; None for a cancellation."""
    has_begun: bool = False
    """Whether a part of the answer was emitted, a tool was called, or an empty answer was complete."""
    meaning: str | None = None
    """What is wrong, where that is known better than by the standard text of the code."""
    cause: str | None = None
    """The code of the failure of the turn, such as `model_unreachable`."""


@frozen
class Flush:
    """The pieces so far are to be sent, without waiting for more."""


AnswerEvent: TypeAlias = AnswerPiece | Flush | AnswerText | Committed | Failed
"""An answer is pieces, `AnswerText`, `Committed`; `Failed` may end it at any point before that."""

MAX_WAIT = 0.1
"""Seconds that a piece may wait for more, to become a chunk with them."""


class Patience:
    """When the pieces of one answer have waited long enough: the first at once, each later one after `MAX_WAIT`."""

    def __init__(self) -> None:
        self.until = inf
        """When the piece that has waited for longest has."""
        self._wait = 0.0

    def note(self, event: AnswerEvent, now: float) -> None:
        if isinstance(event, AnswerPiece) and not event.is_last and self.until == inf:
            self.until, self._wait = now + self._wait, MAX_WAIT

    def flushes(self, now: float) -> list[AnswerEvent]:
        """A flush, if it is time for one."""
        if self.until > now:
            return []
        self.until = inf
        return [Flush()]


class DialogueReader:
    """Reads one turn. Of the other turns of the session it only counts those that run first."""

    def __init__(self, turn_id: str) -> None:
        self.turn_id = turn_id
        self.is_over = False
        """Whether the turn has ended."""
        self._ahead = 0
        self._end = 0
        self._has_gap = False
        self._template: TemplateUse | None = None
        self._acted = False
        self._final: TurnFinal | None = None
        self._interrupted: TurnInterrupted | None = None

    def take(self, event: StreamEvent) -> Iterator[AnswerEvent]:
        if event.turn_id != self.turn_id:
            self._count_others(event)
            return
        self._ahead = event.payload.turns_ahead if isinstance(event.payload, TurnAccepted) else 0
        match event.payload:
            case TokenDelta(delta=delta, offset=offset, ext=ext):
                self._template = self._template or _template(ext)
                self._has_gap = self._has_gap or offset != self._end
                if not self._has_gap:
                    yield self._piece(delta)
            case TurnFinal(text_forgotten=True):
                pass  # the text is gone, so this turn has no answer
            case TurnFinal() as final:
                self._final = final
                if rest := final.text[self._end :]:
                    yield self._piece(rest)
                yield AnswerText(self._tokens)
            case ToolCallResult():
                self._acted = True
            case TurnInterrupted() as interrupted:
                self._interrupted = interrupted
            case CommitFinal() as commit:
                self.is_over = True
                yield self._outcome(commit)
            case _:
                pass

    def lose_sight(self) -> Failed:
        """Called when no more events will come, so that the outcome stays unknown."""
        self.is_over = True
        return Failed(ErrorCode.SESSION_EXPIRED, self._has_begun)

    @property
    def is_waiting(self) -> bool:
        """Whether turns that began before this one must end before it runs."""
        return self._ahead > 0

    def _count_others(self, event: StreamEvent) -> None:
        # Later turns may be settled before this one: they ran concurrently, or were canceled.
        if isinstance(event.payload, CommitFinal) and in_order(event.turn_id) < in_order(self.turn_id):
            self._ahead = max(self._ahead - 1, 0)

    @property
    def _has_begun(self) -> bool:
        return self._end > 0 or self._final is not None or self._acted

    @property
    def _tokens(self) -> int:
        return 0 if self._template or self._final is None else self._final.output_tokens or 0

    def _piece(self, text: str) -> AnswerPiece:
        self._end += len(text)
        return AnswerPiece(text, is_last=self._template is not None)

    def _outcome(self, commit: CommitFinal) -> AnswerEvent:
        if self._interrupted is not None:
            reason, why = self._interrupted.reason, self._interrupted.error
            says_more = why is not None and why != known(UNSPECIFIC.get(reason))
            cause, meaning = (why.code, why.message) if why is not None and says_more else (None, None)
            return Failed(ERROR_CODES[reason], self._has_begun, _MEANINGS.get(reason, meaning), cause)
        if self._final is None:
            return Failed(ErrorCode.SESSION_EXPIRED, self._has_begun)
        if commit.commit_outcome is not CommitOutcome.OK:
            meaning = " ".join([_NOT_COMMITTED, *(each.message for each in commit.issues[:1])])
            cause = commit.issues[0].code if commit.issues else None
            return Failed(ErrorCode.LLM_UNAVAILABLE, self._has_begun, meaning=meaning, cause=cause)
        news = approval_news(commit)
        return Committed(
            self.turn_id,
            self._final.text,
            self._tokens,
            commit.commit_digest,
            self._template,
            self._final.cut,
            news,
            self._acted or any(each.state is ApprovalState.APPROVED for each in news),
        )


def _template(ext: Ext | None) -> TemplateUse | None:
    if ext is None or ext.namespace != NAMESPACE or not isinstance(ext.data, dict):
        return None
    use = cast("dict[str, object]", ext.data).get("template")
    return next((each for each in TemplateUse if each == use), None)
