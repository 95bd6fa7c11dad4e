"""Lane: the events of one turn in one subscriber's outbox.

A lane keeps events in order and joins adjacent token deltas. Past a limit the new event is dropped. There is one
exception: if a bounded event lacks only bytes, the newest best-effort events are dropped to make room for it.
Must-deliver events are outside every limit.

The idea is that a lane stores references, not events. Events of a turn are made once and shared by all outboxes. A run
of adjacent deltas is stored as the seq of its first and last delta; while it still grows, as its first seq alone,
because its last is always the newest delta of the turn (see `footlights.stream.fast_path`). The text is read from the
turn's replay when the run is taken. So a slow subscriber costs a few bytes for each run, not for each token.

Why what was missed is declared exactly: the turn gives out seqs without holes, and the lane remembers the last seq that
was taken. Everything between that and the next event is what this subscriber missed, and the next event declares it.
No list of dropped events is needed, and nothing can be dropped without being declared.

A lane that begins with a backlog reads the replay event by event until it has caught up; new events need no place in
its queue meanwhile, because they are in the replay too.

Rejected: `trio.open_memory_channel` for each subscriber. It has one limit for everything, so a flood of tokens would
block a terminal event or the turn, and a full channel can only block or fail: it can neither join nor declare a gap.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from attrs import evolve

from footlights.events import DeliveryClass, SeqRange, StreamEvent
from footlights.stream.fast_path import WITHOUT_END

if TYPE_CHECKING:
    from footlights.limits import Limits
    from footlights.stream.replay import Replay, Stamps

_BEST_EFFORT = DeliveryClass.BEST_EFFORT
_BOUNDED = DeliveryClass.BOUNDED
_MUST_DELIVER = DeliveryClass.MUST_DELIVER


class Entry(NamedTuple):
    """One event as every outbox holds it: shared, never copied."""

    event: StreamEvent
    delivery: DeliveryClass
    size: int


class DeltaRun:
    """Adjacent token deltas that will be one event. Their text is in the turn's replay."""

    __slots__ = ("bytes", "first_seq", "last_seq", "stamps")

    def __init__(self, first_seq: int, last_seq: int, size: int, stamps: Stamps) -> None:
        self.first_seq = first_seq
        self.last_seq = last_seq
        self.bytes = size
        self.stamps = stamps
        """The stamps of the last delta, also if it was dropped from the end of the run."""


class Tally:
    """Events that the lanes of one outbox have dropped and joined."""

    __slots__ = ("best_effort_dropped", "bounded_dropped", "deltas_joined")

    def __init__(self) -> None:
        self.best_effort_dropped = 0
        self.bounded_dropped = 0
        self.deltas_joined = 0


class Lane:
    """Queue of one turn in one outbox.

    A delta whose seq is below `free_until_seq`, and with which the turn has said no more than `free_until_bytes`, need
    not be put: it extends the run at the end of the lane.
    """

    __slots__ = (
        "_best_effort",
        "_best_effort_bytes",
        "_bytes",
        "_last_seq",
        "_limits",
        "_queue",
        "_replay",
        "_run_from",
        "_said_before_run",
        "_tally",
        "bounded",
        "catching_up",
        "fast_path",
        "free_until_bytes",
        "free_until_seq",
        "is_ready",
    )

    def __init__(self, replay: Replay, last_seq: int, limits: Limits, tally: Tally, *, catching_up: bool) -> None:
        self._replay = replay
        self.fast_path = replay.fast_path
        self._last_seq = last_seq
        self._limits = limits
        self._tally = tally
        self._queue: deque[Entry | DeltaRun] = deque()
        # A run that still grows is counted when it is closed.
        self._run_from: int | None = None
        self._said_before_run = 0
        self._best_effort = 0
        self._best_effort_bytes = 0
        self._bytes = 0
        self.bounded = 0
        self.catching_up = catching_up
        self.is_ready = False
        self.free_until_seq = self.free_until_bytes = WITHOUT_END if catching_up else 0

    @property
    def turn_id(self) -> str:
        return self._replay.turn_id

    @property
    def has_more(self) -> bool:
        return bool(self._queue) or self._run_from is not None or self.catching_up

    @property
    def best_effort(self) -> int:
        growing = 0 if self._run_from is None else self._replay.next_seq - self._run_from
        return self._best_effort + growing

    @property
    def bytes(self) -> int:
        growing = 0 if self._run_from is None else self._replay.said_bytes - self._said_before_run
        return self._bytes + growing

    @property
    def must_deliver(self) -> int:
        return sum(isinstance(item, Entry) and item.delivery is _MUST_DELIVER for item in self._queue)

    # -- in: called before the turn appends the event to its replay

    def put(self, entry: Entry) -> bool:
        """Queue the event; False if it was dropped."""
        self.close_run()
        if entry.delivery is _BEST_EFFORT:
            if not self._has_room(entry.size):
                return False
            self._best_effort += 1
            self._best_effort_bytes += entry.size
            self._bytes += entry.size
        elif entry.delivery is _BOUNDED:
            if self.bounded >= self._limits.bounded_max_events_per_turn or not self._make_room(entry.size):
                self._tally.bounded_dropped += 1
                return False
            self.bounded += 1
            self._bytes += entry.size
        self._queue.append(entry)
        return True

    def put_delta(self, size: int) -> bool:
        """Queue the next plain token delta of the turn; False if it was dropped."""
        limits = self._limits
        if not self._has_room(size):
            self.close_run()
            return False
        if self._run_from is None:
            self._run_from, self._said_before_run = self._replay.next_seq, self._replay.said_bytes
        # Computed again each time: events taken from in front of the run have made room.
        self.free_until_seq = self._run_from + limits.best_effort_max_events_per_turn - self._best_effort
        self.free_until_bytes = self._said_before_run + limits.max_bytes_per_turn_queue - self._bytes
        return True

    def _has_room(self, size: int) -> bool:
        limits = self._limits
        if (
            self.best_effort >= limits.best_effort_max_events_per_turn
            or self.bytes + size > limits.max_bytes_per_turn_queue
        ):
            self._tally.best_effort_dropped += 1
            return False
        return True

    def close_run(self) -> None:
        """End the run at the end of the lane: the next delta begins a new one."""
        first = self._run_from
        if first is not None:
            replay = self._replay
            last, size = replay.next_seq - 1, replay.said_bytes - self._said_before_run
            self._queue.append(DeltaRun(first, last, size, replay.stamps(last)))
            self._best_effort += last - first + 1
            self._best_effort_bytes += size
            self._bytes += size
            self._run_from = None
            self.free_until_seq = 0

    def _make_room(self, size: int) -> bool:
        """Drop the newest best-effort events until `size` more bytes fit, if they can."""
        limit = self._limits.max_bytes_per_turn_queue
        if self._bytes - self._best_effort_bytes + size > limit:
            return False
        kept: deque[Entry | DeltaRun] = deque()
        while self._bytes + size > limit:
            item = self._queue.pop()
            if isinstance(item, DeltaRun):
                while item.last_seq >= item.first_seq and self._bytes + size > limit:
                    dropped = self._replay.size(item.last_seq)
                    item.last_seq -= 1
                    item.bytes -= dropped
                    self._drop_best_effort(dropped)
                if item.last_seq >= item.first_seq:
                    kept.appendleft(item)
            elif item.delivery is _BEST_EFFORT:
                self._drop_best_effort(item.size)
            else:
                kept.appendleft(item)
        self._queue.extend(kept)
        return True

    def _drop_best_effort(self, size: int) -> None:
        self._tally.best_effort_dropped += 1
        self._release_best_effort(1, size)

    def _release_best_effort(self, events: int, size: int) -> None:
        self._best_effort -= events
        self._best_effort_bytes -= size
        self._bytes -= size

    # -- out

    def take(self) -> StreamEvent:
        """The next event, which declares those missed before it. There must be one."""
        if self.catching_up:
            event = self._take_replayed()
        elif self._queue:
            event = self._take_queued()
        else:
            event = self._take_run()
        self._last_seq = event.seq
        return event

    def _take_replayed(self) -> StreamEvent:
        event = self._replay.event_after(self._last_seq)
        assert event is not None, "a lane that catches up has something left to read"
        if event.seq + 1 == self._replay.next_seq:
            self.catching_up = False
            self.free_until_seq = 0
        return event

    def _take_queued(self) -> StreamEvent:
        item = self._queue.popleft()
        if isinstance(item, DeltaRun):
            events = item.last_seq - item.first_seq + 1
            self._release_best_effort(events, item.bytes)
            self._tally.deltas_joined += events - 1
            return self._replay.joined(item.first_seq, item.last_seq, item.stamps, self._last_seq + 1)
        if item.delivery is _BEST_EFFORT:
            self._release_best_effort(1, item.size)
        elif item.delivery is _BOUNDED:
            self.bounded -= 1
            self._bytes -= item.size
        event = item.event
        if event.seq > self._last_seq + 1:
            return _declare_missing(event, SeqRange(self._last_seq + 1, event.seq - 1))
        return event

    def _take_run(self) -> StreamEvent:
        """The run that still grows, up to its newest delta."""
        first, last = self._run_from, self._replay.next_seq - 1
        assert first is not None, "a lane that is ready has something to take"
        self._run_from = None
        self.free_until_seq = 0
        self._tally.deltas_joined += last - first
        return self._replay.joined(first, last, self._replay.stamps(last), self._last_seq + 1)


def _declare_missing(event: StreamEvent, missing: SeqRange) -> StreamEvent:
    return evolve(event, payload=evolve(event.payload, dropped_seq_ranges=(missing,)))
