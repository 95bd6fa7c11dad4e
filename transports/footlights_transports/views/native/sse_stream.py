"""Server-Sent Events of a session, each with a cursor as its id.

    id: WzIseyJ0MS0wMDAwMDEiOls0XX0se30se31d
    data: {"schema_v":"1.0","session_id":"s1-000001",...}

The `id` of an event is the cursor after it, of every turn. So a client whose connection is cut anywhere resumes after
the last event that it has whole, without a gap or a repeat. Events have no `event` field; the two notices, `detached`
and `ended`, have one and no `id`. Pure: no trio, no sockets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights import wire
from footlights.events import EventType
from footlights.stream.cursor import ALL_SEEN
from footlights_transports.views.native.protocol import write_notice
from footlights_transports.views.native.sse_cursor import whole_turns, write_cursor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Set as AbstractSet

    from footlights.events import StreamEvent
    from footlights.stream.cursor import Cursor


class SseWriter:
    """Writes events as Server-Sent Events, and keeps the cursor of what it wrote."""

    def __init__(self, cursor: Cursor, encode: Callable[[StreamEvent], bytes] = wire.encode) -> None:
        self.cursor = cursor
        self._encode = encode
        self.has_committed = False
        """Whether a turn was committed since `forget_all_but`, so that there may be turns to forget."""
        self._note_whole_turns()

    def opening(self) -> bytes:
        """An id without an event, so that a client whose connection is cut before the first event can resume."""
        return b"id: %b\n\n" % write_cursor(self.cursor, self._whole, self._in_part).encode()

    def events(self, batch: Iterable[StreamEvent]) -> bytes:
        """These events, each with its own id."""
        return b"".join(map(self._event, batch))

    def forget_all_but(self, turn_ids: AbstractSet[str]) -> None:
        """Name only these turns in the ids from now on: the server needs no others."""
        cursor = self.cursor
        self.has_committed = False
        cursor.terminal_seen.intersection_update(turn_ids)
        if not cursor.after.keys() <= turn_ids:
            cursor.after = {turn_id: seq for turn_id, seq in cursor.after.items() if turn_id in turn_ids}
            self._note_whole_turns()

    def _event(self, event: StreamEvent) -> bytes:
        cursor, kind = self.cursor, event.event_type
        if kind is EventType.TOKEN_DELTA:
            cursor.after[event.turn_id] = event.seq
            self._in_part.add(event.turn_id)
        else:
            cursor.note(event)
            self._in_part.add(event.turn_id)
            if kind is EventType.COMMIT_FINAL:
                self.has_committed = True
                self._note_whole_turns()
        word = write_cursor(cursor, self._whole, self._in_part).encode()
        return b"id: %b\ndata: %b\n\n" % (word, self._encode(event))

    def _note_whole_turns(self) -> None:
        # Every id names all turns, and which of them are whole changes only with a commit.
        self._whole = whole_turns(self.cursor)
        self._in_part = {turn_id for turn_id, seq in self.cursor.after.items() if seq < ALL_SEEN}


def notice(name: str, session_id: str, reason: str | None = None) -> bytes:
    """The notice `detached` or `ended`, the last text of a stream."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), write_notice(name, session_id, reason))
