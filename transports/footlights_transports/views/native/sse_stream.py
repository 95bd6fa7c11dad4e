"""A session's stream as Server-Sent Events: what is written, and what each event's id says.

    id: WzIseyJ0MS0wMDAwMDEiOls0XX0se30se31d
    data: {"schema_v":"1.0","session_id":"s1-000001",...}

The `id` of an event says exactly what was sent up to it and with it, of every turn. So a client that was cut off
anywhere goes on from the last event that it has whole: nothing is missing, and nothing comes twice. Events have no
`event` field; the two notices, `detached` and `ended`, have one and no `id`. Pure: no trio, no sockets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights import wire
from footlights.events import EventType
from footlights.stream.cursor import ALL_SEEN
from footlights_transports.views.native.protocol import write_notice
from footlights_transports.views.native.sse_cursor import Cursor, counted, write_word

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Set as AbstractSet

    from footlights.events import StreamEvent

_TERMINAL = frozenset({EventType.TURN_FINAL, EventType.TURN_INTERRUPTED})


class SseWriter:
    """Turns what a subscription yields into bytes, and keeps account of what was written."""

    def __init__(self, cursor: Cursor, encode: Callable[[StreamEvent], bytes] = wire.encode) -> None:
        self._encode = encode
        self._parts = {turn_id: seq for turn_id, seq in cursor.after.items() if seq < ALL_SEEN}
        self._whole = {turn_id for turn_id, seq in cursor.after.items() if seq >= ALL_SEEN}
        self._runs = counted(self._whole)  # kept, because every event says it
        self._terminal_seen = set(cursor.terminal_seen)

    @property
    def cursor(self) -> Cursor:
        """What was written so far."""
        return Cursor({**self._parts, **dict.fromkeys(self._whole, ALL_SEEN)}, frozenset(self._terminal_seen))

    def opening(self) -> bytes:
        """An id and nothing else: whoever is cut off before the first event can come back too."""
        return b"id: %b\n\n" % self._id()

    def events(self, batch: Iterable[StreamEvent]) -> bytes:
        """These events, each with its own id."""
        return b"".join(map(self._event, batch))

    def forget_all_but(self, turn_ids: AbstractSet[str]) -> None:
        """These are the turns that still matter; the ids need not name others."""
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
    """`detached` or `ended`: the last that is written to a stream."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), write_notice(name, session_id, reason))
