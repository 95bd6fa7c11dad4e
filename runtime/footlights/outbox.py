"""What one subscriber has not taken yet. It never makes anybody wait.

Each turn has a lane of its own. A lane keeps events in order, joins adjacent token deltas when it is read,
and past its limits drops the newest best-effort events, then bounded ones; must-deliver events have places
outside every limit. Since seq has no holes when it is given, whatever lies between two delivered events is
exactly what this subscriber missed: the later one declares it.

A lane that starts with a backlog reads it from the turn's replay, and becomes live when it has caught up.
No trio here: `on_ready` is called when there is something to take.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from attrs import evolve, frozen

from footlights.events import DeliveryClass, EventType, Payload, SeqRange, StreamEvent, TokenDelta

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights.limits import Limits
    from footlights.replay import Replay

_MUST_DELIVER = DeliveryClass.MUST_DELIVER
_BEST_EFFORT = DeliveryClass.BEST_EFFORT
_BOUNDED = DeliveryClass.BOUNDED
_TOKEN_DELTA = EventType.TOKEN_DELTA
_COMMIT_FINAL = EventType.COMMIT_FINAL


class DetachReason(StrEnum):
    STALLED = "stalled"
    """It took nothing for `stall_detach` seconds while events waited."""
    OVERFLOW = "overflow"
    """Events of more than `max_turns_per_subscriber` turns waited."""
    COMMIT_UNKNOWN = "commit_unknown"
    """The stage closed before it knew whether a turn was committed."""


class Entry(NamedTuple):
    """One event as it lies in every outbox: shared, never copied."""

    event: StreamEvent
    delivery: DeliveryClass
    size: int


@frozen
class OutboxStatistics:
    turns: int
    max_turns: int
    best_effort_waiting: int
    best_effort_limit_per_turn: int
    bounded_waiting: int
    bounded_limit_per_turn: int
    must_deliver_waiting: int
    bytes_waiting: int
    bytes_limit_per_turn: int
    best_effort_dropped: int
    bounded_dropped: int
    deltas_joined: int


class _Lane:
    """One turn's share of an outbox."""

    __slots__ = (
        "best_effort",
        "best_effort_bytes",
        "bounded",
        "bytes",
        "catching_up",
        "is_ready",
        "last_seq",
        "queue",
        "replay",
    )

    def __init__(self, replay: Replay, last_seq: int, *, catching_up: bool) -> None:
        self.replay = replay
        self.last_seq = last_seq
        self.catching_up = catching_up
        self.queue: deque[Entry] = deque()
        self.best_effort = 0
        self.best_effort_bytes = 0
        self.bounded = 0
        self.bytes = 0
        self.is_ready = False


class Outbox:
    __slots__ = (
        "_joined",
        "_lanes",
        "_limits",
        "_on_detach",
        "_on_ready",
        "_ready",
        "_untouched_since",
        "best_effort_dropped",
        "bounded_dropped",
        "detached",
    )

    def __init__(self, limits: Limits, on_ready: Callable[[], None], on_detach: Callable[[Outbox], None]) -> None:
        self._limits = limits
        self._on_ready = on_ready
        self._on_detach = on_detach
        self._lanes: dict[str, _Lane] = {}
        self._ready: deque[_Lane] = deque()
        self._untouched_since: float | None = None
        self._joined = 0
        self.best_effort_dropped = 0
        self.bounded_dropped = 0
        self.detached: DetachReason | None = None

    # -- the turn's side

    def catch_up(self, replay: Replay, after: int) -> None:
        """Begin with everything of this turn after that seq."""
        if after + 1 < replay.next_seq:
            lane = self._lanes[replay.turn_id] = _Lane(replay, after, catching_up=True)
            self._mark_ready(lane)

    def put(self, entry: Entry, replay: Replay, now: float) -> None:
        if self._untouched_since is not None and now - self._untouched_since > self._limits.stall_detach:
            self.detach(DetachReason.STALLED)
            return
        lane = self._lanes.get(replay.turn_id)
        if lane is None:
            lane = self._lanes[replay.turn_id] = _Lane(replay, entry.event.seq - 1, catching_up=False)
        if not lane.catching_up:
            if not self._admit(lane, entry):
                return
            lane.queue.append(entry)
        if self._untouched_since is None:
            self._untouched_since = now
        if not lane.is_ready:
            if len(self._ready) >= self._limits.max_turns_per_subscriber:
                self.detach(DetachReason.OVERFLOW)
            else:
                self._mark_ready(lane)

    def detach(self, reason: DetachReason) -> None:
        self._lanes.clear()
        self._ready.clear()
        self.detached = reason
        self._on_detach(self)
        self._on_ready()

    # -- the subscriber's side

    def take(self) -> StreamEvent | None:
        """The next event, with what was missed before it declared; None when there is nothing."""
        if not self._ready:
            return None
        self._untouched_since = None
        lane = self._ready.popleft()
        event = self._take_replayed(lane) if lane.catching_up else self._take_queued(lane)
        if event.seq > lane.last_seq + 1:
            event = _declare_missing(event, SeqRange(lane.last_seq + 1, event.seq - 1))
        lane.last_seq = event.seq
        if lane.catching_up or lane.queue:
            self._ready.append(lane)
        else:
            lane.is_ready = False
            if event.event_type is _COMMIT_FINAL:
                del self._lanes[event.turn_id]
        return event

    @property
    def is_empty(self) -> bool:
        return not self._ready

    def statistics(self) -> OutboxStatistics:
        lanes = self._lanes.values()
        limits = self._limits
        return OutboxStatistics(
            turns=len(self._ready),
            max_turns=limits.max_turns_per_subscriber,
            best_effort_waiting=sum(lane.best_effort for lane in lanes),
            best_effort_limit_per_turn=limits.best_effort_max_events_per_turn,
            bounded_waiting=sum(lane.bounded for lane in lanes),
            bounded_limit_per_turn=limits.bounded_max_events_per_turn,
            must_deliver_waiting=sum(len(lane.queue) - lane.best_effort - lane.bounded for lane in lanes),
            bytes_waiting=sum(lane.bytes for lane in lanes),
            bytes_limit_per_turn=limits.max_bytes_per_turn_queue,
            best_effort_dropped=self.best_effort_dropped,
            bounded_dropped=self.bounded_dropped,
            deltas_joined=self._joined,
        )

    # -- inside

    def _mark_ready(self, lane: _Lane) -> None:
        lane.is_ready = True
        self._ready.append(lane)
        self._on_ready()

    def _admit(self, lane: _Lane, entry: Entry) -> bool:
        limits = self._limits
        if entry.delivery is _BEST_EFFORT:
            if (
                lane.best_effort >= limits.best_effort_max_events_per_turn
                or lane.bytes + entry.size > limits.max_bytes_per_turn_queue
            ):
                self.best_effort_dropped += 1
                return False
            lane.best_effort += 1
            lane.best_effort_bytes += entry.size
            lane.bytes += entry.size
        elif entry.delivery is _BOUNDED:
            if lane.bounded >= limits.bounded_max_events_per_turn or not self._make_room(lane, entry.size):
                self.bounded_dropped += 1
                return False
            lane.bounded += 1
            lane.bytes += entry.size
        return True

    def _make_room(self, lane: _Lane, size: int) -> bool:
        """Give up the newest best-effort entries until `size` more bytes fit, if they ever can."""
        limit = self._limits.max_bytes_per_turn_queue
        if lane.bytes - lane.best_effort_bytes + size > limit:
            return False
        kept: deque[Entry] = deque()
        while lane.bytes + size > limit:
            entry = lane.queue.pop()
            if entry.delivery is _BEST_EFFORT:
                lane.best_effort -= 1
                lane.best_effort_bytes -= entry.size
                lane.bytes -= entry.size
                self.best_effort_dropped += 1
            else:
                kept.appendleft(entry)
        lane.queue.extend(kept)
        return True

    def _take_replayed(self, lane: _Lane) -> StreamEvent:
        event = lane.replay.event_after(lane.last_seq)
        assert event is not None, "a lane that catches up has something left to read"
        lane.catching_up = event.seq + 1 < lane.replay.next_seq
        return event

    def _take_queued(self, lane: _Lane) -> StreamEvent:
        queue = lane.queue
        event, delivery, size = queue.popleft()
        if delivery is not _MUST_DELIVER:
            lane.bytes -= size
            if delivery is _BOUNDED:
                lane.bounded -= 1
            else:
                lane.best_effort -= 1
                lane.best_effort_bytes -= size
        if queue and _is_plain_delta(event) and _continues(queue[0].event, event):
            return self._join(lane, event)
        return event

    def _join(self, lane: _Lane, first: StreamEvent) -> StreamEvent:
        """`first` and every delta right behind it, as one event with the last one's seq and stamps."""
        queue = lane.queue
        last = first
        deltas = [_payload(first).delta]
        while queue and _continues(queue[0].event, last):
            last, _, size = queue.popleft()
            lane.bytes -= size
            lane.best_effort_bytes -= size
            deltas.append(_payload(last).delta)
        joined = len(deltas) - 1
        lane.best_effort -= joined
        self._joined += joined
        return _replace_payload(last, TokenDelta("".join(deltas), _payload(first).offset))


def _is_plain_delta(event: StreamEvent) -> bool:
    return event.event_type is _TOKEN_DELTA and event.payload.ext is None


def _continues(event: StreamEvent, previous: StreamEvent) -> bool:
    return event.seq == previous.seq + 1 and _is_plain_delta(event)


def _payload(event: StreamEvent) -> TokenDelta:
    return event.payload  # type: ignore[return-value]  # checked by event_type; an isinstance here is hot


def _declare_missing(event: StreamEvent, missing: SeqRange) -> StreamEvent:
    payload = event.payload
    if type(payload) is TokenDelta:  # evolve is ten times slower, and this is what slow readers get most
        return _replace_payload(
            event, TokenDelta(payload.delta, payload.offset, ext=payload.ext, dropped_seq_ranges=(missing,))
        )
    return _replace_payload(event, evolve(payload, dropped_seq_ranges=(missing,)))


def _replace_payload(event: StreamEvent, payload: Payload) -> StreamEvent:
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
