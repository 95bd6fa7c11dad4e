"""Polled: items that are made on the thread of the stage, and polled on another.

Few items wait between the threads, and the source of the others waits until there is room.
"""

from __future__ import annotations

import logging
import sys
from collections import deque
from contextlib import suppress
from inspect import iscoroutinefunction
from math import inf
from queue import Empty, SimpleQueue
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio
from attrs import define

from footlights.errors import InvalidCommand
from footlights.failures import contained, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from footlights.errors import FootlightsError
    from footlights.stage.stage import Stage
    from footlights_transports.embed.trio_thread import TrioThread

T = TypeVar("T")

log = logging.getLogger("footlights.embed")

_CHECK_SECONDS = 0.25
"""Interval, in seconds, at which a waiting poll checks whether the thread has ended."""


@define(eq=False)
class _Wakeup:
    """A call of `on_ready`, and what it is due for. Each is a new object, so a late look at an old one harms none."""

    call: Callable[[], object]
    is_due: bool = True
    """Whether the inbox was seen empty since the last call."""
    was_end_announced: bool = False


class Polled(Generic[T]):
    """Events or commits of a stage, polled by one thread."""

    def __init__(self, thread: TrioThread[Any], capacity: int) -> None:
        self._thread = thread
        self._inbox: deque[T] = deque()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._capacity = capacity
        self._room: trio.Event | None = None
        self._scope = trio.CancelScope()
        self._has_ended = False
        self._error: Callable[[], FootlightsError] | None = None
        """Makes the error that ended the reading."""
        self._end_was_raised = False
        self._polling: dict[str, int] = {}
        """The thread that is polling. Setting a default is atomic, and a Ctrl-C locks that thread out of nothing."""
        self._wakeup: _Wakeup | None = None

    # -- on the thread of the host

    def poll(self, max_events: int = 64, timeout: float | None = 0.0) -> list[T]:
        """What has come, up to `max_events`. It blocks only if there is nothing, for up to `timeout` seconds.
        With None it waits for as long as there may be something.

        Raises:
            StageThreadDied: the stage failed, and everything before that was polled.
            InvalidCommand: another thread is polling, this is the stage's own thread, or the process is a fork.
        """
        if max_events < 1:
            raise InvalidCommand("A poll needs a max_events of at least 1.")
        self._thread.check_thread()  # which would have to wait for itself to read on
        this = get_ident()
        if self._polling.setdefault("thread", this) != this:
            raise InvalidCommand("Another thread is polling this stream. Subscribe once more for a second reader.")
        try:
            return self._poll(max_events, inf if timeout is None else timeout)
        finally:
            self._polling.clear()

    def _poll(self, max_events: int, timeout: float) -> list[T]:
        if timeout > 0:
            self._wait(timeout)
        # Checked first: if it is over, everything is in the inbox by now.
        over = self._is_over
        items = self._take(max_events)
        self._make_room()
        if over and not items and (end := self._bad_end()) is not None:
            self._end_was_raised = True
            raise end.with_traceback(None)  # a traceback would grow with each raise
        return items

    def on_ready(self, call: Callable[[], object] | None) -> None:
        """Have this called when there is something to poll, or the end has come: see `ThreadSession.on_ready`.

        Raises `InvalidCommand` if something else waits already; None removes it.
        """
        if call is None:
            self._wakeup = None
            return
        if iscoroutinefunction(call) or not callable(call):  # pyright: ignore[reportUnnecessaryComparison] - a host need not be typed
            raise InvalidCommand("on_ready takes a plain function to call, or None.")
        if self._wakeup is not None:
            raise InvalidCommand("Something waits for this stream already. Subscribe once more for a second reader.")
        self._wakeup = _Wakeup(call)
        if self._inbox or self._is_over:  # else it is called when the inbox gets something, which is after this
            self._announce_soon()

    @property
    def is_awaited(self) -> bool:
        """Whether `on_ready` has something to call."""
        return self._wakeup is not None

    @property
    def is_open(self) -> bool:
        """Whether there is, or may be, more to poll, including an error that `poll` has yet to raise."""
        return not self._is_over or bool(self._inbox) or (not self._end_was_raised and self._bad_end() is not None)

    def close(self) -> None:
        """Unsubscribe. What has come can still be polled."""
        self._thread.run_soon(self._scope.cancel)

    def _wait(self, timeout: float) -> None:
        deadline = monotonic() + timeout
        while not self._inbox and not self._is_over and (left := deadline - monotonic()) > 0:
            with suppress(Empty):
                self._bell.get(timeout=min(left, _CHECK_SECONDS))

    def _take(self, max_events: int) -> list[T]:
        inbox = self._inbox
        items: list[T] = []
        while inbox and len(items) < max_events:
            item = inbox.popleft()
            self._note(item)
            items.append(item)
        if not inbox and (wakeup := self._wakeup) is not None:
            wakeup.is_due = True
            if inbox or (self._is_over and not wakeup.was_end_announced):  # meanwhile: its call may have been left out
                self._announce_soon()
        return items

    def _note(self, item: T) -> None:
        """Take into account that this was polled."""
        raise NotImplementedError

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
        """The error that ended this."""
        return self._thread.failure() if self._error is None else self._error()

    # -- on the thread of the stage

    async def run(self, stage: Stage, *, task_status: trio.TaskStatus[None]) -> None:
        """Read to the end, or until `close`."""
        with self._scope:
            await self._read(task_status)
        if not stage.is_open and self._error is None:
            return  # this is over when the thread has ended, and knows whether the stage failed
        self._has_ended = True
        self._ring()
        self._thread.at_end.discard(self._ring)

    async def _read(self, task_status: trio.TaskStatus[None]) -> None:
        """Put what comes into the inbox. What it raises ends the stage."""
        raise NotImplementedError

    def _started(self, task_status: trio.TaskStatus[None]) -> None:
        self._thread.at_end.add(self._ring)
        task_status.started()

    def lift(self) -> None:
        """Remove the limit and take in the rest, which is little: the session is about to close."""
        self._capacity = sys.maxsize
        if self._room is not None:
            self._room.set()

    @property
    def _is_full(self) -> bool:
        return len(self._inbox) >= self._capacity

    async def _wait_for_room(self) -> None:
        self._room = trio.Event()  # before the check: from here on, a poll that makes room sets it
        while self._is_full:
            await self._room.wait()
        self._room = None

    def _put(self, batch: Iterable[T]) -> None:
        self._inbox.extend(batch)
        self._ring()

    def _ring(self) -> None:
        if self._bell.empty():
            self._bell.put(None)
        self._announce()

    def _announce(self) -> None:
        """Call the host, if there is something that it has not been called for."""
        wakeup = self._wakeup
        if wakeup is None:
            return
        is_end = self._is_over and not wakeup.was_end_announced
        if not is_end and not (self._inbox and wakeup.is_due):
            return
        wakeup.is_due, wakeup.was_end_announced = False, self._is_over
        with contained(self._drop_call):
            self._thread.call_host(wakeup.call)

    def _drop_call(self, error: BaseException) -> None:
        self._wakeup = None
        log.error("on_ready failed, and is not called again: %s", describe(error))
