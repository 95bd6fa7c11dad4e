"""Dialogues of one session as streams of chat events, one dialogue after the other.

    flux = KgentFlux(KgentSoul(session))
    async with aclosing(flux.dialogue_stream("What should I focus on?")) as events:
        async for event in events: ...

Every stream ends with one `done`. A dialogue that is completed leaves exactly one SPEECH turn in the trace and the
mirror, and one that is not leaves nothing. Leaving a stream early cancels its turn.
"""

from __future__ import annotations

import time
import uuid
from contextlib import aclosing
from math import ceil
from typing import TYPE_CHECKING

import trio
from attrs import evolve

from footlights.errors import Busy, FootlightsError, InvalidCommand, RegistrationError, TooLarge
from footlights.models.budget import BudgetConfig, BudgetTier
from footlights.token_bucket import TokenBucket
from footlights_transports.views.kgent.clock import StreamClock
from footlights_transports.views.kgent.pure.flux_state import FluxState, FluxStep, after
from footlights_transports.views.kgent.pure.messages import ChatMessage, DialogueMode, ErrorCode, InvalidMessage
from footlights_transports.views.kgent.pure.mirror import HolographicBuffer
from footlights_transports.views.kgent.pure.reading import BrokeOff, Committed, Spoke, SpokeAll
from footlights_transports.views.kgent.pure.remembering import speech_of, thoughts_of
from footlights_transports.views.kgent.pure.settings import ChatFluxConfig
from footlights_transports.views.kgent.pure.telling import Telling
from footlights_transports.views.kgent.pure.tiers import affordable
from footlights_transports.views.kgent.pure.trace import TraceMonoid
from footlights_transports.views.kgent.soul import COMMIT_PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from footlights_transports.views.kgent.pure.messages import ChatEvent
    from footlights_transports.views.kgent.pure.reading import SoulEvent
    from footlights_transports.views.kgent.pure.record import Turn
    from footlights_transports.views.kgent.soul import KgentSoul

MAX_TRACE = 1_024
"""Turns that a flux keeps in its trace."""
READ_PATIENCE = 5.0
"""Seconds that a dialogue which must have ended is still waited for: whoever reads it may be about to."""


class KgentFlux:
    """One soul's dialogues. Raises `RegistrationError` if its session may not even whisper.

    `budget` should be the cast's own. `tokens` are the session's, if it shares them with others. `wall_clock` gives
    seconds since the epoch.
    """

    def __init__(
        self,
        soul: KgentSoul,
        config: ChatFluxConfig | None = None,
        *,
        budget: BudgetConfig | None = None,
        tokens: TokenBucket | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.soul = soul
        self.config = config or ChatFluxConfig()
        self.trace = TraceMonoid(MAX_TRACE)
        self.mirror = HolographicBuffer()
        self.state = FluxState.DORMANT
        self._budget = budget or BudgetConfig()
        self._wall_clock = wall_clock
        self._stamp = 0.0
        self._last_speech: Turn | None = None
        self._tokens = tokens or session_allowance(self.config)
        self._clock = StreamClock(0.0)
        """Of the dialogue that runs."""
        self._place = trio.Semaphore(1)
        self._open = 0
        self._dry = trio.Event()
        if self._budget.whisper_max > self.config.session_tokens:
            raise RegistrationError("session_tokens must be enough for a whisper.")

    async def dialogue_stream(self, message: str, mode: DialogueMode | None = None) -> AsyncGenerator[ChatEvent, None]:
        """One dialogue as chat events. What goes wrong is an `error` event, and not an exception."""
        try:
            said = ChatMessage("user", message, self._now(), mode or DialogueMode.REFLECT)
        except InvalidMessage as error:
            telling = Telling(str(uuid.uuid4()), DialogueMode.REFLECT, self.config.buffer_chunks)
            for event in telling.fail(ErrorCode.INVALID_MESSAGE, self._now(), meaning=str(error)):
                yield event
            return
        async with aclosing(self.converse(said)) as events:
            async for event in events:
                yield event

    def telling(self, message: ChatMessage) -> Telling:
        """How a message is answered. Whoever breaks the dialogue off may tell the rest."""
        return Telling(message.correlation_id, message.mode, self.config.buffer_chunks)

    async def converse(
        self, message: ChatMessage, telling: Telling | None = None, *, sender_wait: Callable[[], int] = lambda: 0
    ) -> AsyncGenerator[ChatEvent, None]:
        """The same for a message that has a correlation id of its own.

        `sender_wait` says in how many seconds its sender may send another: if the message is refused, nobody is told to
        send it again before.
        """
        telling = telling or self.telling(message)
        try:
            self._begin()
        except FootlightsError as error:
            for event in self._refuse(telling, error, sender_wait):
                yield event
            return
        try:
            async with aclosing(self._in_its_place(message, telling, sender_wait)) as events:
                async for event in events:
                    yield event
        finally:
            self._open -= 1
            self._stop_if_dry()

    def seconds_until_room(self) -> int:
        """In how many whole seconds it would take one more dialogue, if nothing else is said meanwhile; at least 1."""
        wait = self._seconds_until_end() if self._is_full else 0
        return max(wait, self._seconds_until_whisper())

    async def drain(self) -> None:
        """Begin no more dialogues, and wait until those that began have ended. Idempotent.

        Raises `Busy` if one of them is not read to its end in time; it drains all the same.
        """
        self.state = after(self.state, FluxStep.DRAIN)
        self._stop_if_dry()
        await trio.lowlevel.checkpoint()
        if not self._dry.is_set():
            await self._wait(self._dry.wait)

    # -- inside

    @property
    def _ends_by(self) -> float:
        """When the dialogue that runs has ended, at the latest; if turns of others come first, as if they had ended."""
        return self._clock.deadline + COMMIT_PATIENCE

    @property
    def _is_full(self) -> bool:
        return self._open > self.config.max_waiting_dialogues

    def _begin(self) -> None:
        self.state = after(self.state, FluxStep.BEGIN)
        if self._is_full:
            raise Busy("Too many dialogues of this session wait.")
        self._open += 1

    def _stop_if_dry(self) -> None:
        if self.state is FluxState.DRAINING and not self._open:
            self.state = after(self.state, FluxStep.RUN_DRY)
            self._dry.set()

    async def _in_its_place(
        self, message: ChatMessage, telling: Telling, sender_wait: Callable[[], int]
    ) -> AsyncGenerator[ChatEvent, None]:
        """After the dialogue before, or not at all."""
        try:
            await self._take_place()
        except Busy as error:
            for event in self._refuse(telling, error, sender_wait):
                yield event
            return
        try:
            async with aclosing(self._dialogue(message, telling, sender_wait)) as events:
                async for event in events:
                    yield event
        except FootlightsError as error:
            # Here, and not in there: now its tokens are given back, and do not count when it says how long to wait.
            for event in self._refuse(telling, error, sender_wait):
                yield event
        finally:
            self._place.release()

    async def _take_place(self) -> None:
        try:
            self._place.acquire_nowait()
        except trio.WouldBlock:
            await self._wait(self._place.acquire)

    async def _wait(self, wanted: Callable[[], Awaitable[None]]) -> None:
        """Wait for something that happens when dialogues end. Raises `Busy` if the one that runs is not read."""
        while True:
            patience = self._ends_by + READ_PATIENCE
            with trio.move_on_at(patience) as waiting:
                await wanted()
            if not waiting.cancelled_caught:
                return
            if patience >= self._ends_by + READ_PATIENCE:  # or else another one runs, or it has waited for others
                raise Busy("The dialogue before is not read to its end.")

    async def _dialogue(
        self, message: ChatMessage, telling: Telling, sender_wait: Callable[[], int]
    ) -> AsyncGenerator[ChatEvent, None]:
        """Raises what beginning a turn raises."""
        plan = self.soul.plan(message.content, message.mode)
        now = trio.current_time()
        self._clock = StreamClock(self.config.stream_timeout)
        tier = affordable(plan.tier, self._budget, self._tokens.left(now), self.config.entropy_budget)
        if tier is None:
            wait = max(self._seconds_until_whisper(), sender_wait())
            for told in telling.fail(ErrorCode.RATE_LIMITED, self._now(), wait):
                yield told
            return
        reserved, used = self._budget.max_for_tier(tier), 0
        self._tokens.take(reserved, now)
        whole: SpokeAll | None = None
        try:
            async with aclosing(self.soul.perform(evolve(plan, tier=tier), self._clock)) as events:
                async for event in events:
                    if isinstance(event, SpokeAll):
                        used, whole = event.tokens, event
                    elif _was_work(event):
                        used = reserved  # nobody says what an answer took that is not whole
                    for told in self._told(telling, event, whole):
                        yield told
        finally:
            self._tokens.settle(reserved, used, trio.current_time())

    def _told(self, telling: Telling, event: SoulEvent, whole: SpokeAll | None) -> list[ChatEvent]:
        match event:
            case Committed():
                assert whole is not None, "what counts was said"
                return self._complete(telling, whole, event)
            case BrokeOff(code=None):
                return telling.end(self._now())
            case BrokeOff(code=ErrorCode() as code, meaning=meaning):
                return telling.fail(code, self._now(), meaning=meaning)
            case _:
                return telling.take(event, self._now())

    def _complete(self, telling: Telling, whole: SpokeAll, committed: Committed) -> list[ChatEvent]:
        now = self._now()
        speech = speech_of(whole, committed, self._last_speech, now)
        thoughts = thoughts_of(speech, telling.chunks) if self.config.emit_thoughts else []
        # Nothing waits in here: either all turns of the dialogue are in the trace, or none.
        cause = () if self._last_speech is None else (self._last_speech.id,)
        for turn in (*thoughts, speech):
            self.trace.append_mut(turn, cause)
            self.mirror.reflect(turn)
            cause = (turn.id,)
        self._last_speech = speech
        return telling.complete(speech, whole.tokens, whole.template, now)

    def _refuse(self, telling: Telling, error: FootlightsError, sender_wait: Callable[[], int]) -> list[ChatEvent]:
        if isinstance(error, Busy):
            wait = max(self._seconds_until_end(), self._seconds_until_whisper(), sender_wait())
            return telling.fail(ErrorCode.RATE_LIMITED, self._now(), wait, str(error))
        if isinstance(error, InvalidCommand | TooLarge):
            return telling.fail(ErrorCode.INVALID_MESSAGE, self._now(), meaning=str(error))
        return telling.fail(ErrorCode.SESSION_EXPIRED, self._now())

    def _seconds_until_end(self) -> int:
        """Of the dialogue that runs."""
        left = self._ends_by - trio.current_time()
        # Nobody knows when somebody reads on: that long is as good as any.
        return max(1, ceil(left if left > 0 else self.config.stream_timeout + COMMIT_PATIENCE))

    def _seconds_until_whisper(self) -> int:
        """Until there are tokens for one."""
        return self._tokens.seconds_until(self._budget.max_for_tier(BudgetTier.WHISPER), trio.current_time())

    def _now(self) -> float:
        """Seconds since the epoch, and never less than before."""
        self._stamp = max(self._stamp, self._wall_clock())
        return self._stamp


def session_allowance(config: ChatFluxConfig) -> TokenBucket:
    """What a session may have said to it, from now on."""
    return TokenBucket(config.session_tokens, config.session_tokens_seconds, trio.current_time())


def _was_work(event: SoulEvent) -> bool:
    """Whether a model has worked for the answer, as far as one can see."""
    return isinstance(event, Spoke) or (isinstance(event, BrokeOff) and event.code is ErrorCode.STREAM_TIMEOUT)
