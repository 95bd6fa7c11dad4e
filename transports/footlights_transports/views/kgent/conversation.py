"""Conversation: the dialogues with one agent in one session, as streams of chat events, one after the other.

    conversation = Conversation(Responder(session))
    async with aclosing(conversation.dialogue_stream("What should I focus on?")) as events:
        async for event in events: ...

Every stream ends with one `done`. A completed dialogue leaves exactly one SPEECH turn in the trace and the mirror; any
other leaves nothing. Leaving a stream early cancels its turn.
"""

from __future__ import annotations

import time
import uuid
from contextlib import aclosing, asynccontextmanager, contextmanager
from enum import StrEnum
from math import ceil
from typing import TYPE_CHECKING

import trio
from attrs import define

from footlights.errors import Busy, FootlightsError, InvalidCommand, RegistrationError, TooLarge
from footlights.models.budget import BudgetConfig, BudgetTier
from footlights.token_bucket import TokenBucket
from footlights_transports.views.kgent.deadline import PausableDeadline
from footlights_transports.views.kgent.pure.messages import (
    ChatMessage,
    DialogueMode,
    ErrorCode,
    InvalidMessage,
    SoulEvent,
)
from footlights_transports.views.kgent.pure.mirror import HolographicBuffer
from footlights_transports.views.kgent.pure.reader import AnswerPiece, AnswerText, Committed, Failed
from footlights_transports.views.kgent.pure.record import speech_of, thoughts_of
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.kgent.pure.tiers import affordable
from footlights_transports.views.kgent.pure.trace import TraceMonoid
from footlights_transports.views.kgent.pure.writer import DialogueWriter
from footlights_transports.views.kgent.responder import COMMIT_PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from footlights_transports.views.kgent.pure.messages import ChatEvent
    from footlights_transports.views.kgent.pure.reader import AnswerEvent
    from footlights_transports.views.kgent.pure.record import Turn
    from footlights_transports.views.kgent.responder import Responder

MAX_TRACE = 1_024
"""Turns that a conversation keeps in its trace."""
READ_PATIENCE = 5.0
"""Seconds that the next dialogue still waits for the reader, after the running one must have ended."""


class ConversationState(StrEnum):
    """State of a conversation."""

    DORMANT = "dormant"
    """No dialogue has begun."""
    FLOWING = "flowing"
    """One has begun."""


class _NoTokens(Busy):
    """The session's tokens do not suffice for the smallest answer."""


@define
class _Reservation:
    """Tokens that a dialogue holds while it runs."""

    tier: BudgetTier
    tokens: int
    used: int = 0

    def note(self, event: AnswerEvent) -> None:
        match event:
            case AnswerText(tokens=tokens):
                self.used = tokens
            case AnswerPiece() | Failed(code=ErrorCode.STREAM_TIMEOUT):
                self.used = self.tokens  # a model worked, and its usage is not known
            case _:
                pass


class Conversation:
    """The dialogues of one responder. Raises `RegistrationError` if `session_tokens` do not suffice for a whisper.

    `budget` should be the cast's own. `tokens` is the session's bucket, if several conversations share it. `reflect` is
    called with each turn, instead of its own mirror. `wall_clock` returns seconds since the epoch.
    """

    def __init__(
        self,
        responder: Responder,
        config: ChatFluxConfig | None = None,
        *,
        budget: BudgetConfig | None = None,
        tokens: TokenBucket | None = None,
        reflect: Callable[[Turn], None] | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.responder = responder
        self.config = config or ChatFluxConfig()
        self.trace = TraceMonoid(MAX_TRACE)
        self.mirror = HolographicBuffer()
        self._reflect = reflect or self.mirror.reflect
        self._budget = budget or BudgetConfig()
        self._tokens = tokens or session_tokens(self.config)
        self._wall_clock = wall_clock
        self._stamp = 0.0
        self._last_speech: Turn | None = None
        self._last_act = ""
        """The id of the last speech whose turn may have changed the world."""
        self._deadline = PausableDeadline(0.0)
        """Of the dialogue that runs."""
        self._turnstile = trio.Semaphore(1)
        self._open = 0
        self._has_begun = False
        if self._budget.whisper_max > self.config.session_tokens:
            raise RegistrationError("session_tokens must be enough for a whisper.")

    @property
    def state(self) -> ConversationState:
        return ConversationState.FLOWING if self._has_begun else ConversationState.DORMANT

    def dialogue_stream(self, message: str, mode: DialogueMode | None = None) -> AsyncGenerator[ChatEvent, None]:
        """One dialogue as chat events. A failure is an `error` event and not an exception."""
        try:
            return self.converse(ChatMessage("user", message, self._now(), mode or DialogueMode.REFLECT))
        except InvalidMessage as error:
            writer = DialogueWriter(str(uuid.uuid4()), DialogueMode.REFLECT, self.config.buffer_chunks)
            return _stream(writer.fail(ErrorCode.INVALID_MESSAGE, self._now(), meaning=str(error)))

    def writer(self, message: ChatMessage) -> DialogueWriter:
        """A writer for the dialogue that this message begins."""
        return DialogueWriter(message.correlation_id, message.mode, self.config.buffer_chunks)

    async def converse(
        self,
        message: ChatMessage,
        writer: DialogueWriter | None = None,
        *,
        sender_wait: Callable[[], int] = lambda: 0,
    ) -> AsyncGenerator[ChatEvent, None]:
        """The same for a message with its own correlation id.

        `writer` is for a caller that ends the dialogue itself if this is cut off. `sender_wait` returns in how many
        seconds the sender may send another message: no `retry_after_seconds` is less than that.
        """
        writer = writer or self.writer(message)
        try:
            async with self._turn_in_queue():
                with self._reserved(message) as reservation:
                    answer = self.responder.respond(SoulEvent(message, reservation.tier), self._deadline)
                    async with aclosing(answer) as events:
                        async for event in events:
                            reservation.note(event)
                            for written in self._written(writer, event):
                                yield written
        except FootlightsError as error:
            # The reservation is settled: its tokens do not count for the wait.
            for written in self._refusal(writer, error, sender_wait):
                yield written

    def seconds_until_room(self) -> int:
        """Whole seconds until one more dialogue would be accepted if none began meanwhile; at least 1."""
        wait = self._seconds_until_end() if self._is_full else 0
        return max(wait, self._seconds_until_whisper())

    # -- inside

    @asynccontextmanager
    async def _turn_in_queue(self) -> AsyncGenerator[None, None]:
        """Wait for the dialogues before, and hold up those behind. Raises `Busy`."""
        if self._is_full:
            raise Busy("Too many dialogues of this session wait.")
        self._has_begun = True
        self._open += 1
        try:
            try:
                self._turnstile.acquire_nowait()
            except trio.WouldBlock:
                await self._wait_turn()
            try:
                yield
            finally:
                self._turnstile.release()
        finally:
            self._open -= 1

    @property
    def _is_full(self) -> bool:
        return self._open > self.config.max_waiting_dialogues

    @property
    def _ends_by(self) -> float:
        """When the dialogue that runs has ended at the latest, not counting a pause of its deadline."""
        return self._deadline.at + COMMIT_PATIENCE

    async def _wait_turn(self) -> None:
        """Wait until the dialogues before have ended. Raises `Busy` if the running one is not read."""
        while True:
            patience = self._ends_by + READ_PATIENCE
            with trio.move_on_at(patience):
                return await self._turnstile.acquire()
            if patience >= self._ends_by + READ_PATIENCE:  # otherwise another one runs now, or its deadline was paused
                raise Busy("The dialogue before is not read to its end.")

    @contextmanager
    def _reserved(self, message: ChatMessage) -> Generator[_Reservation, None, None]:
        """Reserve the tokens of a tier, and give back those that were not used. Raises `_NoTokens`."""
        now = trio.current_time()
        self._deadline = PausableDeadline(self.config.stream_timeout)
        wanted, left = self.responder.tier_of(message), self._tokens.left(now)
        tier = affordable(wanted, self._budget, left, self.config.entropy_budget)
        if tier is None:
            raise _NoTokens("Token budget exhausted.")
        reservation = _Reservation(tier, self._budget.max_for_tier(tier))
        self._tokens.take(reservation.tokens, now)
        try:
            yield reservation
        finally:
            self._tokens.settle(reservation.tokens, reservation.used, trio.current_time())

    def _written(self, writer: DialogueWriter, event: AnswerEvent) -> list[ChatEvent]:
        now = self._now()
        if isinstance(event, Committed):
            self._remember(event, writer, now)
        return writer.take(event, now)

    def _remember(self, answer: Committed, writer: DialogueWriter, now: float) -> None:
        """Append the turns of a completed dialogue. Nothing waits in here: the trace has all of them or none."""
        speech = speech_of(answer, self._last_speech, now)
        thoughts = thoughts_of(speech, writer.chunks) if self.config.emit_thoughts else []
        # No prompt contains an earlier dialogue, but its facts are made from the world that earlier acts left.
        cause = (self._last_act,) if self._last_act in self.trace else ()
        for turn in (*thoughts, speech):
            self.trace.append_mut(turn, cause)
            self._reflect(turn)
            cause = (turn.id,)
        self._last_speech = speech
        if answer.acted:
            self._last_act = speech.id

    def _refusal(
        self, writer: DialogueWriter, error: FootlightsError, sender_wait: Callable[[], int]
    ) -> list[ChatEvent]:
        if isinstance(error, Busy):
            until_end = 0 if isinstance(error, _NoTokens) else self._seconds_until_end()
            wait = max(until_end, self._seconds_until_whisper(), sender_wait())
            return writer.fail(ErrorCode.RATE_LIMITED, self._now(), wait, str(error))
        if isinstance(error, InvalidCommand | TooLarge):
            return writer.fail(ErrorCode.INVALID_MESSAGE, self._now(), meaning=str(error))
        return writer.fail(ErrorCode.SESSION_EXPIRED, self._now())

    def _seconds_until_end(self) -> int:
        """Of the dialogue that runs."""
        left = self._ends_by - trio.current_time()
        # Unread, its end is unknown: the longest time of a dialogue is as good as any.
        return max(1, ceil(left if left > 0 else self.config.stream_timeout + COMMIT_PATIENCE))

    def _seconds_until_whisper(self) -> int:
        """Until the session has tokens for one."""
        return self._tokens.seconds_until(self._budget.max_for_tier(BudgetTier.WHISPER), trio.current_time())

    def _now(self) -> float:
        """Seconds since the epoch; never less than before."""
        self._stamp = max(self._stamp, self._wall_clock())
        return self._stamp


def session_tokens(config: ChatFluxConfig) -> TokenBucket:
    """A full token bucket of one session."""
    return TokenBucket(config.session_tokens, config.session_tokens_seconds, trio.current_time())


async def _stream(events: list[ChatEvent]) -> AsyncGenerator[ChatEvent, None]:
    for event in events:
        yield event
