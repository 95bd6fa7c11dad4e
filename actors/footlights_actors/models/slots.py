"""Slots of one model, shared fairly: round-robin over owners, then over the sessions of an owner, then first come,
first served. On a server without users each session is its own owner.

A released slot goes directly to the next waiter, so no other caller can take it in between.
"""

from __future__ import annotations

from collections import OrderedDict, deque

import trio

from footlights.ids import owner_of


class Slots:
    def __init__(self, number: int) -> None:
        self._free = number
        self._number = number
        self._waiting: OrderedDict[str, OrderedDict[str, deque[trio.Event]]] = OrderedDict()
        """By owner and by session, in the order in which they get the next slots."""

    @property
    def taken(self) -> int:
        return self._number - self._free

    @property
    def waiting(self) -> int:
        return sum(len(queue) for sessions in self._waiting.values() for queue in sessions.values())

    def take_now(self) -> bool:
        if self._waiting or not self._free:
            return False
        self._free -= 1
        return True

    async def take(self, session_id: str) -> None:
        if self.take_now():
            await trio.lowlevel.cancel_shielded_checkpoint()
            return
        granted = trio.Event()
        sessions = self._waiting.setdefault(owner_of(session_id), OrderedDict())
        sessions.setdefault(session_id, deque()).append(granted)
        try:
            await granted.wait()
        except trio.Cancelled:
            if granted.is_set():
                self.give_back()
            else:
                self._leave(session_id, granted)
            raise

    def give_back(self) -> None:
        if not self._waiting:
            self._free += 1
            return
        owner, sessions = next(iter(self._waiting.items()))
        session_id, queue = next(iter(sessions.items()))
        granted = queue.popleft()
        sessions.move_to_end(session_id)
        self._waiting.move_to_end(owner)
        self._forget_if_empty(owner, session_id)
        granted.set()

    def _leave(self, session_id: str, granted: trio.Event) -> None:
        owner = owner_of(session_id)
        self._waiting[owner][session_id].remove(granted)
        self._forget_if_empty(owner, session_id)

    def _forget_if_empty(self, owner: str, session_id: str) -> None:
        sessions = self._waiting[owner]
        if not sessions[session_id]:
            del sessions[session_id]
        if not sessions:
            del self._waiting[owner]
