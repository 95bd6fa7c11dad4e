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

from footlights.events import SCHEMA_V, DeliveryClass, EventType, Payload, SeqRange, StreamEvent, TokenDelta

if TYPE_CHECKING:
    from footlights.limits import Limits
    from footlights.replay import Replay

_BEST_EFFORT = DeliveryClass.BEST_EFFORT
_BOUNDED = DeliveryClass.BOUNDED


class Entry(NamedTuple):
    """One event as it lies in every outbox: shared, never copied."""

    event: StreamEvent
    delivery: DeliveryClass
    size: int


class DeltaRun:
    """Adjacent token deltas on their way to become one event. No event is made for any of them before that."""

    __slots__ = ("bytes", "deltas", "facts", "last_seq", "offset")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.last_seq = 0
        self.bytes = 0
        self.deltas: list[str] = []
        self.facts: list[tuple[int, int, float | None]] = []
        """Of each delta: its size, mono_ts_ms and wall_ts."""


class Tally:
    """What all lanes of an outbox have dropped and joined."""

    __slots__ = ("best_effort_dropped", "bounded_dropped", "deltas_joined")

    def __init__(self) -> None:
        self.best_effort_dropped = 0
        self.bounded_dropped = 0
        self.deltas_joined = 0


class Lane:
    __slots__ = (
        "_best_effort_bytes",
        "_last_seq",
        "_limits",
        "_queue",
        "_replay",
        "_tally",
        "best_effort",
        "bounded",
        "bytes",
        "catching_up",
        "is_ready",
    )

    def __init__(self, replay: Replay, last_seq: int, limits: Limits, tally: Tally, *, catching_up: bool) -> None:
        self._replay = replay
        self._last_seq = last_seq
        self._limits = limits
        self._tally = tally
        self._queue: deque[Entry | DeltaRun] = deque()
        self._best_effort_bytes = 0
        self.catching_up = catching_up
        self.is_ready = False
        self.best_effort = 0
        self.bounded = 0
        self.bytes = 0

    @property
    def turn_id(self) -> str:
        return self._replay.turn_id

    @property
    def has_more(self) -> bool:
        return bool(self._queue) or self.catching_up

    @property
    def must_deliver(self) -> int:
        runs = sum(len(item.deltas) for item in self._queue if isinstance(item, DeltaRun))
        entries = sum(isinstance(item, Entry) for item in self._queue)
        return entries + runs - self.best_effort - self.bounded

    # -- in

    def put(self, entry: Entry) -> bool:
        """Whether the event has a place."""
        if entry.delivery is _BEST_EFFORT:
            if not self._admit_best_effort(entry.size):
                return False
        elif entry.delivery is _BOUNDED:
            if self.bounded >= self._limits.bounded_max_events_per_turn or not self._make_room(entry.size):
                self._tally.bounded_dropped += 1
                return False
            self.bounded += 1
            self.bytes += entry.size
        self._queue.append(entry)
        return True

    def put_delta(self, delta: str, seq: int, offset: int, size: int, mono_ts_ms: int, wall_ts: float | None) -> bool:
        """The same for a plain token delta: the hot path."""
        if not self._admit_best_effort(size):
            return False
        queue = self._queue
        run = queue[-1] if queue else None
        if type(run) is not DeltaRun or run.last_seq != seq - 1:
            run = DeltaRun(offset)
            queue.append(run)
        run.deltas.append(delta)
        run.facts.append((size, mono_ts_ms, wall_ts))
        run.last_seq = seq
        run.bytes += size
        return True

    def _admit_best_effort(self, size: int) -> bool:
        limits = self._limits
        if (
            self.best_effort >= limits.best_effort_max_events_per_turn
            or self.bytes + size > limits.max_bytes_per_turn_queue
        ):
            self._tally.best_effort_dropped += 1
            return False
        self.best_effort += 1
        self._best_effort_bytes += size
        self.bytes += size
        return True

    def _make_room(self, size: int) -> bool:
        """Give up the newest best-effort events until `size` more bytes fit, if they ever can."""
        limit = self._limits.max_bytes_per_turn_queue
        if self.bytes - self._best_effort_bytes + size > limit:
            return False
        kept: deque[Entry | DeltaRun] = deque()
        while self.bytes + size > limit:
            item = self._queue.pop()
            if isinstance(item, DeltaRun):
                while item.deltas and self.bytes + size > limit:
                    item.deltas.pop()
                    dropped = item.facts.pop()[0]
                    item.last_seq -= 1
                    item.bytes -= dropped
                    self._drop_best_effort(dropped)
                if item.deltas:
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
        self.best_effort -= events
        self._best_effort_bytes -= size
        self.bytes -= size

    # -- out

    def take(self) -> StreamEvent:
        """The next event, with what was missed before it declared. There must be one."""
        event = self._take_replayed() if self.catching_up else self._take_queued()
        if event.seq > self._last_seq + 1:
            event = _declare_missing(event, SeqRange(self._last_seq + 1, event.seq - 1))
        self._last_seq = event.seq
        return event

    def _take_replayed(self) -> StreamEvent:
        event = self._replay.event_after(self._last_seq)
        assert event is not None, "a lane that catches up has something left to read"
        self.catching_up = event.seq + 1 < self._replay.next_seq
        return event

    def _take_queued(self) -> StreamEvent:
        item = self._queue.popleft()
        if isinstance(item, DeltaRun):
            return self._joined(item)
        if item.delivery is _BEST_EFFORT:
            self._release_best_effort(1, item.size)
        elif item.delivery is _BOUNDED:
            self.bounded -= 1
            self.bytes -= item.size
        return item.event

    def _joined(self, run: DeltaRun) -> StreamEvent:
        """A run as one event, with the seq and the stamps of its last delta."""
        events = len(run.deltas)
        self._release_best_effort(events, run.bytes)
        self._tally.deltas_joined += events - 1
        _, mono_ts_ms, wall_ts = run.facts[-1]
        return StreamEvent(
            SCHEMA_V,
            self._replay.session_id,
            self._replay.turn_id,
            run.last_seq,
            mono_ts_ms,
            EventType.TOKEN_DELTA,
            TokenDelta(run.deltas[0] if events == 1 else "".join(run.deltas), run.offset),
            wall_ts,
        )


def _declare_missing(event: StreamEvent, missing: SeqRange) -> StreamEvent:
    payload = event.payload
    if type(payload) is TokenDelta:  # evolve is ten times slower, and this is what slow readers get most
        payload = TokenDelta(payload.delta, payload.offset, ext=payload.ext, dropped_seq_ranges=(missing,))
    else:
        payload = evolve(payload, dropped_seq_ranges=(missing,))
    return _with_payload(event, payload)


def _with_payload(event: StreamEvent, payload: Payload) -> StreamEvent:
    return StreamEvent(
        event.schema_v,
        event.session_id,
        event.turn_id,
        event.seq,
        event.mono_ts_ms,
        event.event_type,
        payload,
        event.wall_ts,
    )
