"""Dropped sessions: closed after the idle time, when the host holds no handle of them any more.

An open turn, or a subscriber that is not polled by a host, such as a server's, keeps a session open. So does `on_ready`
with something that refers to the handle.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING
from weakref import finalize

import trio

from footlights import SessionState

if TYPE_CHECKING:
    from footlights.session.session import InteractionSession
    from footlights.stage.stage import Stage
    from footlights_transports.embed.thread_session import Readers, ThreadSession
    from footlights_transports.embed.trio_thread import Inside


class DroppedSessions:
    """The handles of each session, counted on the thread of the stage."""

    def __init__(self, readers: Readers, idle_seconds: float) -> None:
        self._readers = readers
        self._idle_seconds = idle_seconds
        self._handles: Counter[InteractionSession] = Counter()

    def watch(self, handle: ThreadSession, session: InteractionSession, inside: Inside[Stage]) -> None:
        """Close the session after the idle time, when this handle and all others were dropped."""
        self._handles[session] += 1
        drop = partial(self._drop, session, inside)
        finalize(handle, self._readers.thread.note, drop).atexit = False

    def _drop(self, session: InteractionSession, inside: Inside[Stage]) -> None:
        self._handles[session] -= 1
        if self._handles[session]:
            return
        del self._handles[session]
        if self._idle_seconds and session.state is SessionState.OPEN and not self._readers.thread.closing.is_set():
            inside.tasks.start_soon(self._close, session, name=f"idle time of {session.session_id}")

    async def _close(self, session: InteractionSession) -> None:
        while session not in self._handles and session.state is SessionState.OPEN:
            with trio.move_on_after(self._idle_seconds):
                await self._readers.thread.closing.wait()
                return
            if session not in self._handles and not self._is_in_use(session):
                await session.close()

    def _is_in_use(self, session: InteractionSession) -> bool:
        now = session.statistics()
        return any(now.turns_by_state.values()) or len(now.subscribers) > self._readers.count(session.session_id)
