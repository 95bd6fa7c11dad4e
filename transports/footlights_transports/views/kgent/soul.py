"""Who answers in a dialogue: an agent of the cast, in one session, or a template where that is enough.

A dialogue is a turn of the session. If its model wants to be asked later, it is, with more patience each time; if no
model can answer and a template can, the template does, in a turn of its own. Once a word was said, nothing is tried
again.
"""

from __future__ import annotations

from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Protocol

import trio
from attrs import evolve, frozen

from footlights.errors import Detached, FootlightsError, ModelError, ModelTimeout, SessionClosed, StreamError
from footlights.models.budget import BudgetTier
from footlights.params import Mode, TurnParams
from footlights.stream.outbox import DetachReason
from footlights_transports.views.kgent.clock import StreamClock
from footlights_transports.views.kgent.pure.messages import DialogueMode, ErrorCode
from footlights_transports.views.kgent.pure.reading import BrokeOff, Spoke, TurnReading
from footlights_transports.views.kgent.pure.templates import NO_TEMPLATES
from footlights_transports.views.kgent.pure.tiers import standard_tier
from footlights_transports.views.kgent.templates import SMALL_TALK, fallback_name

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping

    from footlights.events import StreamEvent
    from footlights.stream.subscription import Subscription
    from footlights_transports.views.kgent.pure.reading import SoulEvent
    from footlights_transports.views.kgent.pure.templates import Templates

FIRST_DELAY = 1.0
"""Seconds until a model that wants to be asked later is asked again; twice as many each time."""
DEFAULT_STREAM_TIMEOUT = 30.0
COMMIT_PATIENCE = 5.0
"""Seconds that a turn whose time is up has to settle. Then its dialogue ends without it."""


class DialogueSession(Protocol):
    """What a soul needs of its session. `footlights.InteractionSession` has it."""

    @property
    def session_id(self) -> str: ...
    def begin_turn(self, said: str, params: TurnParams | None = None) -> str: ...
    def cancel(self, turn_id: str | None = None) -> tuple[str, ...]: ...
    def subscribe(
        self, after: Mapping[str, int] | None = None, terminal_seen: Collection[str] = ()
    ) -> Subscription: ...


@frozen
class Plan:
    """How a message is to be answered."""

    said: str
    mode: DialogueMode
    tier: BudgetTier
    """What it is worth; DORMANT if a template answers."""
    workload: str | None = None
    """The template's workload, if one answers."""


class KgentSoul:
    """One agent in one session. `agent` is a persona of the cast; without one its first speaks.

    If `personas` has one that is named like the agent and the mode (`muse.challenge`), that one speaks in this mode. To
    answer with `templates`, the cast needs them too: `with_templates`.
    """

    def __init__(
        self,
        session: DialogueSession,
        agent: str | None = None,
        *,
        personas: Collection[str] = (),
        templates: Templates = NO_TEMPLATES,
        choose_tier: Callable[[str, DialogueMode], BudgetTier] = standard_tier,
    ) -> None:
        self.session = session
        self.agent = agent
        self._personas = frozenset(personas)
        self._templates = templates
        self._choose_tier = choose_tier

    def plan(self, said: str, mode: DialogueMode) -> Plan:
        """Whether a template is enough, and what the message is worth if not."""
        if self._templates.short_circuit(said) is not None:
            return Plan(said, mode, BudgetTier.DORMANT, SMALL_TALK)
        return Plan(said, mode, self._choose_tier(said, mode))

    async def dialogue_stream(
        self, message: str, mode: DialogueMode | None = None, stream_timeout: float = DEFAULT_STREAM_TIMEOUT
    ) -> AsyncGenerator[str, None]:
        """The answer in pieces, as they come. Closing it cancels the turn; `contextlib.aclosing` closes it.

        Raises:
            ModelTimeout: it was not whole in time.
            SessionClosed: the session is over.
            ModelError: nobody could answer.
            StreamError: it broke off, after the pieces that came, or was canceled.
        """
        plan = self.plan(message, mode or DialogueMode.REFLECT)
        async with aclosing(self.perform(plan, StreamClock(stream_timeout))) as events:
            async for event in events:
                if isinstance(event, Spoke):
                    yield event.text
                elif isinstance(event, BrokeOff):
                    raise _error(event)

    async def perform(self, plan: Plan, clock: StreamClock) -> AsyncGenerator[SoulEvent, None]:
        """All that happens to the answer, ending with one `Committed` or one `BrokeOff`. Closing it cancels the turn.

        `clock` says how long it may take, and stands still while turns of others come first.

        Raises what beginning a turn raises.
        """
        delay = FIRST_DELAY
        while True:
            broke_off: BrokeOff | None = None
            async with aclosing(self._attempt(plan, clock)) as events:
                async for event in events:
                    if isinstance(event, BrokeOff):
                        broke_off = event
                    else:
                        yield event
            if broke_off is None:
                return
            if _may_ask_again(broke_off) and trio.current_time() + delay < clock.deadline:
                await self._wait(delay)
                delay *= 2
            elif self._may_fall_back(plan, broke_off):
                plan = evolve(plan, tier=BudgetTier.DORMANT, workload=fallback_name(plan.mode))
            else:
                yield broke_off
                return

    async def _wait(self, seconds: float) -> None:
        """Wait so long, or until the session takes no more turns."""
        async with self.session.subscribe() as stream:
            with suppress(Detached), trio.move_on_after(seconds):
                while await stream.receive_batch():
                    pass

    def _may_fall_back(self, plan: Plan, broke_off: BrokeOff) -> bool:
        is_first = plan.workload is None
        is_unheard = broke_off.code is ErrorCode.LLM_UNAVAILABLE and not broke_off.said_something
        return is_first and is_unheard and bool(self._templates.fallback(plan.mode))

    async def _attempt(self, plan: Plan, clock: StreamClock) -> AsyncGenerator[SoulEvent, None]:
        """One turn of the session."""
        session = self.session
        async with session.subscribe() as stream:
            turn_id = session.begin_turn(plan.said, self._params(plan))
            attempt = _Attempt(session, turn_id, clock)
            try:
                async with aclosing(attempt.read(stream)) as events:
                    async for event in events:
                        yield event
                while (left := attempt.detached) is not None:
                    again = session.subscribe(left.cursor, left.terminal_seen)
                    async with again, aclosing(attempt.read(again)) as events:
                        async for event in events:
                            yield event
            finally:
                clock.go()
                session.cancel(turn_id)  # it has ended, unless nobody listens any more

    def _params(self, plan: Plan) -> TurnParams:
        of_mode = f"{self.agent}.{plan.mode}"
        persona = of_mode if of_mode in self._personas else self.agent
        return TurnParams(mode=Mode.CHAT, persona=persona, tier=plan.tier, workload=plan.workload)


class _Attempt:
    """One turn, read to its end. When its time is up, it is canceled; if even that does not end it, it is left."""

    def __init__(self, session: DialogueSession, turn_id: str, clock: StreamClock) -> None:
        self._session = session
        self._reading = TurnReading(turn_id)
        self._clock = clock
        self._time_is_up = False
        self._settling = StreamClock(COMMIT_PATIENCE)
        """How long it is still waited for when its time is up, whatever others say meanwhile."""
        self._settling.stand()
        self._is_late = False
        self.detached: Subscription | None = None
        """The stream to go on from, if it let go before the end."""

    async def read(self, stream: Subscription) -> AsyncGenerator[SoulEvent, None]:
        reading = self._reading
        self.detached = None
        try:
            while not reading.is_over:
                batch = await self._next_batch(stream)
                if batch is None:
                    yield evolve(reading.lose_sight(), code=ErrorCode.STREAM_TIMEOUT)
                    return
                for event in batch:
                    for told in self._take(event):
                        yield told
                if stream.is_exhausted and not reading.is_over:
                    yield reading.lose_sight()
        except Detached as error:
            if error.reason == DetachReason.COMMIT_UNKNOWN:
                yield reading.lose_sight()
            else:
                self.detached = stream

    async def _next_batch(self, stream: Subscription) -> list[StreamEvent] | None:
        """What came; None if the turn cannot even be ended."""
        if self._time_is_up:
            return await self._last_batch(stream)
        # No cancel scope stays open over a yield, where it would belong to whoever asks for the next event.
        with trio.move_on_at(self._clock.latest):
            return await stream.receive_batch()
        self._time_is_up = True
        self._is_late = bool(self._session.cancel(self._reading.turn_id))
        return []

    async def _last_batch(self, stream: Subscription) -> list[StreamEvent] | None:
        # Only waiting counts: whoever reads may be late.
        self._settling.go()
        with trio.move_on_at(self._settling.deadline):
            batch = await stream.receive_batch()
            self._settling.stand()
            return batch
        return None

    def _take(self, event: StreamEvent) -> list[SoulEvent]:
        happened = [self._as_it_counts(each) for each in self._reading.take(event)]
        # Before anything is told: whoever is told of it may be slow.
        if self._reading.is_waiting:
            self._clock.stand()
        else:
            self._clock.go()
        return happened

    def _as_it_counts(self, event: SoulEvent) -> SoulEvent:
        if self._is_late and isinstance(event, BrokeOff):
            return evolve(event, code=ErrorCode.STREAM_TIMEOUT, meaning=None)
        return event


def _may_ask_again(broke_off: BrokeOff) -> bool:
    return broke_off.asks_later and not broke_off.said_something


def _error(broke_off: BrokeOff) -> FootlightsError:
    if broke_off.code is ErrorCode.STREAM_TIMEOUT:
        return ModelTimeout("The answer was not whole in time.")
    if broke_off.code is ErrorCode.SESSION_EXPIRED:
        return SessionClosed("The session is over.")
    if broke_off.code is None or broke_off.said_something:
        return StreamError("The answer broke off.")
    return ModelError("Nobody could answer.")
