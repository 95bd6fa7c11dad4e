"""Frame gate: passes the bytes of a client on to trio-websocket, as whole frames of messages within limits.

trio-websocket keeps every fragment of a message until the last one arrives, and counts only the characters in them. So
a client could make it keep fragments without end, empty or with one character each. It also handles all frames that it
is given without a checkpoint, so it gets few at once. Pure: no sockets.
"""

from __future__ import annotations

import re

from attrs import frozen

MAX_PIECES = 1_024
"""Fragments of one message."""
MAX_AT_ONCE = 32
"""Frames that are passed on in one call."""

_END_OF_HEAD = re.compile(rb"\n\r?\n")
_LAST = 0x80
_CONTROL = 0x08
_MASKED = 0x80
_MASK_BYTES = 4
_LENGTH = 0x7F
_LENGTH_BYTES = {126: 2, 127: 8}


class FrameGate:
    """The input of one connection: first the head of its request, then frames."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._waiting = bytearray()
        self._bytes = 0
        self._pieces = 0
        self.is_in_head = True
        """Whether the head of the request is not complete."""
        self.is_too_much = False
        """Whether a message has more bytes or fragments than allowed. Nothing is passed on after that."""
        self.frames_passed = 0
        """Number of frames that the last call passed on."""

    def pass_on(self, data: bytes | bytearray = b"") -> bytes:
        """The bytes to pass on now: a part of the head, or up to `MAX_AT_ONCE` frames.

        If there are none, more data is needed. Without data, it continues with what was buffered.
        """
        self._waiting += data
        return self._pass_head(data) if self.is_in_head else self._pass_frames()

    def _pass_head(self, data: bytes | bytearray) -> bytes:
        found = _END_OF_HEAD.search(self._waiting)
        if found is None:
            del self._waiting[:-2]  # the last bytes may be the beginning of its end
            return bytes(data)
        self.is_in_head = False
        del self._waiting[: found.end()]
        return bytes(data[: len(data) - len(self._waiting)])

    def _pass_frames(self) -> bytes:
        end = 0
        self.frames_passed = 0
        while self.frames_passed < MAX_AT_ONCE and (frame := _frame_at(self._waiting, end)) is not None:
            self.is_too_much = self.is_too_much or self._would_be_too_much(frame)
            if self.is_too_much or len(self._waiting) < frame.end:
                break
            self._count(frame)
            self.frames_passed += 1
            end = frame.end
        passed = bytes(self._waiting[:end])
        del self._waiting[:end]
        return passed

    def _would_be_too_much(self, frame: _Frame) -> bool:
        if frame.is_control:
            return frame.payload_bytes > self._max_bytes
        return self._bytes + frame.payload_bytes > self._max_bytes or self._pieces == MAX_PIECES

    def _count(self, frame: _Frame) -> None:
        if frame.is_control:
            return
        if frame.is_last:
            self._bytes, self._pieces = 0, 0
        else:
            self._bytes += frame.payload_bytes
            self._pieces += 1


@frozen
class _Frame:
    is_control: bool
    is_last: bool
    payload_bytes: int
    end: int


def _frame_at(data: bytearray, at: int) -> _Frame | None:
    """The frame that begins at this offset; None if too little of it has arrived to know its length."""
    if len(data) < at + 2:
        return None
    first, second = data[at : at + 2]
    head_end = at + 2 + _LENGTH_BYTES.get(second & _LENGTH, 0)
    if len(data) < head_end:
        return None
    length = int.from_bytes(data[at + 2 : head_end], "big") if head_end > at + 2 else second & _LENGTH
    end = head_end + (_MASK_BYTES if second & _MASKED else 0) + length
    return _Frame(bool(first & _CONTROL), bool(first & _LAST), length, end)
