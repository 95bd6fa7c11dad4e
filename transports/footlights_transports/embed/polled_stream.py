"""PolledStream: a stream that is read on the thread of the stage and polled on another.

At most `CAPACITY` events wait between the threads. If the host does not keep up, the rest stays in the outbox, where
the rules for slow subscribers apply: deltas are joined, and finally some are dropped and declared.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from footlights.errors import Detached, SessionClosed
from footlights.events import EventType, StreamEvent
from footlights.stream.cursor import Cursor
from footlights_transports.embed.polled import Polled
from footlights_transports.embed.trio_thread import StageThreadDied

if TYPE_CHECKING:
    from collections.abc import Mapping

    import trio

    from footlights.stream.subscription import Subscription
    from footlights_transports.embed.trio_thread import TrioThread

CAPACITY = 256


class PolledStream(Polled[StreamEvent]):
    """One subscriber's stream, polled by one thread. Made by a session of a `StageThread`.

    `poll` raises `Detached` if this subscriber was detached, when everything before that was polled.
    """

    def __init__(self, thread: TrioThread[Any], subscription: Subscription) -> None:
        super().__init__(thread, CAPACITY)
        self._subscription = subscription
        self._polled = Cursor(terminal_seen=set(subscription.terminal_seen))
        """The position in each turn that was polled in part."""

    # -- on the thread of the host

    @property
    def cursor(self) -> Mapping[str, int]:
        """What was polled so far, for `subscribe(after=...)`."""
        if not self._is_over:
            with suppress(SessionClosed, StageThreadDied):  # it is over meanwhile
                return self._thread.ask(lambda _: self._cursor_now()).result()
        return self._cursor_now()

    @property
    def terminal_seen(self) -> frozenset[str]:
        """The turns whose end was polled but not their commit, for `subscribe(terminal_seen=...)`."""
        return frozenset(self._polled.terminal_seen)

    def _note(self, item: StreamEvent) -> None:
        self._polled.note(item)
        if item.event_type is EventType.COMMIT_FINAL:
            del self._polled.after[item.turn_id]

    # -- on the thread of the stage

    def take_in(self) -> None:
        """Put into the inbox what is in the outbox now, which is bounded, whatever is there already."""
        while self._subscription.is_entered and (batch := self._subscription.receive_nowait()):
            self._put(batch)

    async def _read(self, task_status: trio.TaskStatus[None]) -> None:
        try:
            async with self._subscription as stream:
                self._started(task_status)
                while batch := await stream.receive_batch(self._capacity - len(self._inbox)):
                    self._put(batch)
                    if self._is_full:
                        await self._wait_for_room()
        except Detached as detached:
            self._error = partial(Detached, detached.reason)

    def _cursor_now(self) -> Mapping[str, int]:
        """On this thread, every event that the subscription has counted is in the inbox or was polled."""
        before = self._subscription.after or {}
        waiting = {event.turn_id: before.get(event.turn_id, -1) for event in self._inbox}
        polled = {turn_id: self._polled.after.get(turn_id, seq) for turn_id, seq in waiting.items()}
        return {**self._subscription.cursor, **polled}
