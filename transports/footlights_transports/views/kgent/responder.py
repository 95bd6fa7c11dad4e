"""Responder: answers messages in one session, by turns of an agent of the cast or by templates.

Each answer is a turn of the session. If the model reports a rate limit, the responder asks again after 1, 2, 4 …
seconds; if no model can answer and a template can, the template answers in a turn of its own. After the first word of
an answer nothing is tried again.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

import trio
from attrs import evolve

from footlights.errors import ModelError, ModelTimeout, SessionClosed, StreamError
from footlights.models.budget import BudgetTier
from footlights.params import Mode, TurnParams
from footlights.stream.follow import follow
from footlights_transports.views.kgent.deadline import PausableDeadline
from footlights_transports.views.kgent.pure.messages import ChatMessage, DialogueMode, ErrorCode
from footlights_transports.views.kgent.pure.reader import AnswerPiece, DialogueReader, Failed
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
FIRST_DELAY = 1.0
"""Seconds until the first retry after a model's rate limit; doubled each time."""
COMMIT_PATIENCE = 5.0
"""Seconds that a turn has to settle after its deadline. Then its dialogue ends without it."""


class Responder:
    """One agent in one session. `agent` is a persona of the cast; without one the cast's first speaks.

    If `personas` has one named after the agent and the mode (`muse.challenge`), that one speaks in this mode. The cast
    must have the same `templates`: see `with_templates`. `begin_turn` replaces the session's own.
    """

    def __init__(
        self,
        session: InteractionSession,
        agent: str | None = None,
        *,
        personas: Collection[str] = (),
        templates: Templates = NO_TEMPLATES,
        begin_turn: Callable[[str, TurnParams], str] | None = None,
    ) -> None:
        self.session = session
        self._agent = agent
        self._personas = personas
        self._templates = templates
        self._begin_turn = begin_turn or session.begin_turn

    def tier_of(self, message: ChatMessage) -> BudgetTier:
        """The tier that a message is worth; DORMANT if a template answers it."""
        if self._templates.short_circuit(message.content) is not None:
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
        async with aclosing(self.respond(asked, self.tier_of(asked), PausableDeadline(stream_timeout))) as events:
            async for event in events:
                if isinstance(event, AnswerPiece):
                    yield event.text
                elif isinstance(event, Failed):
                    raise _error(event)

    async def respond(
        self, message: ChatMessage, tier: BudgetTier, deadline: PausableDeadline
    ) -> AsyncGenerator[AnswerEvent, None]:
        """The answer, which ends with one `Committed` or one `Failed`. Closing the generator cancels the turn.

        `deadline` is paused while other turns of the session come first. Raises what beginning a turn raises.
        """
        workload = SMALL_TALK if tier is BudgetTier.DORMANT else None
        delay = FIRST_DELAY
        while True:
            failed: Failed | None = None
            async with follow(self.session) as stream:
                turn_id = self._begin_turn(message.content, self._params(message, tier, workload))
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
            if is_silent and failed.is_rate_limit and trio.current_time() + delay < deadline.at:
                await self._wait(delay)
                delay *= 2
            elif is_silent and workload is None and self._templates.fallback(message.mode):
                tier, workload = BudgetTier.DORMANT, fallback_name(message.mode)
            else:
                yield failed
                return

    async def _wait(self, seconds: float) -> None:
        """Wait so long, or until the session is closed."""
        async with follow(self.session) as stream:
            with trio.move_on_after(seconds):
                while await stream.receive_batch():
                    pass

    def _params(self, message: ChatMessage, tier: BudgetTier, workload: str | None) -> TurnParams:
        of_mode = f"{self._agent}.{message.mode}"
        persona = of_mode if of_mode in self._personas else self._agent
        return TurnParams(mode=Mode.CHAT, persona=persona, tier=tier, workload=workload)


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
        self._patience = COMMIT_PATIENCE

    @property
    def is_over(self) -> bool:
        return self._reader.is_over

    async def receive(self) -> list[AnswerEvent]:
        """What happened since the last call; maybe nothing."""
        if not self._is_overdue:
            with trio.move_on_at(self._deadline.latest):
                return self._read(await self._stream.receive_batch())
            self._is_overdue = True
            self._was_canceled = bool(self._session.cancel(self._reader.turn_id))
        # Only the time in here counts: the consumer of the answer may be slow.
        began = trio.current_time()
        with trio.move_on_at(began + self._patience):
            batch = await self._stream.receive_batch()
            self._patience -= trio.current_time() - began
            return self._read(batch)
        return [evolve(self._reader.lose_sight(), code=ErrorCode.STREAM_TIMEOUT)]

    def _read(self, batch: list[StreamEvent]) -> list[AnswerEvent]:
        if not batch:
            return [self._reader.lose_sight()]
        read = [self._with_timeout(each) for event in batch for each in self._reader.take(event)]
        if self._reader.is_waiting:
            self._deadline.pause()
        else:
            self._deadline.resume()
        return read

    def _with_timeout(self, event: AnswerEvent) -> AnswerEvent:
        if self._was_canceled and isinstance(event, Failed):
            return evolve(event, code=ErrorCode.STREAM_TIMEOUT, meaning=None, cause=None)
        return event
