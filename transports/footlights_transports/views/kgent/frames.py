"""Events as WebSocket frames, in pieces of a bounded length: who is slow is given time for each. Pure.

An event that is longer than a piece becomes several fragments of one message, as every client can read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PIECE_BYTES = 65_536
"""What is sent at once, without the heads of the frames."""

_LAST = 0x80
_TEXT = 0x1
_GOES_ON = 0x0
_TWO_BYTES_OF_LENGTH = 126
_EIGHT_BYTES_OF_LENGTH = 127


def pieces(events: Iterable[bytes]) -> Iterator[bytes]:
    """Whole frames with all of the events, which must be UTF-8."""
    waiting: list[bytes] = []
    size = 0
    for head, part in (frame for event in events for frame in _frames(event)):
        if waiting and size + len(part) > PIECE_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
        waiting += (head, part)
        size += len(part)
    if waiting:
        yield b"".join(waiting)


def _frames(event: bytes) -> Iterator[tuple[bytes, bytes]]:
    for start in range(0, len(event), PIECE_BYTES):
        part = event[start : start + PIECE_BYTES]
        kind = _GOES_ON if start else _TEXT
        yield _head(kind | _LAST if start + PIECE_BYTES >= len(event) else kind, len(part)), part


def _head(first: int, size: int) -> bytes:
    if size < _TWO_BYTES_OF_LENGTH:
        return bytes((first, size))
    if size < 1 << 16:
        return bytes((first, _TWO_BYTES_OF_LENGTH)) + size.to_bytes(2, "big")
    return bytes((first, _EIGHT_BYTES_OF_LENGTH)) + size.to_bytes(8, "big")
