"""WebSocket frames of events, in pieces of at most 64 KiB, so that the send timeout applies to each piece. Pure.

An event that is longer than a piece becomes several fragments of one message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PIECE_BYTES = 65_536
"""Payload bytes of one piece."""

_FINAL = 0x80
_TEXT = 0x1
_CONTINUATION = 0x0
_TWO_BYTES_OF_LENGTH = 126
_EIGHT_BYTES_OF_LENGTH = 127


def pieces(events: Iterable[bytes]) -> Iterator[bytes]:
    """All events as text frames, in pieces of whole frames. Events must be UTF-8."""
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
        opcode = _CONTINUATION if start else _TEXT
        yield _head(opcode | _FINAL if start + PIECE_BYTES >= len(event) else opcode, len(part)), part


def _head(first: int, size: int) -> bytes:
    if size < _TWO_BYTES_OF_LENGTH:
        return bytes((first, size))
    if size < 1 << 16:
        return bytes((first, _TWO_BYTES_OF_LENGTH)) + size.to_bytes(2, "big")
    return bytes((first, _EIGHT_BYTES_OF_LENGTH)) + size.to_bytes(8, "big")
