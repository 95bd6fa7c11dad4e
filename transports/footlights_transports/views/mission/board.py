"""Mission boards: the newest called-out events of each mission, in memory and nowhere else.

An event is on its board before its voice speaks. If the voice then stays silent or leaves a recording, the event moves
to a new place, so that readers see it again.
"""

from __future__ import annotations

from collections import OrderedDict
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

import trio

from footlights.errors import InvalidCommand
from footlights.fair_share import eviction_candidate

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights.events import JsonValue
    from footlights_transports.access.policy import User
    from footlights_transports.views.mission.announcer import Announcement
    from footlights_transports.views.mission.pure.payload import UtilityPayload

MAX_EVENTS = 500
"""Of one board."""
MAX_BOARDS = 1_000
MAX_BYTES = 64_000_000
"""Of all boards together."""
_EVENT_BYTES = 1_000
"""The approximate size of an event without its texts."""

MissionName: TypeAlias = "tuple[User, str]"


class EventExists(InvalidCommand):
    """The board has an event of that id already. Nothing was added."""


class BoardEvent:
    """One event of a board."""

    def __init__(self, seq: int, announcement: Announcement, trigger_event_id: str | None) -> None:
        self.seq = seq
        """Its place on the board: greater than that of any event before it."""
        self.announcement = announcement
        """Its latest announcement."""
        self.trigger_event_id = trigger_event_id
        """The id of the event that it debriefs."""
        self.debrief: BoardEvent | None = None
        """Its own debrief, after an operator has closed it."""

    @property
    def payload(self) -> UtilityPayload:
        return self.announcement.payload

    @property
    def at_ms(self) -> int:
        """The time of its decision."""
        return self.announcement.at_ms

    @property
    def size(self) -> int:
        """Its approximate size in bytes."""
        return _EVENT_BYTES + 2 * len(self.payload.text.block) + sum(map(len, self.payload.evidence_refs))

    @property
    def acknowledgement(self) -> dict[str, JsonValue] | None:
        """Who closed it, and when, as plain JSON."""
        if self.debrief is None:
            return None
        return {
            "operator_ref": self.debrief.announcement.event.operator_ref,
            "debrief_event_id": self.debrief.payload.event_id,
            "closed_ms": self.debrief.at_ms,
            "trigger_to_debrief_closed_ms": max(0, self.debrief.at_ms - self.at_ms),
        }

    @property
    def document(self) -> dict[str, JsonValue]:
        """As plain JSON."""
        return {
            "seq": self.seq,
            "event_id": self.payload.event_id,
            "ts_ms": self.at_ms,
            "trigger_event_id": self.trigger_event_id,
            "ack": self.acknowledgement,
            "audio_url": self.announcement.audio_url,
            "payload": self.payload.document,
        }


class MissionBoard:
    """The newest events of one mission, for any number of readers."""

    def __init__(self, last_seq: int = 0) -> None:
        self.last_seq = last_seq
        """The place of the newest event, or the one before the first."""
        self.size = 0
        """The approximate size of its events in bytes."""
        self.is_over = False
        """Whether nothing will be added any more."""
        self._events: dict[str, BoardEvent] = {}
        self._changed = trio.Event()

    def after(self, seq: int) -> list[BoardEvent]:
        """The events after this place, the oldest first; all of them if the board never had such a place."""
        if seq > self.last_seq:
            seq = 0
        return [event for event in self._events.values() if event.seq > seq]

    def find(self, event_id: str) -> BoardEvent | None:
        return self._events.get(event_id)

    def check_new(self, event_id: str) -> None:
        """Raises `EventExists`."""
        if event_id in self._events:
            raise EventExists("event_id: is on the board already")

    def add(self, announcement: Announcement, trigger_event_id: str | None = None) -> BoardEvent:
        """Add an event, and forget the oldest if there are too many. Raises `EventExists`."""
        self.check_new(announcement.payload.event_id)
        event = BoardEvent(0, announcement, trigger_event_id)
        self.size += event.size
        self._append(event)
        while len(self._events) > MAX_EVENTS:
            self.size -= self._events.pop(next(iter(self._events))).size
        return event

    def amend(self, event: BoardEvent, announcement: Announcement) -> None:
        """Replace the announcement of an event, and move it to a new place unless it was forgotten."""
        event.announcement = announcement
        if self._events.get(event.payload.event_id) is event:
            del self._events[event.payload.event_id]
            self._append(event)

    async def wait_beyond(self, seq: int) -> None:
        """Return when there are events after this place, which the board has reached, or when the board is over."""
        while self.last_seq <= seq and not self.is_over:
            await self._changed.wait()

    def end(self) -> None:
        """Let the readers go: nothing will be added any more."""
        self.is_over = True
        self._wake_readers()

    def _append(self, event: BoardEvent) -> None:
        self.last_seq += 1
        event.seq = self.last_seq
        self._events[event.payload.event_id] = event
        self._wake_readers()

    def _wake_readers(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


class Boards:
    """The boards of a server. When there are too many, the user with the most loses the least recently used one."""

    def __init__(self, forgotten: Callable[[MissionName], None]) -> None:
        """`forgotten` is called for every board that goes."""
        self._boards: OrderedDict[MissionName, MissionBoard] = OrderedDict()
        """The most recently used at the end."""
        self._forgotten = forgotten
        self._last_seq = 0
        """The greatest place of all forgotten boards: new boards begin after it."""

    def find(self, name: MissionName) -> MissionBoard | None:
        if name in self._boards:
            self._boards.move_to_end(name)
        return self._boards.get(name)

    def open(self, name: MissionName) -> MissionBoard:
        """The board; a new one if there is none."""
        if name not in self._boards:
            self._boards[name] = MissionBoard(self._last_seq)
            self.make_room()
        self._boards.move_to_end(name)
        return self._boards[name]

    def make_room(self) -> None:
        """Forget boards while there are too many, or their events take too many bytes."""
        while len(self._boards) > MAX_BOARDS:
            self._forget(eviction_candidate(dict.fromkeys(self._boards, 1), itemgetter(0)))
        while sum(board.size for board in self._boards.values()) > MAX_BYTES:
            sizes = {name: board.size for name, board in self._boards.items()}
            self._forget(eviction_candidate(sizes, itemgetter(0)))

    def end(self) -> None:
        """End every board."""
        for board in self._boards.values():
            board.end()

    def _forget(self, name: MissionName) -> None:
        board = self._boards.pop(name)
        self._last_seq = max(self._last_seq, board.last_seq)
        board.end()
        self._forgotten(name)
