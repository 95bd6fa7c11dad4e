"""Places at one model, given out fairly: sessions take turns, and within a session turns come in their order.

A place that is given back goes straight to whoever is next, so nobody can slip in between.
"""

from __future__ import annotations

from collections import OrderedDict, deque

import trio


class Slots:
    def __init__(self, number: int) -> None:
        self._free = number
        self._number = number
        self._waiting: OrderedDict[str, deque[trio.Event]] = OrderedDict()

    @property
    def taken(self) -> int:
        return self._number - self._free

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

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
        self._waiting.setdefault(session_id, deque()).append(granted)
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
        session_id, queue = next(iter(self._waiting.items()))
        granted = queue.popleft()
        self._waiting.move_to_end(session_id)
        if not queue:
            del self._waiting[session_id]
        granted.set()

    def _leave(self, session_id: str, granted: trio.Event) -> None:
        queue = self._waiting[session_id]
        queue.remove(granted)
        if not queue:
            del self._waiting[session_id]
