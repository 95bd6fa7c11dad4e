"""Server-Sent Events of a session: the text of each event, and its id.

    id: WzIseyJ0MS0wMDAwMDEiOls0XX0se30se31d
    data: {"schema_v":"1.0","session_id":"s1-000001",...}

The `id` of an event says what was sent of every turn, up to and including this event. So a client that lost its
connection anywhere continues after the last event that it has whole: nothing is missing, and nothing is repeated.
Events have no `event` field; the two notices, `detached` and `ended`, have one and no `id`. Pure: no trio, no sockets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights import wire
from footlights.events import EventType
from footlights.stream.recall import ALL_SEEN
from footlights_transports.views.native.protocol import write_notice
from footlights_transports.views.native.sse_cursor import Cursor, counted, write_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Set as AbstractSet

    from footlights.events import StreamEvent

_TERMINAL = frozenset({EventType.TURN_FINAL, EventType.TURN_INTERRUPTED})


class SseWriter:
    """Writes the events of a subscription as text, and tracks what was written."""

    def __init__(self, cursor: Cursor, encode: Callable[[StreamEvent], bytes] = wire.encode) -> None:
        self._encode = encode
        self._parts = {turn_id: seq for turn_id, seq in cursor.after.items() if seq < ALL_SEEN}
        self._whole = {turn_id for turn_id, seq in cursor.after.items() if seq >= ALL_SEEN}
        self._runs = counted(self._whole)  # cached, because every id holds it
        self._terminal_seen = set(cursor.terminal_seen)

    @property
    def cursor(self) -> Cursor:
        """The cursor of everything written so far."""
        return Cursor({**self._parts, **dict.fromkeys(self._whole, ALL_SEEN)}, frozenset(self._terminal_seen))

    def opening(self) -> bytes:
        """An id and nothing else, with which a client can resume before the first event."""
        return b"id: %b\n\n" % self._id()

    def events(self, batch: Iterable[StreamEvent]) -> bytes:
        """The text of these events, each with its id."""
        return b"".join(map(self._event, batch))

    def forget_all_but(self, turn_ids: AbstractSet[str]) -> None:
        """Leave all other turns out of the ids from now on."""
        self._parts = {turn_id: seq for turn_id, seq in self._parts.items() if turn_id in turn_ids}
        self._terminal_seen.intersection_update(turn_ids)
        if not self._whole <= turn_ids:
            self._whole.intersection_update(turn_ids)
            self._runs = counted(self._whole)

    def _event(self, event: StreamEvent) -> bytes:
        turn_id = event.turn_id
        if event.event_type is EventType.COMMIT_FINAL:
            self._parts.pop(turn_id, None)
            self._whole.add(turn_id)
            self._runs = counted(self._whole)
            self._terminal_seen.discard(turn_id)
        else:
            self._parts[turn_id] = event.seq
            if event.event_type in _TERMINAL:
                self._terminal_seen.add(turn_id)
        return b"id: %b\ndata: %b\n\n" % (self._id(), self._encode(event))

    def _id(self) -> bytes:
        return write_word(self._parts, self._runs, self._terminal_seen).encode()


def notice(name: str, session_id: str, reason: str | None = None) -> bytes:
    """The text of a notice, `detached` or `ended`: the last text of a stream."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), write_notice(name, session_id, reason))
