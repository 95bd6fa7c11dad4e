"""One turn's share of one subscriber's outbox.

A lane keeps events in order, joins adjacent token deltas, and past its limits drops the newest best-effort
events, then bounded ones; must-deliver events have places outside every limit. Since seq has no holes when it
is given, whatever lies between two delivered events is exactly what this subscriber missed: the later one
declares it.

A lane that begins with a backlog reads it from the turn's replay, and is live once it has caught up.
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
    """One event as it lies in every outbox: shared, never copied."""

    event: StreamEvent
    delivery: DeliveryClass
    size: int


class DeltaRun:
    """Adjacent token deltas on their way to become one event. What they say lies in the turn's replay."""

    __slots__ = ("bytes", "first_seq", "last_seq", "stamps")

    def __init__(self, first_seq: int, last_seq: int, size: int, stamps: Stamps) -> None:
        self.first_seq = first_seq
        self.last_seq = last_seq
        self.bytes = size
        self.stamps = stamps
        """Of the last; if some at the end had to be given up, of the last of those."""


class Tally:
    """What all lanes of an outbox have dropped and joined."""

    __slots__ = ("best_effort_dropped", "bounded_dropped", "deltas_joined")

    def __init__(self) -> None:
        self.best_effort_dropped = 0
        self.bounded_dropped = 0
        self.deltas_joined = 0


class Lane:
    """A delta whose seq is below `free_until_seq`, and with which the turn has said no more than `free_until_bytes`,
    has a place without being put: the run at the end of the lane goes on with it.
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
        "free_until_bytes",
        "free_until_seq",
        "is_ready",
        "leeway",
    )

    def __init__(self, replay: Replay, last_seq: int, limits: Limits, tally: Tally, *, catching_up: bool) -> None:
        self._replay = replay
        self.leeway = replay.leeway
        self._last_seq = last_seq
        self._limits = limits
        self._tally = tally
        self._queue: deque[Entry | DeltaRun] = deque()
        # The run at the end that still grows is counted when it is closed.
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

    # -- in: the turn's replay has it afterwards, and not before

    def put(self, entry: Entry) -> bool:
        """Whether the event has a place."""
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
        """The same for a plain token delta, the next of the turn."""
        limits = self._limits
        if not self._has_room(size):
            self.close_run()
            return False
        if self._run_from is None:
            self._run_from, self._said_before_run = self._replay.next_seq, self._replay.said_bytes
        # Anew each time: what was taken from in front of the run has left room behind it.
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
        """What the turn says next does not belong to it."""
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
        """Give up the newest best-effort events until `size` more bytes fit, if they ever can."""
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
        """The next event, with what was missed before it declared. There must be one."""
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
        """The run that still grows, as far as it is."""
        first, last = self._run_from, self._replay.next_seq - 1
        assert first is not None, "a lane that is ready has something to take"
        self._run_from = None
        self.free_until_seq = 0
        self._tally.deltas_joined += last - first
        return self._replay.joined(first, last, self._replay.stamps(last), self._last_seq + 1)


def _declare_missing(event: StreamEvent, missing: SeqRange) -> StreamEvent:
    return evolve(event, payload=evolve(event.payload, dropped_seq_ranges=(missing,)))
