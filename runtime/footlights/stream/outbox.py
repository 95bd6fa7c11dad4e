"""Outbox: the bounded queue of one subscriber, which enforces the three delivery classes. It never blocks a turn.

Each turn has a lane of its own, and lanes are read in rotation: order matters within a turn, not between turns. A
subscriber that takes nothing for too long, or has events of too many turns waiting, is detached: its queue is emptied,
and it may resume from its cursor.

Pure: `on_ready` is called when there is something to take.
"""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import TYPE_CHECKING

from attrs import frozen

from footlights.events import EventType
from footlights.stream.fast_path import NONE
from footlights.stream.lane import Lane, Tally

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights.events import StreamEvent
    from footlights.limits import Limits
    from footlights.stream.lane import Entry
    from footlights.stream.replay import Replay

_COMMIT_FINAL = EventType.COMMIT_FINAL
_TOUCHED = float("-inf")
"""Events were taken since the last put."""


class DetachReason(StrEnum):
    """Why a subscriber was detached."""

    STALLED = "stalled"
    """It took nothing for `stall_detach` seconds while events waited."""
    OVERFLOW = "overflow"
    """Events of more than `max_turns_per_subscriber` turns waited, or are still to be read from the ledger."""
    COMMIT_UNKNOWN = "commit_unknown"
    """The stage closed before it knew whether a turn was committed."""


@frozen
class OutboxStatistics:
    """The events waiting for one subscriber, beside the limits, and those it missed."""

    turns: int
    """Turns that have events waiting."""
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
    """Deltas that were delivered as part of a later one. None of their text was lost."""


class Outbox:
    __slots__ = (
        "_lanes",
        "_limits",
        "_on_detach",
        "_on_ready",
        "_ready",
        "_tally",
        "_untouched_until",
        "detached",
    )

    def __init__(self, limits: Limits, on_ready: Callable[[], None], on_detach: Callable[[Outbox], None]) -> None:
        self._limits = limits
        self._on_ready = on_ready
        self._on_detach = on_detach
        self._lanes: dict[str, Lane] = {}
        self._ready: deque[Lane] = deque()
        self._tally = Tally()
        self._untouched_until = _TOUCHED
        """When a subscriber that takes nothing is detached."""
        self.detached: DetachReason | None = None

    # -- the turn's side

    def catch_up(self, replay: Replay, after: int) -> None:
        """Begin with every event of this turn after that seq."""
        replay.fast_path.until_seq = NONE
        if after + 1 < replay.next_seq:
            self._mark_ready(self._open_lane(replay, after, catching_up=True))

    def put(self, entry: Entry, replay: Replay, now: float) -> None:
        """Queue an event. The turn appends it to its replay afterwards."""
        lane = self._lanes.get(replay.turn_id)
        if lane is None:
            lane = self._open_lane(replay, entry.event.seq - 1, catching_up=False)
        self._after_put(lane, now, waits=lane.catching_up or lane.put(entry))

    def put_delta(self, replay: Replay, size: int, now: float) -> None:
        """Queue the next plain token delta of a turn, if it is beyond the fast-path budget."""
        lane = self._lanes.get(replay.turn_id)
        if lane is None:
            lane = self._open_lane(replay, replay.next_seq - 1, catching_up=False)
        if (
            replay.next_seq >= lane.free_until_seq
            or replay.said_bytes + size > lane.free_until_bytes
            or now > self._untouched_until
        ):
            replay.fast_path.until_seq = NONE
            self._after_put(lane, now, waits=lane.catching_up or lane.put_delta(size))
        else:
            replay.fast_path.narrow(lane.free_until_seq, lane.free_until_bytes, self._untouched_until)

    def close(self) -> None:
        """Accept no more events. Those that wait can still be taken."""
        for lane in self._lanes.values():
            lane.close_run()

    def detach(self, reason: DetachReason) -> None:
        """Detach the subscriber and drop what waits for it, unless the stage closes: those events are certain."""
        if reason is not DetachReason.COMMIT_UNKNOWN:
            self._lanes.clear()
            self._ready.clear()
        self.detached = reason
        self._on_detach(self)
        self._on_ready()

    # -- the subscriber's side

    def take(self) -> StreamEvent | None:
        """The next event, which declares those missed before it; None if none waits."""
        if not self._ready:
            return None
        if self._untouched_until != _TOUCHED:
            self._untouched_until = _TOUCHED
            for lane in self._lanes.values():
                lane.fast_path.until_seq = NONE
        lane = self._ready.popleft()
        event = lane.take()
        if lane.has_more:
            self._ready.append(lane)
        else:
            lane.is_ready = False
            if event.event_type is _COMMIT_FINAL:
                del self._lanes[lane.turn_id]
        return event

    def holds(self, turn_id: str) -> bool:
        """Whether more events of this turn will be taken, now or later."""
        return turn_id in self._lanes

    @property
    def is_empty(self) -> bool:
        return not self._ready

    @property
    def dropped(self) -> tuple[int, int]:
        """Dropped best-effort events, and dropped bounded ones."""
        return self._tally.best_effort_dropped, self._tally.bounded_dropped

    @property
    def waiting(self) -> tuple[int, int]:
        """Events that were not taken yet, and their bytes, as they count against the limits."""
        events = size = 0
        for lane in self._lanes.values():
            events += lane.best_effort + lane.bounded + lane.must_deliver
            size += lane.bytes
        return events, size

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
            must_deliver_waiting=sum(lane.must_deliver for lane in lanes),
            bytes_waiting=sum(lane.bytes for lane in lanes),
            bytes_limit_per_turn=limits.max_bytes_per_turn_queue,
            best_effort_dropped=self._tally.best_effort_dropped,
            bounded_dropped=self._tally.bounded_dropped,
            deltas_joined=self._tally.deltas_joined,
        )

    # -- inside

    def _open_lane(self, replay: Replay, last_seq: int, *, catching_up: bool) -> Lane:
        lane = Lane(replay, last_seq, self._limits, self._tally, catching_up=catching_up)
        self._lanes[replay.turn_id] = lane
        return lane

    def _after_put(self, lane: Lane, now: float, *, waits: bool) -> None:
        if self._untouched_until == _TOUCHED:
            if waits or self._ready:
                self._untouched_until = now + self._limits.stall_detach
        elif now > self._untouched_until:
            self.detach(DetachReason.STALLED)
            return
        if waits and not lane.is_ready:
            if len(self._ready) >= self._limits.max_turns_per_subscriber:
                self.detach(DetachReason.OVERFLOW)
            else:
                self._mark_ready(lane)

    def _mark_ready(self, lane: Lane) -> None:
        lane.is_ready = True
        self._ready.append(lane)
        self._on_ready()
