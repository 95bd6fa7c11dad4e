"""LazyEvent: an event that allocates its `trio.Event` on the first wait. Most turns are never waited for."""

from __future__ import annotations

import trio


class LazyEvent:
    __slots__ = ("_event", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        self._event: trio.Event | None = None

    def set(self) -> None:
        self.is_set = True
        if self._event is not None:
            self._event.set()

    async def wait(self) -> None:
        if self.is_set:
            await trio.lowlevel.checkpoint()
            return
        if self._event is None:
            self._event = trio.Event()
        await self._event.wait()
