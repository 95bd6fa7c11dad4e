"""Progress of a subscriber: its position in each turn, what it missed, and whether all events were lawful. Pure.

It outlives connections, so that events after a resume are checked together with those before it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from footlights.events import EventType
from footlights.ids import in_order
from footlights.laws import Violation
from footlights.laws.turn import Turn
from footlights.stream.cursor import ALL_SEEN, Cursor
from footlights_transports.client.protocol import LawBroken

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from footlights.events import SeqRange, StreamEvent

MAX_FINISHED = 1_024
"""Finished turns that the cursor names; many more than a server retains."""
_MISSED_KEPT = 16
"""Finished turns whose missed events are still known."""


class Progress:
    """A subscriber's position, counted as the server counts it."""

    def __init__(self, after: Mapping[str, int], terminal_seen: Collection[str] = ()) -> None:
        self._cursor = Cursor(terminal_seen=set(terminal_seen))
        self._newest_seen = ""
        self._turns: dict[str, Turn] = {}
        self._finished: dict[str, None] = {turn_id: None for turn_id, seq in after.items() if seq >= ALL_SEEN}
        self._missed: dict[str, list[SeqRange]] = {}
        self._violations: list[Violation] = []
        for turn_id, seq in after.items():
            self._count(turn_id, seq)

    @property
    def cursor(self) -> dict[str, int]:
        """For the `after` of a subscribe."""
        return dict(self._cursor.after)

    @property
    def terminal_seen(self) -> frozenset[str]:
        """Turns whose end was received but not their commit."""
        return frozenset(self._cursor.terminal_seen)

    def knows(self, turn_id: str) -> bool:
        return turn_id in self._cursor.after

    def has_all_of(self, turn_id: str) -> bool:
        return self._cursor.after.get(turn_id, -1) >= ALL_SEEN

    @property
    def is_settled(self) -> bool:
        """Whether every known turn was received up to its commit."""
        return all(seq >= ALL_SEEN for seq in self._cursor.after.values())

    def missed(self, turn_id: str) -> tuple[SeqRange, ...]:
        return tuple(self._missed.get(turn_id, ()))

    def begin_at(self, cursor: Mapping[str, int]) -> None:
        """The position from which the server sends. Turns that it places at their end are finished."""
        for turn_id, seq in cursor.items():
            if turn_id not in self._cursor.after:
                self._count(turn_id, seq)
                if seq >= ALL_SEEN:
                    self._finish(turn_id)

    def expect(self, turn_id: str) -> None:
        """This turn was begun: the cursor names it, even if no event of it ever comes."""
        if turn_id not in self._cursor.after:
            self._count(turn_id, -1)

    def take(self, event: StreamEvent) -> None:
        """Check and count an event. Raises `LawBroken`."""
        turn_id = event.turn_id
        self._judge(event)
        self._count(turn_id, event.seq)
        self._cursor.note(event)
        if event.payload.dropped_seq_ranges:
            self._missed.setdefault(turn_id, []).extend(event.payload.dropped_seq_ranges)
        if event.event_type is EventType.COMMIT_FINAL:
            self._finish(turn_id)

    def _judge(self, event: StreamEvent) -> None:
        turn = self._turns.get(event.turn_id)
        if turn is None:
            report = partial(self._report, event.session_id, event.turn_id)
            seen = self._cursor.after.get(event.turn_id, -1)
            turn = self._turns[event.turn_id] = Turn(report, seen=seen, canceled=False)
        turn.see(event.seq, event.event_type, event)
        if self._violations:
            raise LawBroken(self._violations[0])

    def _report(self, session_id: str, turn_id: str, law: str, seq: int | None, sentence: str) -> None:
        self._violations.append(Violation(law, session_id, turn_id, seq, sentence))

    def _count(self, turn_id: str, seq: int) -> None:
        self._cursor.after[turn_id] = seq
        if seq >= 0:
            self._newest_seen = max(turn_id, self._newest_seen, key=in_order)

    def _finish(self, turn_id: str) -> None:
        self._cursor.terminal_seen.discard(turn_id)
        self._turns.pop(turn_id, None)
        self._finished[turn_id] = None
        kept = list(self._finished)
        if len(kept) > _MISSED_KEPT:
            self._missed.pop(kept[-_MISSED_KEPT - 1], None)
        if len(kept) > MAX_FINISHED:
            # Not the newest: the server sends all turns after it that the cursor does not name.
            oldest = kept[0] if kept[0] != self._newest_seen else kept[1]
            del self._finished[oldest]
            del self._cursor.after[oldest]
