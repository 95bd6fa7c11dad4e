"""PolledStream: a stream that is read on the thread of the stage and polled on another.

At most `CAPACITY` events wait between the threads. If the host does not keep up, the rest stays in the outbox, where
the rules for slow subscribers apply: deltas are joined, and finally some are dropped and declared.
"""

from __future__ import annotations

import logging
import sys
from collections import deque
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any

import trio

from footlights.errors import Detached, InvalidCommand
from footlights.events import EventType
from footlights.failures import contained, describe
from footlights.stream.cursor import Cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from footlights.errors import FootlightsError
    from footlights.events import StreamEvent
    from footlights.stream.subscription import Subscription
    from footlights_transports.embed.trio_thread import TrioThread

log = logging.getLogger("footlights.embed")

CAPACITY = 256
_CHECK_SECONDS = 0.25
"""Interval, in seconds, at which a waiting poll checks whether the thread has ended."""


class PolledStream:
    """One subscriber's stream, polled by one thread. Made by a session of a `StageThread`."""

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
        self._end_was_raised = False
        self._polling: dict[str, int] = {}
        """The thread that is polling. Setting a default is atomic, and a Ctrl-C locks that thread out of nothing."""
        self._on_ready: Callable[[], object] | None = None
        self._is_call_due = True
        """Whether the inbox was seen empty since the last call of `_on_ready`."""
        self._was_end_announced = False

    # -- on the thread of the host

    def poll(self, max_events: int = 64, timeout: float = 0.0) -> list[StreamEvent]:
        """The events that have come, up to `max_events`. It blocks only if there are none, for up to `timeout` seconds.

        Raises:
            Detached: this subscriber was detached, and has polled everything before that.
            StageThreadDied: the stage failed, and everything before that was polled.
            InvalidCommand: another thread is polling this stream, or this process is a fork.
        """
        if max_events < 1:
            raise InvalidCommand("A poll needs a max_events of at least 1.")
        self._thread.check_process()
        this = get_ident()
        if self._polling.setdefault("thread", this) != this:
            raise InvalidCommand("Another thread is polling this stream. Subscribe once more for a second reader.")
        try:
            return self._poll(max_events, timeout)
        finally:
            self._polling.clear()

    def _poll(self, max_events: int, timeout: float) -> list[StreamEvent]:
        if timeout > 0:
            self._wait(timeout)
        # Checked first: if it is over, all events are in the inbox by now.
        over = self._is_over
        events = self._take(max_events)
        self._make_room()
        if over and not events and (end := self._bad_end()) is not None:
            self._end_was_raised = True
            raise end
        return events

    def on_ready(self, call: Callable[[], object] | None) -> None:
        """Have this called when events can be polled, or the stream has ended: see `ThreadSession.on_ready`."""
        if not (call is None or callable(call)):
            raise InvalidCommand("on_ready takes something to call, or None.")
        self._on_ready = call
        self._is_call_due = True
        self._announce_soon()

    @property
    def is_open(self) -> bool:
        """Whether there is, or may be, more to poll, including an error that `poll` has yet to raise."""
        return not self._is_over or bool(self._inbox) or (not self._end_was_raised and self._bad_end() is not None)

    @property
    def cursor(self) -> Mapping[str, int]:
        """What was polled so far, for `subscribe(after=...)`."""
        if self._is_over:
            return self._cursor_now()
        return self._thread.ask(lambda _: self._cursor_now()).result()

    @property
    def terminal_seen(self) -> frozenset[str]:
        """The turns whose end was polled but not their commit, for `subscribe(terminal_seen=...)`."""
        return frozenset(self._polled.terminal_seen)

    def close(self) -> None:
        """Unsubscribe. Events that have come can still be polled."""
        self._thread.run_soon(self._scope.cancel)

    def _wait(self, timeout: float) -> None:
        deadline = monotonic() + timeout
        while not self._inbox and not self._is_over and (left := deadline - monotonic()) > 0:
            with suppress(Empty):
                self._bell.get(timeout=min(left, _CHECK_SECONDS))

    def _take(self, max_events: int) -> list[StreamEvent]:
        inbox = self._inbox
        events: list[StreamEvent] = []
        while inbox and len(events) < max_events:
            event = inbox.popleft()
            self._polled.note(event)
            if event.event_type is EventType.COMMIT_FINAL:
                del self._polled.after[event.turn_id]
            events.append(event)
        if not inbox:
            self._is_call_due = True
            if inbox or (self._is_over and not self._was_end_announced):  # meanwhile: its call may have been left out
                self._announce_soon()
        return events

    def _announce_soon(self) -> None:
        if self._thread.has_ended:
            self._announce()
        else:
            self._thread.run_soon(self._announce)

    def _make_room(self) -> None:
        room = self._room
        if room is not None and len(self._inbox) <= self._capacity // 2:
            self._thread.run_soon(room.set)

    @property
    def _is_over(self) -> bool:
        return self._has_ended or self._thread.has_ended

    def _bad_end(self) -> FootlightsError | None:
        """The error that ended the stream. A new one each time, because a traceback grows with each raise."""
        return self._thread.failure() if self._detached_for is None else Detached(self._detached_for)

    # -- on the thread of the stage

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Read until the session is closed, or this subscriber is detached."""
        try:
            with self._scope:
                async with self._subscription as stream:
                    self._thread.at_end.add(self._announce)
                    task_status.started()
                    while batch := await stream.receive_batch(self._capacity - len(self._inbox)):
                        self._put(batch)
                        if len(self._inbox) >= self._capacity:
                            await self._wait_for_room()
        except Detached as detached:
            self._detached_for = detached.reason
        self._has_ended = True
        self._ring()
        self._thread.at_end.discard(self._announce)

    def take_in(self) -> None:
        """Put into the inbox what is in the outbox now, which is bounded, whatever is there already."""
        while self._subscription.is_entered and (batch := self._subscription.receive_nowait()):
            self._put(batch)

    def lift(self) -> None:
        """Remove the limit and take in the rest, which is little: the session is about to close."""
        self._capacity = sys.maxsize
        if self._room is not None:
            self._room.set()

    async def _wait_for_room(self) -> None:
        self._room = trio.Event()  # before the check: from here on, a poll that makes room sets it
        while len(self._inbox) >= self._capacity:
            await self._room.wait()
        self._room = None

    def _put(self, batch: list[StreamEvent]) -> None:
        self._inbox.extend(batch)
        self._ring()

    def _ring(self) -> None:
        if self._bell.empty():
            self._bell.put(None)
        self._announce()

    def _announce(self) -> None:
        """Call the host, if there is something that it has not been called for."""
        call = self._on_ready
        is_end = self._is_over and not self._was_end_announced
        if call is None or not (self._inbox or is_end) or not (self._is_call_due or is_end):
            return
        self._is_call_due, self._was_end_announced = False, self._is_over
        with contained(self._drop_call):
            call()

    def _drop_call(self, error: BaseException) -> None:
        self._on_ready = None
        log.error("on_ready failed, and is not called again: %s", describe(error))

    def _cursor_now(self) -> Mapping[str, int]:
        """On this thread, every event that the subscription has counted is in the inbox or was polled."""
        before = self._subscription.after or {}
        waiting = {event.turn_id: before.get(event.turn_id, -1) for event in self._inbox}
        polled = {turn_id: self._polled.after.get(turn_id, seq) for turn_id, seq in waiting.items()}
        return {**self._subscription.cursor, **polled}
