"""The board of a mission: what was called out, the newest at the end, and what operators have acknowledged.

A board keeps its newest events and forgets the others. An event is there before its voice speaks; if that is silent
then, the event comes again. A board holds what callouts say, in memory and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights.errors import FootlightsError, InvalidCommand

if TYPE_CHECKING:
    from footlights.events import JsonValue
    from footlights_transports.views.mission.announcer import Announcement
    from footlights_transports.views.mission.pure.payload import UtilityPayload

MAX_EVENTS = 500
"""Of one mission."""
_EVENT_BYTES = 1_000
"""About what an event takes besides its texts."""


class UnknownMissionEvent(FootlightsError):
    """The board has no such event, or has forgotten it."""

    code = "unknown_event"


class EventExists(InvalidCommand):
    """The board has an event of that id already. Nothing was added."""


@frozen(kw_only=True)
class Acknowledgement:
    """An operator has closed an event. Its debrief tells so on the board."""

    debrief: BoardEvent
    closed_ms: int
    trigger_to_debrief_closed_ms: int
    """From when the event was decided to when its debrief was closed; never negative."""

    @property
    def document(self) -> dict[str, JsonValue]:
        """As plain JSON."""
        return {
            "operator_ref": self.debrief.announcement.event.operator_ref,
            "debrief_event_id": self.debrief.payload.event_id,
            "closed_ms": self.closed_ms,
            "trigger_to_debrief_closed_ms": self.trigger_to_debrief_closed_ms,
        }


class BoardEvent:
    """One event of a board."""

    def __init__(self, seq: int, announcement: Announcement, trigger_event_id: str | None) -> None:
        self.seq = seq
        """Its place on the board: greater than that of any event before it."""
        self.announcement = announcement
        """The last that was told of it."""
        self.trigger_event_id = trigger_event_id
        """What it is the debrief of."""
        self.acknowledgement: Acknowledgement | None = None

    @property
    def payload(self) -> UtilityPayload:
        return self.announcement.payload

    @property
    def at_ms(self) -> int:
        """When it was decided."""
        return self.announcement.at_ms

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return _EVENT_BYTES + 2 * len(self.payload.text.block) + sum(map(len, self.payload.evidence_refs))

    @property
    def document(self) -> dict[str, JsonValue]:
        """As plain JSON."""
        return {
            "seq": self.seq,
            "event_id": self.payload.event_id,
            "ts_ms": self.at_ms,
            "trigger_event_id": self.trigger_event_id,
            "ack": None if self.acknowledgement is None else self.acknowledgement.document,
            "payload": self.payload.document,
        }


class MissionBoard:
    """The newest events of one mission, for any number of readers."""

    def __init__(self, max_events: int = MAX_EVENTS, last_seq: int = 0) -> None:
        self.last_seq = last_seq
        """Of the newest event; if there was none, the place after which the first one stands."""
        self.size = 0
        """About how many bytes its events take."""
        self.is_over = False
        """Whether nothing more will be told here."""
        self._max_events = max_events
        self._events: dict[str, BoardEvent] = {}
        self._news = trio.Event()

    def after(self, seq: int) -> list[BoardEvent]:
        """The events that it still has after this place, the oldest first; all, if it never came to such a place."""
        if seq > self.last_seq:
            seq = 0
        return [event for event in self._events.values() if event.seq > seq]

    def find(self, event_id: str) -> BoardEvent:
        """Raises `UnknownMissionEvent`."""
        if event_id not in self._events:
            raise UnknownMissionEvent("There is no such event on the board, or it is forgotten.")
        return self._events[event_id]

    def has(self, event_id: str) -> bool:
        return event_id in self._events

    def check_new(self, event_id: str) -> None:
        """Raises `EventExists`."""
        if self.has(event_id):
            raise EventExists("event_id: is on the board already")

    def add(self, announcement: Announcement, trigger_event_id: str | None = None) -> BoardEvent:
        """Put an event on the board; the oldest goes if there are too many. Raises `EventExists`."""
        self.check_new(announcement.payload.event_id)
        self.last_seq += 1
        event = BoardEvent(self.last_seq, announcement, trigger_event_id)
        self._events[announcement.payload.event_id] = event
        self.size += event.size
        while len(self._events) > self._max_events:
            self.size -= self._events.pop(next(iter(self._events))).size
        self._ring()
        return event

    def amend(self, event: BoardEvent, announcement: Announcement) -> None:
        """Tell what became of the voice of an event. It takes a new place, so that those who follow are told too."""
        event.announcement = announcement
        if self._events.get(announcement.payload.event_id) is event:
            self._events[event.payload.event_id] = self._events.pop(event.payload.event_id)
            self.last_seq += 1
            event.seq = self.last_seq
            self._ring()

    async def wait_beyond(self, seq: int) -> None:
        """Return when there are events after this place, or will never be. It has come to that place before."""
        while self.last_seq <= seq and not self.is_over:
            await self._news.wait()

    def end(self) -> None:
        """Nothing more will be told here."""
        self.is_over = True
        self._ring()

    def _ring(self) -> None:
        self._news.set()
        self._news = trio.Event()
