"""Recordings as files: one event a line as JSON, or Server-Sent Events as `curl -N` saves them.

A file that is neither would break a law on every line. So the reading stops after a few lines in a row that are not
events, and the command can say what it expected.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, cast

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_STRANGE = 5
"""Lines in a row that are not events."""

_FIELD = re.compile(rb"(?:data|event|id|retry)?:|(?:data|event|id|retry)[\r\n]|HTTP/")
_HEAD = b"HTTP/"
_NOTICES = (b"detached", b"ended")
"""Named in a native stream, and not events."""


class Recording:
    """The events of a recording, each as one JSON text. An event is an object with the field `key`."""

    def __init__(self, lines: Iterable[bytes], key: str) -> None:
        self._lines = lines
        self._key = key
        self.count = 0
        """Texts so far."""
        self.strange_line: int | None = None
        """The number of the text at which the reading stopped, or the last if none was an event; else None."""

    def __iter__(self) -> Iterator[bytes]:
        strange = 0
        for text in self._texts():
            self.count += 1
            yield text
            strange = 0 if self._is_event(text) else strange + 1
            if strange == MOST_STRANGE:
                break
        if strange and strange in (MOST_STRANGE, self.count):
            self.strange_line = self.count

    def _texts(self) -> Iterator[bytes]:
        lines = iter(self._lines)
        before: list[bytes] = []
        for line in lines:
            before.append(line)
            if line.strip():
                break
        everything = chain(before, lines)
        return self._data(everything) if before and _FIELD.match(before[-1]) else everything

    def _data(self, lines: Iterator[bytes]) -> Iterator[bytes]:
        """The data of Server-Sent Events. An event without an end is left out, as clients do."""
        data: list[bytes] = []
        name, in_head = b"", False
        for line in lines:
            field, _, value = line.rstrip(b"\r\n").partition(b":")
            if line.startswith(_HEAD):  # curl -i saves the head of the response too
                in_head = True
            elif not line.strip(b"\r\n"):
                if data and name not in _NOTICES:
                    yield b"\n".join(data)
                data, name, in_head = [], b"", False
            elif field == b"data" and not in_head:
                data.append(value.removeprefix(b" "))
            elif field == b"event" and not in_head:
                name = value.removeprefix(b" ")

    def _is_event(self, text: bytes) -> bool:
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            return False
        return isinstance(value, dict) and self._key in cast("dict[str, object]", value)
