"""What is said in a session by turns that the chat gateway did not begin: for observers who ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights.errors import Detached, SessionClosed
from footlights.stream.outbox import DetachReason
from footlights_transports.views.kgent.pure.turns import TurnDialogues
from footlights_transports.views.kgent.pure.wire import write_event

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Container

    from footlights import InteractionSession, Subscription
    from footlights.events import StreamEvent


class Overhearing:
    """One observer of one session. `told` are the turns of which it is told already, by the gateway."""

    def __init__(
        self,
        session: InteractionSession,
        told: Container[str],
        buffer_chunks: int,
        now: Callable[[], float],
    ) -> None:
        self._session = session
        self._told = told
        self._dialogues = TurnDialogues(buffer_chunks)
        self._now = now
        self._stream: Subscription | None = None
        self._is_ending = False
        self.over = trio.Event()
        """Whether nothing more will be heard."""

    def end(self) -> None:
        """Hear what waits, and that is all."""
        self._is_ending = True
        if self._stream is not None:
            self._stream.end()

    async def run(self, send: Callable[[list[bytes]], Awaitable[None]]) -> None:
        """Send what is said until the session ends. Raises `Busy` if too many follow it."""
        try:
            left = await self._follow(self._session.subscribe(observer=True), send)
            while left is not None:
                again = self._session.subscribe(left.cursor, left.terminal_seen, observer=True)
                left = await self._follow(again, send)
        except SessionClosed:
            pass  # it ended before anything could be heard
        finally:
            self.over.set()

    async def _follow(
        self, stream: Subscription, send: Callable[[list[bytes]], Awaitable[None]]
    ) -> Subscription | None:
        async with stream as self._stream:
            if self._is_ending:
                self._stream.end()
            return await self._tell(self._stream, send)

    async def _tell(self, stream: Subscription, send: Callable[[list[bytes]], Awaitable[None]]) -> Subscription | None:
        """The stream to go on from; None at the end."""
        try:
            while events := await stream.receive_batch():
                await self._send(events, send)
        except Detached as error:
            if error.reason != DetachReason.COMMIT_UNKNOWN:
                return stream
        # What is open has no end that could be heard, and a dialogue has one.
        await send([write_event(told) for told in self._dialogues.lose_sight(self._now())])
        return None

    async def _send(self, events: list[StreamEvent], send: Callable[[list[bytes]], Awaitable[None]]) -> None:
        heard = [event for event in events if event.turn_id not in self._told]
        if told := [each for event in heard for each in self._dialogues.take(event, self._now())]:
            await send(list(map(write_event, told)))
