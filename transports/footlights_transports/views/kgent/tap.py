"""Session tap: sends an observer those turns of a session that the chat gateway did not begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from footlights.errors import SessionClosed
from footlights.stream.follow import follow
from footlights_transports.views.kgent.pure.dialogues import TurnDialogues

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Container

    from footlights import InteractionSession
    from footlights.stream.follow import Follower


class SessionTap:
    """One observer of one session. `skipped` are the turns of which the gateway sends it events already."""

    def __init__(
        self, session: InteractionSession, skipped: Container[str], buffer_chunks: int, now: Callable[[], float]
    ) -> None:
        self._session = session
        self._skipped = skipped
        self._dialogues = TurnDialogues(buffer_chunks)
        self._now = now
        self._stream: Follower | None = None
        self._is_ending = False
        self.over = trio.Event()
        """Set when no more will be sent."""

    def end(self) -> None:
        """Send what waits, then stop."""
        self._is_ending = True
        if self._stream is not None:
            self._stream.end()

    async def run(self, send: Callable[[list[bytes]], Awaitable[None]]) -> None:
        """Send until the session ends. Raises `Busy` if the session has too many observers."""
        try:
            async with follow(self._session, observer=True) as self._stream:
                if self._is_ending:
                    self._stream.end()
                while (events := await self._stream.receive_batch_until(self._dialogues.flush_at)) != []:
                    now, monotonic = self._now(), trio.current_time()
                    new = [each for each in events or () if each.turn_id not in self._skipped]
                    written = [each for event in new for each in self._dialogues.take(event, now, monotonic)]
                    if written := [*written, *self._dialogues.flush(now, monotonic)]:
                        await send([each.encode() for each in written])
                # The outcome of open turns is unknown, and every dialogue has an end.
                await send([each.encode() for each in self._dialogues.lose_sight(self._now())])
        except SessionClosed:
            pass  # it closed before the tap could subscribe
        finally:
            self.over.set()
