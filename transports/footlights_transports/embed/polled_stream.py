"""A stream that is read on the stage's thread and polled on another.

Between the threads lie at most `CAPACITY` events. A host that does not keep up leaves the rest where the rules for
slow subscribers hold: there, deltas are joined, and in the end some are dropped and declared.
"""

from __future__ import annotations

import sys
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any

import trio

from footlights.errors import Detached, InvalidCommand
from footlights.events import EventType
from footlights.stream.cursor import Cursor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.errors import FootlightsError
    from footlights.events import StreamEvent
    from footlights.stream.subscription import Subscription
    from footlights_transports.embed.trio_thread import TrioThread

CAPACITY = 256
_LOOK_ROUND = 0.25
"""Seconds between two looks whether the thread has ended, for those who wait."""


class PolledStream:
    """One subscriber's stream, for one thread that polls. Made by a session of a `StageThread`."""

    def __init__(self, thread: TrioThread[Any], subscription: Subscription) -> None:
        self._thread = thread
        self._subscription = subscription
        self._inbox: deque[StreamEvent] = deque()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._capacity = CAPACITY
        self._room: trio.Event | None = None
        self._scope = trio.CancelScope()
        self._polled = Cursor(terminal_seen=set(subscription.terminal_seen))
        """The position in each turn that was polled in part."""
        self._detached_for: str | None = None
        self._has_ended = False
        self._end_was_told = False

    # -- the host's side

    def poll(self, max_events: int = 64, timeout: float = 0.0) -> list[StreamEvent]:
        """What has come, up to `max_events`. It never blocks, unless there is nothing and you give it a timeout.

        Raises:
            Detached: this subscriber was let go, and has got everything from before.
            StageThreadDied: the stage failed, and everything from before was taken.
        """
        if max_events < 1:
            raise InvalidCommand("A poll needs a max_events of at least 1.")
        if timeout > 0:
            self._wait(timeout)
        # Looked at first: what came before the end is in the inbox now.
        over = self._is_over
        events = self._take(max_events)
        self._make_room()
        if over and not events and (end := self._bad_end()) is not None:
            self._end_was_told = True
            raise end
        return events

    @property
    def is_open(self) -> bool:
        """Whether there is, or may be, more to poll; a bad end, which `poll` raises, is something too."""
        return not self._is_over or bool(self._inbox) or (not self._end_was_told and self._bad_end() is not None)

    @property
    def cursor(self) -> Mapping[str, int]:
        """What was polled so far, for `subscribe(after=...)`."""
        if self._is_over:
            return self._cursor_now()
        return self._thread.ask(lambda _stage: self._cursor_now()).result()

    @property
    def terminal_seen(self) -> frozenset[str]:
        """The turns whose end was polled and whose commit was not, for `subscribe(terminal_seen=...)`."""
        return frozenset(self._polled.terminal_seen)

    def close(self) -> None:
        """Let go. What lies here can still be polled."""
        self._thread.run_soon(self._scope.cancel)

    def _wait(self, timeout: float) -> None:
        deadline = monotonic() + timeout
        while not self._inbox and not self._is_over and (left := deadline - monotonic()) > 0:
            with suppress(Empty):
                self._bell.get(timeout=min(left, _LOOK_ROUND))

    def _take(self, max_events: int) -> list[StreamEvent]:
        inbox = self._inbox
        events: list[StreamEvent] = []
        while inbox and len(events) < max_events:
            event = inbox.popleft()
            self._polled.note(event)
            if event.event_type is EventType.COMMIT_FINAL:
                del self._polled.after[event.turn_id]
            events.append(event)
        return events

    def _make_room(self) -> None:
        room = self._room
        if room is not None and len(self._inbox) <= self._capacity // 2:
            self._thread.run_soon(room.set)

    @property
    def _is_over(self) -> bool:
        return self._has_ended or self._thread.has_ended

    def _bad_end(self) -> FootlightsError | None:
        """A new one each time: an error that is raised again and again would grow."""
        return self._thread.failure() if self._detached_for is None else Detached(self._detached_for)

    # -- the stage's side

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Read until the session is closed, or this subscriber is let go."""
        try:
            with self._scope:
                async with self._subscription as stream:
                    task_status.started()
                    while batch := await stream.receive_batch(self._capacity - len(self._inbox)):
                        self._inbox.extend(batch)
                        self._ring()
                        if len(self._inbox) >= self._capacity:
                            await self._wait_for_room()
        except Detached as detached:
            self._detached_for = detached.reason
        self._has_ended = True
        self._ring()

    def lift(self) -> None:
        """Take in all that is left, because it is not much more: the session is about to close."""
        self._capacity = sys.maxsize
        if self._room is not None:
            self._room.set()

    async def _wait_for_room(self) -> None:
        self._room = trio.Event()  # before the look: from here on, a poll that makes room sets it
        while len(self._inbox) >= self._capacity:
            await self._room.wait()
        self._room = None

    def _ring(self) -> None:
        if self._bell.empty():
            self._bell.put(None)

    def _cursor_now(self) -> Mapping[str, int]:
        """Here nothing is between the subscription and the inbox."""
        before = self._subscription.after or {}
        waiting = {event.turn_id: before.get(event.turn_id, -1) for event in self._inbox}
        polled = {turn_id: self._polled.after.get(turn_id, seq) for turn_id, seq in waiting.items()}
        return {**self._subscription.cursor, **polled}
