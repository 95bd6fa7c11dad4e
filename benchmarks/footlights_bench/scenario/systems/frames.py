"""Frames of a WebSocket server, read from bytes: the part of RFC 6455 that a measuring client needs, at little cost.

The harness has to be much faster than the servers that it measures, and a general parser takes most of the time of an
event. Frames of a server are not masked, and no extension is negotiated. Pure.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from footlights_transports.client.protocol import ConnectionLost

if TYPE_CHECKING:
    from collections.abc import Iterator

_WHOLE, _SHORT, _LONG = 0x80, 126, 127
_MASKED = 0x80


class Opcode(IntEnum):
    CONTINUATION = 0
    TEXT = 1
    CLOSE = 8
    PING = 9
    PONG = 10


class FrameReader:
    """Collects bytes, and gives whole messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._parts = bytearray()

    def feed(self, data: bytes | bytearray) -> Iterator[tuple[int, bytes]]:
        """The messages that are complete now, each with the opcode of its first frame. Raises `ConnectionLost`."""
        self._buffer += data
        buffer, at, end = self._buffer, 0, len(self._buffer)
        while end - at >= 2:
            first, size = buffer[at], buffer[at + 1]
            body = at + 2
            if size >= _SHORT:
                body += 2 if size == _SHORT else 8
                if size & _MASKED or end < body:
                    break
                size = int.from_bytes(buffer[at + 2 : body])
            if end < body + size:
                break
            at = body + size
            yield from self._take(first, bytes(buffer[body:at]))
        if end - at >= 2 and buffer[at + 1] & _MASKED:
            raise ConnectionLost("The server sent a frame that is masked, which no server may.")
        del buffer[:at]

    def _take(self, first: int, payload: bytes) -> Iterator[tuple[int, bytes]]:
        opcode = first & 0x0F
        if first & _WHOLE and opcode is not Opcode.CONTINUATION and opcode:
            yield opcode, payload
            return
        self._parts += payload
        if first & _WHOLE:
            whole, self._parts = bytes(self._parts), bytearray()
            yield Opcode.TEXT, whole
