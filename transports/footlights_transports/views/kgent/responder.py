"""Responder: answers messages in one session, by turns of an agent of the cast or by templates.

Each answer is a turn of the session, which asks its models again or the next one by itself. If no model can answer and
a template can, the template answers in a turn of its own. After the first word of an answer nothing is tried again.

A model is told how to answer in the mode of the dialogue, as a fact of the turn, and nothing of earlier dialogues.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import trio
from attrs import evolve

from footlights.errors import ModelError, ModelTimeout, SessionClosed, StreamError
from footlights.models.budget import BudgetTier
from footlights.models.prompts import Fact
from footlights.models.sampling import Sampling
from footlights.params import Mode, TurnParams
from footlights.stream.follow import follow
from footlights_transports.views.kgent.deadline import PausableDeadline
from footlights_transports.views.kgent.pure.messages import MANNERS, ChatMessage, DialogueMode, ErrorCode, SoulEvent
from footlights_transports.views.kgent.pure.reader import AnswerPiece, DialogueReader, Failed, Patience
from footlights_transports.views.kgent.pure.templates import NO_TEMPLATES
from footlights_transports.views.kgent.pure.tiers import standard_tier
from footlights_transports.views.kgent.template_workloads import SMALL_TALK, fallback_name

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection

    from footlights import InteractionSession
    from footlights.errors import FootlightsError
    from footlights.events import StreamEvent
    from footlights.stream.follow import Follower
    from footlights_transports.views.kgent.pure.reader import AnswerEvent
    from footlights_transports.views.kgent.pure.templates import Templates

DEFAULT_STREAM_TIMEOUT = 30.0
COMMIT_PATIENCE = 5.0
"""Seconds that a turn has to settle after its deadline. Then its dialogue ends without it."""


class Responder:
    """One agent in one session. `agent` is a persona of the cast; without one the cast's first speaks.

    If `personas` has one named after the agent and the mode (`muse.challenge`), that one speaks in this mode, in its
    own manner. The cast must have the same `templates`: see `with_templates`. With `tools`, turns may use those of the
    persona. `begin_turn` replaces the session's own.
    """

    def __init__(
        self,
        session: InteractionSession,
        agent: str | None = None,
        *,
        personas: Collection[str] = (),
        templates: Templates = NO_TEMPLATES,
        tools: bool = False,
        begin_turn: Callable[[str, TurnParams], str] | None = None,
    ) -> None:
        self.session = session
        self._mode = Mode.EXECUTION if tools else Mode.CHAT
        self._agent = agent
        self._personas = personas
        self._templates = templates
        self._begin_turn = begin_turn or session.begin_turn

    def tier_of(self, message: ChatMessage) -> BudgetTier:
        """The tier that a message is worth; DORMANT if a template answers it."""
        if not message.approvals and self._templates.short_circuit(message.content) is not None:
            return BudgetTier.DORMANT
        return standard_tier(message.content, message.mode)

    async def dialogue_stream(
        self, message: str, mode: DialogueMode = DialogueMode.REFLECT, stream_timeout: float = DEFAULT_STREAM_TIMEOUT
    ) -> AsyncGenerator[str, None]:
        """The text of an answer in pieces, as they come. Closing the generator cancels the turn.

        Raises:
            ModelTimeout: the answer was not complete in time.
            SessionClosed: the session was closed.
            ModelError: no model could answer.
            StreamError: the answer broke off after some pieces, or was canceled.
        """
        asked = ChatMessage("user", message, mode=mode)
        order = SoulEvent(asked, self.tier_of(asked))
        async with aclosing(self.respond(order, PausableDeadline(stream_timeout))) as events:
            async for event in events:
                if isinstance(event, AnswerPiece):
                    yield event.text
                elif isinstance(event, Failed):
                    raise _error(event)

    async def respond(self, order: SoulEvent, deadline: PausableDeadline) -> AsyncGenerator[AnswerEvent, None]:
        """The answer, which ends with one `Committed` or one `Failed`. Closing the generator cancels the turn.

        `deadline` is paused while other turns of the session come first. Raises what beginning a turn raises.
        """
        workload = SMALL_TALK if order.tier is BudgetTier.DORMANT else None
        while True:
            failed: Failed | None = None
            async with follow(self.session) as stream:
                turn_id = self._begin_turn(order.message.content, self._params(order, workload))
                answer = _Answer(self.session, turn_id, stream, deadline)
                try:
                    while not answer.is_over:
                        for event in await answer.receive():
                            if isinstance(event, Failed):
                                failed = event
                            else:
                                yield event
                finally:
                    deadline.resume()
                    self.session.cancel(turn_id)  # no effect unless the generator was closed
            if failed is None:
                return
            is_silent = failed.code is ErrorCode.LLM_UNAVAILABLE and not failed.has_begun
            if not is_silent or workload is not None or not self._templates.fallback(order.message.mode):
                yield failed
                return
            order, workload = evolve(order, tier=BudgetTier.DORMANT), fallback_name(order.message.mode)

    def _params(self, order: SoulEvent, workload: str | None) -> TurnParams:
        message = order.message
        params = TurnParams(
            mode=self._mode,
            persona=self._agent,
            tier=order.tier,
            workload=workload,
            approvals=message.approvals,
        )
        of_mode = f"{self._agent}.{message.mode}"
        if of_mode in self._personas:
            return evolve(params, persona=of_mode)
        manner = MANNERS[message.mode]
        told = Fact("How to answer", manner.instruction)
        return evolve(params, sampling=Sampling(temperature=manner.temperature), facts=(told,))


def _error(failed: Failed) -> FootlightsError:
    if failed.code is ErrorCode.STREAM_TIMEOUT:
        return ModelTimeout("The answer was not complete in time.")
    if failed.code is ErrorCode.SESSION_EXPIRED:
        return SessionClosed("The session was closed.")
    if failed.code is None or failed.has_begun:
        return StreamError("The answer broke off.")
    return ModelError(sentence=failed.meaning or "No model could answer.")


class _Answer:
    """One turn, read to its end. After its deadline it is canceled; if it does not settle then, it is abandoned."""

    def __init__(self, session: InteractionSession, turn_id: str, stream: Follower, deadline: PausableDeadline) -> None:
        self._session = session
        self._reader = DialogueReader(turn_id)
        self._stream = stream
        self._deadline = deadline
        self._is_overdue = False
        self._was_canceled = False
        self._settling = COMMIT_PATIENCE
        self._patience = Patience()

    @property
    def is_over(self) -> bool:
        return self._reader.is_over

    async def receive(self) -> list[AnswerEvent]:
        """What happened since the last call; maybe nothing."""
        if not self._is_overdue:
            with trio.move_on_at(self._deadline.latest):
                return self._read(await self._stream.receive_batch_until(self._patience.until))
            self._is_overdue = True
            self._was_canceled = bool(self._session.cancel(self._reader.turn_id))
        # Only the time in here counts: the consumer of the answer may be slow.
        began = trio.current_time()
        with trio.move_on_at(began + self._settling):
            batch = await self._stream.receive_batch_until(self._patience.until)
            self._settling -= trio.current_time() - began
            return self._read(batch)
        return [evolve(self._reader.lose_sight(), code=ErrorCode.STREAM_TIMEOUT)]

    def _read(self, batch: list[StreamEvent] | None) -> list[AnswerEvent]:
        """The events of a batch; None if its pieces have waited long enough."""
        now = trio.current_time()
        if batch is None:
            return self._patience.flushes(now)
        if not batch:
            return [self._reader.lose_sight()]
        read = [self._with_timeout(each) for event in batch for each in self._reader.take(event)]
        for each in read:
            self._patience.note(each, now)
        if self._reader.is_waiting:
            self._deadline.pause()
        else:
            self._deadline.resume()
        return read + self._patience.flushes(now)

    def _with_timeout(self, event: AnswerEvent) -> AnswerEvent:
        if self._was_canceled and isinstance(event, Failed):
            return evolve(event, code=ErrorCode.STREAM_TIMEOUT, meaning=None, cause=None)
        return event
