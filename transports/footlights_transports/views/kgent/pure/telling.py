"""A dialogue as it is told to whoever observes it. Pure: no trio.

    telling.take(event, now)                 pieces are joined into chunks; the last one says so, and may be empty
    telling.complete(turn, ..., now)         `message`, then `done`
    telling.fail(code, now, retry_after)     `error`, then `done`
    telling.end(now)                         `done` alone: it was canceled
    telling.rest(now)                        what waits to be joined with more, if somebody else tells the end

Sequences count from 1 without a gap. What was said before a dialogue broke off is told, and after `done` nothing is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights_transports.views.kgent.pure.messages import RECOVERY, ChatChunk, ChatEvent, ErrorCode
from footlights_transports.views.kgent.pure.reading import Spoke, SpokeAll

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.events import JsonValue
    from footlights_transports.views.kgent.pure.messages import DialogueMode, EventKind
    from footlights_transports.views.kgent.pure.reading import SoulEvent
    from footlights_transports.views.kgent.pure.record import Turn

MEANINGS: Mapping[ErrorCode, str] = {
    ErrorCode.RATE_LIMITED: "Token budget exhausted.",
    ErrorCode.STREAM_TIMEOUT: "Response exceeded timeout.",
    ErrorCode.LLM_UNAVAILABLE: "No LLM backend available.",
    ErrorCode.INVALID_MESSAGE: "Malformed input.",
    ErrorCode.SESSION_EXPIRED: "Session timed out.",
}


class Telling:
    """One dialogue. `buffer_chunks` pieces of text make one chunk."""

    def __init__(self, correlation_id: str | None, mode: DialogueMode, buffer_chunks: int) -> None:
        self.correlation_id = correlation_id
        self.mode = mode
        self.chunks: list[ChatChunk] = []
        """All that were told."""
        self._buffer_chunks = buffer_chunks
        self._pieces: list[str] = []
        self._sequence = 0
        self._stamp = 0.0

    def take(self, event: SoulEvent, now: float) -> list[ChatEvent]:
        """What a piece of the answer, or its end, adds. How the dialogue ends is for the other methods to say."""
        if isinstance(event, SpokeAll):
            return [self._chunk(now, final=True)]
        if isinstance(event, Spoke):
            self._pieces.append(event.text)
        # As soon as there are enough, and not only when more come: the last chunk may be empty, and none is late.
        return self.rest(now) if len(self._pieces) == self._buffer_chunks else []

    def complete(self, turn: Turn, tokens: int, template: str | None, now: float) -> list[ChatEvent]:
        """The answer counts, and this is the turn that stays of it. An answer of a template says so."""
        payload: dict[str, JsonValue] = {
            "content": turn.content,
            "turn_id": turn.id,
            "mode": self.mode.value,
            "tokens_used": tokens,
            "entropy_cost": turn.entropy_cost,
            "correlation_id": self.correlation_id,
        }
        if template is not None:
            payload["template"] = template
        return [self._event("message", payload, now), *self.end(now)]

    def fail(
        self, code: ErrorCode, now: float, retry_after: int | None = None, meaning: str | None = None
    ) -> list[ChatEvent]:
        """It failed. `retry_after` is in seconds; `meaning` says more precisely what is wrong, and quotes nobody."""
        payload: dict[str, JsonValue] = {"code": code.value, "message": f"{meaning or MEANINGS[code]} {RECOVERY[code]}"}
        if retry_after is not None:
            payload["retry_after_seconds"] = retry_after
        payload["correlation_id"] = self.correlation_id
        return [*self.rest(now), self._event("error", payload, now), *self.end(now)]

    def end(self, now: float) -> list[ChatEvent]:
        """Nothing more will be told."""
        rest = self.rest(now)
        payload: dict[str, JsonValue] = {"total_chunks": len(self.chunks), "correlation_id": self.correlation_id}
        return [*rest, self._event("done", payload, now)]

    def rest(self, now: float) -> list[ChatEvent]:
        """What was said and is in no chunk yet."""
        return [self._chunk(now, final=False)] if self._pieces else []

    def _chunk(self, now: float, *, final: bool) -> ChatEvent:
        chunk = ChatChunk("".join(self._pieces), self._sequence + 1, final, self.correlation_id)
        self._pieces.clear()
        self.chunks.append(chunk)
        payload: dict[str, JsonValue] = {
            "content": chunk.content,
            "correlation_id": chunk.correlation_id,
            "final": chunk.final,
        }
        return self._event("chunk", payload, now)

    def _event(self, event_type: EventKind, payload: Mapping[str, JsonValue], now: float) -> ChatEvent:
        self._sequence += 1
        self._stamp = max(self._stamp, now)
        return ChatEvent(event_type, payload, self._sequence, self._stamp)
