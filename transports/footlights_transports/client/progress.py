"""What a client has taken of a session: where each turn stands, what was missed, and whether all of it was lawful.

Pure. It is kept while connections come and go, so whatever comes after a resume is judged together with what came
before.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from footlights.events import EventType
from footlights.ids import in_order
from footlights.laws import Violation
from footlights.laws.turn import Turn
from footlights.stream.cursor import ALL_SEEN
from footlights_transports.client.errors import LawBroken

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from footlights.events import SeqRange, StreamEvent

_TERMINAL = frozenset({EventType.TURN_FINAL, EventType.TURN_INTERRUPTED})
MAX_FINISHED = 1_024
"""Turns taken whole that are named when the client comes back; many more than a server retains."""
_MISSED_KEPT = 16
"""Finished turns of which it is still known what was missed."""


class Progress:
    """Where a subscriber stands, counted as the server counts it."""

    def __init__(self, after: Mapping[str, int], terminal_seen: Collection[str] = ()) -> None:
        self._cursor: dict[str, int] = {}
        self._newest_seen = ""
        self._ended = set(terminal_seen)
        self._turns: dict[str, Turn] = {}
        self._finished: dict[str, None] = {turn_id: None for turn_id, seq in after.items() if seq >= ALL_SEEN}
        self._missed: dict[str, list[SeqRange]] = {}
        self._violations: list[Violation] = []
        for turn_id, seq in after.items():
            self._count(turn_id, seq)

    @property
    def cursor(self) -> dict[str, int]:
        """What to say in `after`."""
        return dict(self._cursor)

    @property
    def terminal_seen(self) -> frozenset[str]:
        """Turns whose end was taken, and whose commit was not."""
        return frozenset(self._ended)

    def knows(self, turn_id: str) -> bool:
        return turn_id in self._cursor

    def has_all_of(self, turn_id: str) -> bool:
        return self._cursor.get(turn_id, -1) >= ALL_SEEN

    @property
    def is_settled(self) -> bool:
        """Whether every turn that is known was taken whole."""
        return all(seq >= ALL_SEEN for seq in self._cursor.values())

    def missed(self, turn_id: str) -> tuple[SeqRange, ...]:
        return tuple(self._missed.get(turn_id, ()))

    def begin_at(self, cursor: Mapping[str, int]) -> None:
        """Where the server begins: turns that ended before are not this subscriber's business."""
        for turn_id, seq in cursor.items():
            if turn_id not in self._cursor:
                self._count(turn_id, seq)
                if seq >= ALL_SEEN:
                    self._finish(turn_id)

    def expect(self, turn_id: str) -> None:
        """This turn was begun: even if nothing of it ever comes, its end is to be asked for."""
        if turn_id not in self._cursor:
            self._count(turn_id, -1)

    def take(self, event: StreamEvent) -> None:
        """Raises `LawBroken`."""
        turn_id = event.turn_id
        self._judge(event)
        self._count(turn_id, event.seq)
        if event.payload.dropped_seq_ranges:
            self._missed.setdefault(turn_id, []).extend(event.payload.dropped_seq_ranges)
        if event.event_type in _TERMINAL:
            self._ended.add(turn_id)
        elif event.event_type is EventType.COMMIT_FINAL:
            self._cursor[turn_id] = ALL_SEEN
            self._finish(turn_id)

    def _judge(self, event: StreamEvent) -> None:
        turn = self._turns.get(event.turn_id)
        if turn is None:
            report = partial(self._report, event.session_id, event.turn_id)
            seen = self._cursor.get(event.turn_id, -1)
            turn = self._turns[event.turn_id] = Turn(report, seen=seen, canceled=False)
        turn.see(event.seq, event.event_type, event)
        if self._violations:
            raise LawBroken(self._violations[0])

    def _report(self, session_id: str, turn_id: str, law: str, seq: int | None, sentence: str) -> None:
        self._violations.append(Violation(law, session_id, turn_id, seq, sentence))

    def _count(self, turn_id: str, seq: int) -> None:
        self._cursor[turn_id] = seq
        if seq >= 0:
            self._newest_seen = max(turn_id, self._newest_seen, key=in_order)

    def _finish(self, turn_id: str) -> None:
        self._ended.discard(turn_id)
        self._turns.pop(turn_id, None)
        self._finished[turn_id] = None
        kept = list(self._finished)
        if len(kept) > _MISSED_KEPT:
            self._missed.pop(kept[-_MISSED_KEPT - 1], None)
        if len(kept) > MAX_FINISHED:
            # Not the newest: what the server tells of turns that are not named begins behind it.
            oldest = kept[0] if kept[0] != self._newest_seen else kept[1]
            del self._finished[oldest]
            del self._cursor[oldest]
