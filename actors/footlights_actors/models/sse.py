"""Event reader: parses server-sent events, as model servers use them, from bytes."""

from __future__ import annotations

from codecs import getincrementaldecoder

from footlights.errors import StreamError

MAX_EVENT_CHARS = 1_000_000

_Utf8Decoder = getincrementaldecoder("utf-8-sig")
"""Removes a byte order mark."""


class EventReader:
    """Reads one stream in any chunks. Other fields than `data` are ignored, and so is an incomplete last event."""

    def __init__(self) -> None:
        self._decoder = _Utf8Decoder("replace")
        self._after_return = False
        self._line: list[str] = []
        self._data: list[str] = []
        self._held = 0

    def feed(self, received: bytes) -> list[str]:
        """The data of the events completed by these bytes. Raises `StreamError` for an event that is too large."""
        text = self._decoder.decode(received)
        if not text:
            return []
        if self._after_return:
            text = text.removeprefix("\n")
        self._after_return = text.endswith("\r")
        *ends, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        events = [data for end in ends if (data := self._end_line(end)) is not None]
        self._hold(self._line, rest)
        return events

    def _end_line(self, end: str) -> str | None:
        line = "".join([*self._line, end])
        self._held -= len(line) - len(end)
        self._line.clear()
        if line:
            field, _, value = line.partition(":")
            if field == "data":
                self._hold(self._data, value.removeprefix(" "))
            return None
        data, self._data, self._held = self._data, [], 0
        return "\n".join(data) if data else None

    def _hold(self, part: list[str], text: str) -> None:
        part.append(text)
        self._held += len(text)
        if self._held > MAX_EVENT_CHARS:
            raise StreamError("The model's server sent an event that is too large.")
