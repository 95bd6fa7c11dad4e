"""Subscription: one subscriber's stream of a session, a `trio.abc.ReceiveChannel` of events.

    async with session.subscribe() as stream:
        async for event in stream: ...

Behind it is an `Outbox`, the bounded queue that joins and drops by delivery class. Entering attaches the outbox to the
session, leaving removes it; neither affects the turns. The stream ends when the session is closed and every event was
taken. A subscriber that does not keep up is detached: its next read raises `Detached`, and it can resume with
`session.subscribe(stream.cursor, stream.terminal_seen)`, or let `footlights.stream.follow` do so.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

import trio
from trio.lowlevel import Abort, enable_ki_protection, reschedule, wait_task_rescheduled

from footlights.checks import check_cursor
from footlights.errors import Detached, InvalidCommand
from footlights.events import EventType, StreamEvent
from footlights.redaction.screen import shown
from footlights.stream.cursor import ALL_SEEN, Cursor, newest_seen
from footlights.stream.outbox import DetachReason, Outbox, OutboxStatistics
from footlights.stream.until_commit import UntilCommit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping

    from footlights.limits import Limits
    from footlights.stream.catch_up import CatchUp

_READ_BY_ANOTHER = "Another task is reading this subscription."


class SubscriptionHost(Protocol):
    """The part of a session that a subscription uses."""

    limits: Limits

    def attach(self, subscription: Subscription) -> None: ...
    def remove(self, outbox: Outbox) -> None: ...
    async def catch_up(self, after: Mapping[str, int], terminal_seen: Collection[str]) -> CatchUp: ...
    def is_open(self, turn_id: str) -> bool: ...
    def retains(self, turn_id: str) -> bool: ...


class _Phase(Enum):
    NEW = auto()
    ATTACHED = auto()
    PORTION = auto()
    """Not attached: the ledger holds more missed turns than are delivered at once."""
    ENDED = auto()


class _Reader:
    """The task that waits for events, or the callback that is called when there are some.

    A separate object, so that an outbox holds no reference to its subscription.
    """

    __slots__ = ("call", "task")

    def __init__(self) -> None:
        self.task: trio.lowlevel.Task | None = None
        self.call: Callable[[], None] | None = None

    def wake(self) -> None:
        task = self.task
        if self.call is not None:
            self.call()
        elif task is not None:
            self.task = None
            reschedule(task)

    def abort(self, _raise_cancel: object) -> Abort:
        self.task = None
        return Abort.SUCCEEDED


class Subscription(trio.abc.ReceiveChannel[StreamEvent]):
    """One subscriber's stream of a session. Made by `session.subscribe`; read by one task."""

    __slots__ = (
        "_cursor",
        "_forget_at",
        "_is_covered",
        "_phase",
        "_reader",
        "_rebuilt",
        "after",
        "host",
        "observer",
        "outbox",
    )

    def __init__(
        self,
        host: SubscriptionHost,
        after: Mapping[str, int] | None,
        terminal_seen: Collection[str] = (),
        *,
        observer: bool = False,
        is_covered: bool = False,
    ) -> None:
        check_cursor(after, terminal_seen)
        self.host = host
        self.observer = observer
        self._is_covered = is_covered
        self._reader = _Reader()
        self._phase = _Phase.NEW
        self._rebuilt: deque[StreamEvent] = deque()
        self._cursor = Cursor(dict(after or ()), set(terminal_seen))
        self._forget_at = 0
        """The size of the cursor at which it may name turns that it need not. It doubles, so that this costs little."""
        self.after = after
        self.outbox = Outbox(host.limits, self._reader.wake, host.remove)

    async def __aenter__(self) -> Subscription:
        await trio.lowlevel.checkpoint()
        if self._phase is not _Phase.NEW:
            raise InvalidCommand("A subscription is entered once; subscribe again.")
        missed = await self.host.catch_up(self.after or {}, self.terminal_seen)
        self._rebuilt.extend(missed.events)
        self.expect(missed.expected if self.after is not None else ())
        if missed.is_complete:
            self._phase = _Phase.ATTACHED
            self.host.attach(self)
        else:
            self._phase = _Phase.PORTION
        return self

    async def aclose(self) -> None:
        """Leave the session. Events that were in the outbox can still be taken."""
        self.host.remove(self.outbox)
        self.end()
        await trio.lowlevel.cancel_shielded_checkpoint()

    @enable_ki_protection
    async def __anext__(self) -> StreamEvent:
        """The next event. Unlike `receive`, it is a checkpoint only when it has to wait.

        Raises:
            Detached: this subscriber was detached.
            StopAsyncIteration: the session is closed and every event was taken.
        """
        while True:
            event = self._take()
            if event is not None:
                return event
            if not await self._more():
                raise StopAsyncIteration

    async def receive(self) -> StreamEvent:
        """The next event. Always a checkpoint.

        Raises:
            Detached: this subscriber was detached.
            trio.EndOfChannel: the session is closed and every event was taken.
        """
        for event in await self.receive_batch(1):
            return event
        raise trio.EndOfChannel

    @enable_ki_protection
    async def receive_batch(self, limit: int = 256) -> list[StreamEvent]:
        """At least one event and all others that are ready, up to `limit`; an empty list at the end of the stream.

        Always a checkpoint. Transports use it to send one frame for each wake-up.
        """
        if self.is_empty:
            await trio.lowlevel.checkpoint_if_cancelled()
        else:
            await trio.lowlevel.checkpoint()
        while not (batch := self.receive_nowait(limit)):
            if not await self._more():
                break
        return batch

    @enable_ki_protection
    def receive_nowait(self, limit: int = 256) -> list[StreamEvent]:
        """The events that are ready, up to `limit`; perhaps none. It does not report the end of the stream."""
        if limit < 1:
            raise InvalidCommand("A batch needs a limit of at least 1.")
        batch: list[StreamEvent] = []
        while len(batch) < limit and (event := self._take()) is not None:
            batch.append(event)
        return batch

    def call_when_ready(self, call: Callable[[], None] | None) -> None:
        """Set the callback for when events are ready or the stream is no longer live; None removes it.

        A turn calls it while it emits: it must be quick, and must not take events, emit, cancel or raise.
        """
        reader = self._reader
        if call is not None and (reader.task is not None or reader.call is not None):
            raise trio.BusyResourceError(_READ_BY_ANOTHER)
        reader.call = call

    def until_commit(self, turn_id: str) -> AsyncIterator[StreamEvent]:
        """Every event of the session up to the commit_final of this turn, other turns' events included.

        Ends at once if that event was taken, or if the turn was settled before this subscription began. Raises
        `UnknownTurn` for an id that the session never gave out.
        """
        will_come = self.host.is_open(turn_id) or self._holds(turn_id)
        return UntilCommit(self, turn_id, done=not will_come)

    def will_bring(self, turn_id: str) -> bool:
        """Whether events of this turn are ready or may come. Raises `UnknownTurn` for an id that was not given out."""
        return self.host.is_open(turn_id) or self._holds(turn_id)

    @property
    def cursor(self) -> Mapping[str, int]:
        """The events taken so far, for `subscribe(after=...)`. A turn that was taken whole has 1,000,000,001."""
        return dict(self._cursor.after)

    @property
    def terminal_seen(self) -> frozenset[str]:
        """The turns whose terminal event was taken and whose commit was not, for `subscribe(terminal_seen=...)`."""
        return frozenset(self._cursor.terminal_seen)

    @property
    def is_entered(self) -> bool:
        """Whether it was entered, and the missed turns were read from the ledger."""
        return self._phase is not _Phase.NEW

    @property
    def is_live(self) -> bool:
        """Whether more events may come: it was entered, is not detached, and the session is open."""
        return self._phase is _Phase.ATTACHED and self.outbox.detached is None

    @property
    def is_exhausted(self) -> bool:
        """Whether the session is closed and every event was taken."""
        return self._phase is _Phase.ENDED and self.outbox.detached is None and self.is_empty

    @property
    def is_empty(self) -> bool:
        """Whether no event is ready."""
        return self.outbox.is_empty and not self._rebuilt

    def statistics(self) -> OutboxStatistics:
        """The events that are ready, and those dropped and joined so far."""
        return self.outbox.statistics()

    def skip(self, turn_ids: Iterable[str]) -> None:
        """Count these turns as taken; called by the session when it attaches this subscription."""
        self._cursor.after.update(dict.fromkeys(turn_ids, ALL_SEEN))

    def expect(self, turn_ids: Iterable[str]) -> None:
        """Name turns that will be delivered: a subscriber that leaves before they come resumes with them."""
        for turn_id in turn_ids:
            self._cursor.after.setdefault(turn_id, -1)

    def end(self) -> None:
        """Let the stream end after the events that are ready."""
        self._phase = _Phase.ENDED
        self._reader.wake()

    # -- inside

    def _take(self) -> StreamEvent | None:
        event = self._rebuilt.popleft() if self._rebuilt else self.outbox.take()
        if event is not None:
            kind = event.event_type
            if kind is EventType.TOKEN_DELTA:
                self._cursor.after[event.turn_id] = event.seq
            else:
                self._cursor.note(event)
                if kind is EventType.COMMIT_FINAL:
                    self._forget_old_turns()
            if self._is_covered:
                return shown(event)
        return event

    def _holds(self, turn_id: str) -> bool:
        return self.outbox.holds(turn_id) or any(event.turn_id == turn_id for event in self._rebuilt)

    def _forget_old_turns(self) -> None:
        # The newest turn stays in any case: catch-up begins after it.
        after = self._cursor.after
        if len(after) < self._forget_at:
            return
        newest = newest_seen(after)

        def matters(turn_id: str, seq: int) -> bool:
            return turn_id == newest or seq < ALL_SEEN or self.host.retains(turn_id)

        self._cursor.after = {turn_id: seq for turn_id, seq in after.items() if matters(turn_id, seq)}
        self._forget_at = 2 * len(self._cursor.after)

    async def _more(self) -> bool:
        """Wait until events may be ready; False at the end of the stream."""
        if self._phase is _Phase.PORTION:
            self.outbox.detach(DetachReason.OVERFLOW)
        if self.outbox.detached is not None:
            await trio.lowlevel.checkpoint()
            raise Detached(self.outbox.detached)
        if self._phase is _Phase.ENDED:
            await trio.lowlevel.checkpoint()
            return False
        if self._phase is _Phase.NEW:
            raise InvalidCommand("Enter the subscription first: async with session.subscribe() as stream.")
        reader = self._reader
        if reader.task is not None or reader.call is not None:
            raise trio.BusyResourceError(_READ_BY_ANOTHER)
        reader.task = trio.lowlevel.current_task()
        await wait_task_rescheduled(reader.abort)
        return True
