"""Cursor: the events that a subscriber has taken of a session, turn by turn.

A subscriber that was detached, or lost its connection, subscribes again with its cursor and gets what is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field

from footlights.events import EventType
from footlights.ids import in_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights.events import StreamEvent

RESTART_SEQ = 1_000_000_000
"""The seq of a terminal event that is rebuilt from the ledger: far above every seq that a running turn gives out."""
ALL_SEEN = RESTART_SEQ + 1
"""The seq in a cursor of a turn that was taken whole, its commit_final included. No event has a greater one."""

_COMMIT_FINAL = EventType.COMMIT_FINAL
_TERMINAL = frozenset({EventType.TURN_FINAL, EventType.TURN_INTERRUPTED})


@define
class Cursor:
    """What `subscribe(after, terminal_seen)` takes, kept up to date by `note`."""

    after: dict[str, int] = field(factory=dict[str, int])
    """The seq of the last event taken of each turn; `ALL_SEEN` for a turn that was taken whole."""
    terminal_seen: set[str] = field(factory=set[str])
    """Turns whose terminal event was taken and whose commit_final was not."""

    def note(self, event: StreamEvent) -> None:
        """Count this event as taken."""
        turn_id, kind = event.turn_id, event.event_type
        if kind is _COMMIT_FINAL:
            self.after[turn_id] = ALL_SEEN
            self.terminal_seen.discard(turn_id)
        else:
            self.after[turn_id] = event.seq
            if kind in _TERMINAL:
                self.terminal_seen.add(turn_id)


def newest_seen(after: Mapping[str, int]) -> str | None:
    """The newest turn of which an event was taken. Every turn that began before it was delivered too."""
    return max((turn_id for turn_id, seq in after.items() if seq >= 0), key=in_order, default=None)
