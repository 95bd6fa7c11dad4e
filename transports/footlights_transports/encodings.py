"""Encodings: cache of the JSON of recent events (`footlights/wire/writing.py`), one for all subscribers. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights import wire

if TYPE_CHECKING:
    from footlights.events import StreamEvent

_MOST_EVENTS = 256
_MOST_BYTES = 262_144


class Encodings:
    """The last encoded events. Subscribers of a turn get the same event objects, shortly after each other."""

    def __init__(self) -> None:
        # The ids are valid keys, because the cache holds the events.
        self._recent: dict[int, tuple[StreamEvent, bytes]] = {}
        self._bytes = 0

    def encode(self, event: StreamEvent) -> bytes:
        """The event as one JSON object. Raises `InvalidEvent` if JSON cannot represent it."""
        known = self._recent.get(id(event))
        if known is not None:
            return known[1]
        encoded = wire.encode(event)
        self._recent[id(event)] = (event, encoded)
        self._bytes += len(encoded)
        while len(self._recent) > _MOST_EVENTS or self._bytes > _MOST_BYTES:
            _, oldest = self._recent.pop(next(iter(self._recent)))
            self._bytes -= len(oldest)
        return encoded
