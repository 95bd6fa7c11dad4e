"""One subscriber's stream: an outbox, and the one task that reads it.

    async with session.subscribe() as stream:
        async for event in stream: ...

Entering attaches it to the session, leaving lets go; neither says anything about the turns. The iteration
ends when the session is closed and everything was taken. A subscriber that was let go gets `Detached` and
can come back with `session.subscribe(stream.cursor, stream.terminal_seen)`.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

import trio
from trio.lowlevel import Abort, enable_ki_protection, reschedule, wait_task_rescheduled

from footlights.checks import check_cursor
from footlights.errors import Detached, InvalidCommand
from footlights.events import EventType
from footlights.stream.catch_up import newest_seen
from footlights.stream.outbox import DetachReason, Outbox, OutboxStatistics
from footlights.stream.recall import ALL_SEEN
from footlights.stream.until_commit import UntilCommit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
    from types import TracebackType

    from footlights.events import StreamEvent
    from footlights.limits import Limits
    from footlights.stream.catch_up import Recollection


_TERMINAL = frozenset({EventType.TURN_FINAL, EventType.TURN_INTERRUPTED})
_READ_BY_ANOTHER = "Another task is reading this subscription."


class SubscriptionHost(Protocol):
    """What a subscription needs of its session."""

    limits: Limits

    def attach(self, subscription: Subscription) -> None: ...
    async def recall(self, after: Mapping[str, int], terminal_seen: Collection[str]) -> Recollection: ...
    def is_open(self, turn_id: str) -> bool: ...
    def remembers(self, turn_id: str) -> bool: ...
    def let_go(self, outbox: Outbox) -> None: ...


class _Phase(Enum):
    NEW = auto()
    ATTACHED = auto()
    PORTION = auto()
    """Not attached: there is more to tell of what was missed than is told at once."""
    ENDED = auto()


class _Reader:
    """Who waits for events, if anybody does: a task, or one who is called.

    Apart, so that an outbox does not hold its subscription.
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


class Subscription:
    """One subscriber's stream of a session. Made by `session.subscribe`; read by one task."""

    __slots__ = ("_cursor", "_ended", "_phase", "_reader", "_recalled", "after", "host", "observer", "outbox")

    def __init__(
        self,
        host: SubscriptionHost,
        after: Mapping[str, int] | None,
        terminal_seen: Collection[str] = (),
        *,
        observer: bool = False,
    ) -> None:
        check_cursor(after, terminal_seen)
        self.host = host
        self.observer = observer
        self._reader = _Reader()
        self._phase = _Phase.NEW
        self._recalled: deque[StreamEvent] = deque()
        self._cursor: dict[str, int] = {} if after is None else dict(after)
        self.after = after
        self._ended = set(terminal_seen)
        self.outbox = Outbox(host.limits, self._reader.wake, host.let_go)

    async def __aenter__(self) -> Subscription:
        await trio.lowlevel.checkpoint()
        if self._phase is not _Phase.NEW:
            raise InvalidCommand("A subscription is entered once; subscribe again.")
        recollection = await self.host.recall(self.after or {}, self.terminal_seen)
        self._recalled.extend(recollection.events)
        self.expect(recollection.to_come if self.after is not None else ())
        if recollection.is_all:
            self._phase = _Phase.ATTACHED
            self.host.attach(self)
        else:
            self._phase = _Phase.PORTION
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.host.let_go(self.outbox)
        self.end()
        await trio.lowlevel.cancel_shielded_checkpoint()

    def __aiter__(self) -> Subscription:
        return self

    @enable_ki_protection
    async def __anext__(self) -> StreamEvent:
        """The next event. It waits, and is a checkpoint, only when there is none.

        Raises:
            Detached: this subscriber was let go.
            StopAsyncIteration: the session is closed and nothing is left.
        """
        while True:
            event = self._take()
            if event is not None:
                return event
            if not await self._more():
                raise StopAsyncIteration

    @enable_ki_protection
    async def receive_batch(self, limit: int = 256) -> list[StreamEvent]:
        """At least one event and whatever else waits, up to `limit`; an empty list at the end of the stream.

        Always a checkpoint. This is what transports pump: one wake-up, one frame.
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
        """Whatever waits, up to `limit`, which may be nothing. A plain call; it does not tell that the stream ended."""
        if limit < 1:
            raise InvalidCommand("A batch needs a limit of at least 1.")
        batch: list[StreamEvent] = []
        while len(batch) < limit and (event := self._take()) is not None:
            batch.append(event)
        return batch

    def call_when_ready(self, call: Callable[[], None] | None) -> None:
        """Call this when there is something to take, or the stream is live no longer; None to call nobody.

        It is called in the middle of what a turn does: it must be quick, and neither take, speak, cancel nor raise.
        """
        reader = self._reader
        if call is not None and (reader.task is not None or reader.call is not None):
            raise trio.BusyResourceError(_READ_BY_ANOTHER)
        reader.call = call

    def until_commit(self, turn_id: str) -> AsyncIterator[StreamEvent]:
        """Every event of the session up to the commit_final of this turn, other turns' events included.

        Ends at once if that was taken, or never will be, because the turn was settled before. Raises
        `UnknownTurn` for an id never given out.
        """
        will_come = self.host.is_open(turn_id) or self._holds(turn_id)
        return UntilCommit(self, turn_id, done=not will_come)

    @property
    def cursor(self) -> Mapping[str, int]:
        """What was taken so far, for `subscribe(after=...)`. A turn that was taken whole stands at 1,000,000,001."""
        return dict(self._cursor)

    @property
    def terminal_seen(self) -> frozenset[str]:
        """The turns whose end was taken and whose commit was not, for `subscribe(terminal_seen=...)`."""
        return frozenset(self._ended)

    @property
    def is_entered(self) -> bool:
        """Whether it has been entered, and what it missed was looked up."""
        return self._phase is not _Phase.NEW

    @property
    def is_live(self) -> bool:
        """Whether more may come: it was entered, not let go, and the session is open."""
        return self._phase is _Phase.ATTACHED and self.outbox.detached is None

    @property
    def is_exhausted(self) -> bool:
        """Whether the session is closed and everything was taken."""
        return self._phase is _Phase.ENDED and self.outbox.detached is None and self.is_empty

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be taken now."""
        return self.outbox.is_empty and not self._recalled

    def statistics(self) -> OutboxStatistics:
        """What waits, and what was dropped and joined so far."""
        return self.outbox.statistics()

    def skip(self, turn_ids: Iterable[str]) -> None:
        """Count these turns as taken; called by the session when it attaches this subscription."""
        self._cursor.update(dict.fromkeys(turn_ids, ALL_SEEN))

    def expect(self, turn_ids: Iterable[str]) -> None:
        """These turns are to come. The cursor names them, so that one who leaves before that comes back for them."""
        for turn_id in turn_ids:
            self._cursor.setdefault(turn_id, -1)

    def end(self) -> None:
        """There will be no more events: the session is closed, or nobody listens."""
        self._phase = _Phase.ENDED
        self._reader.wake()

    # -- inside

    def _take(self) -> StreamEvent | None:
        event = self._recalled.popleft() if self._recalled else self.outbox.take()
        if event is not None:
            self._cursor[event.turn_id] = event.seq
            if event.event_type is not EventType.TOKEN_DELTA:
                self._note_end(event)
        return event

    def _note_end(self, event: StreamEvent) -> None:
        if event.event_type is EventType.COMMIT_FINAL:
            self._cursor[event.turn_id] = ALL_SEEN
            self._ended.discard(event.turn_id)
            self._forget_old_turns()
        elif event.event_type in _TERMINAL:
            self._ended.add(event.turn_id)

    def _holds(self, turn_id: str) -> bool:
        return self.outbox.holds(turn_id) or any(event.turn_id == turn_id for event in self._recalled)

    def _forget_old_turns(self) -> None:
        # The newest stays, whatever is known of it: all before it is told, and all after it is not.
        newest = newest_seen(self._cursor)

        def matters(turn_id: str, seq: int) -> bool:
            return turn_id == newest or seq < ALL_SEEN or self.host.remembers(turn_id)

        self._cursor = {turn_id: seq for turn_id, seq in self._cursor.items() if matters(turn_id, seq)}

    async def _more(self) -> bool:
        """Wait until there may be something to take; False at the end of the stream."""
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
