"""Dialogue writer: translates the events of an answer into the chat events of one dialogue.

    writer.take(event, now)      pieces joined into chunks, then `message` or `error`, then `done`
    writer.fail(code, now)       `error`, `done`
    writer.abort(code, now)      the same, unless the dialogue is already done

Sequences count from 1 without a gap. Text that came before a failure is sent before the error; nothing follows `done`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights_transports.views.kgent.pure.messages import RECOVERY, ChatEvent, ErrorCode
from footlights_transports.views.kgent.pure.reader import AnswerPiece, AnswerText, Committed, Failed, Flush

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.events import JsonValue
    from footlights_transports.views.kgent.pure.messages import DialogueMode, EventKind
    from footlights_transports.views.kgent.pure.reader import AnswerEvent

MEANINGS: Mapping[ErrorCode, str] = {
    ErrorCode.RATE_LIMITED: "Token budget exhausted.",
    ErrorCode.STREAM_TIMEOUT: "Response exceeded timeout.",
    ErrorCode.LLM_UNAVAILABLE: "No LLM backend available.",
    ErrorCode.INVALID_MESSAGE: "Malformed input.",
    ErrorCode.SESSION_EXPIRED: "Session timed out.",
}


class DialogueWriter:
    """Writes one dialogue. `buffer_chunks` pieces of text are joined into one chunk."""

    def __init__(self, correlation_id: str | None, mode: DialogueMode, buffer_chunks: int) -> None:
        self.correlation_id = correlation_id
        self.mode = mode
        self.chunks: list[str] = []
        """The text of every chunk so far."""
        self._buffer_chunks = buffer_chunks
        self._pieces: list[str] = []
        self._sequence = 0
        self._stamp = 0.0
        self._is_done = False

    def take(self, event: AnswerEvent, now: float) -> list[ChatEvent]:
        match event:
            case AnswerPiece(text=text):
                self._pieces.append(text)
                # A full chunk does not wait for the next piece, so the final chunk may be empty.
                return self._rest(now) if len(self._pieces) == self._buffer_chunks else []
            case Flush():
                return self._rest(now)
            case AnswerText():
                return [self._chunk(now, final=True)]
            case Committed():
                return [self._message(event, now), self._done(now)]
            case Failed(code=code, meaning=meaning, cause=cause):
                if code is not None:
                    return self.fail(code, now, meaning=meaning, cause=cause)
                return [*self._rest(now), self._done(now)]

    def fail(
        self,
        code: ErrorCode,
        now: float,
        retry_after: int | None = None,
        meaning: str | None = None,
        cause: str | None = None,
    ) -> list[ChatEvent]:
        """End with an error. `retry_after` is in seconds; `meaning` replaces the standard text of the code."""
        payload: dict[str, JsonValue] = {"code": code.value, "message": f"{meaning or MEANINGS[code]} {RECOVERY[code]}"}
        if retry_after is not None:
            payload["retry_after_seconds"] = retry_after
        if cause is not None:
            payload["cause"] = cause
        payload["correlation_id"] = self.correlation_id
        return [*self._rest(now), self._event("error", payload, now), self._done(now)]

    def abort(self, code: ErrorCode, now: float) -> list[ChatEvent]:
        """End a dialogue whose task was canceled or failed; nothing if it has ended."""
        return [] if self._is_done else self.fail(code, now, meaning="The dialogue broke off.")

    def _rest(self, now: float) -> list[ChatEvent]:
        return [self._chunk(now, final=False)] if self._pieces else []

    def _chunk(self, now: float, *, final: bool) -> ChatEvent:
        text = "".join(self._pieces)
        self._pieces.clear()
        self.chunks.append(text)
        return self._event("chunk", {"content": text, "correlation_id": self.correlation_id, "final": final}, now)

    def _message(self, answer: Committed, now: float) -> ChatEvent:
        payload: dict[str, JsonValue] = {
            "content": answer.text,
            "turn_id": answer.turn_id,
            "mode": self.mode.value,
            "tokens_used": answer.tokens,
            "entropy_cost": answer.entropy_cost,
            "correlation_id": self.correlation_id,
        }
        if answer.template is not None:
            payload["template"] = answer.template
        if answer.cut:
            payload["cut"] = True
        if answer.approvals:
            payload["approvals"] = [each.document for each in answer.approvals]
        return self._event("message", payload, now)

    def _done(self, now: float) -> ChatEvent:
        self._is_done = True
        return self._event("done", {"total_chunks": len(self.chunks), "correlation_id": self.correlation_id}, now)

    def _event(self, event_type: EventKind, payload: Mapping[str, JsonValue], now: float) -> ChatEvent:
        self._sequence += 1
        self._stamp = max(self._stamp, now)
        return ChatEvent(event_type, payload, self._sequence, self._stamp)
