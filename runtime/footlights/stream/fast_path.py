"""How far a turn may speak on without asking anybody.

Most tokens of a flood change nothing but the turn's text: it stays in its state, and in each outbox the run at the end
of its lane goes on. An outbox that has nothing to do for a token says until when that stays so, and what all of them
allow is the leeway of the turn. It ends with any other event, and as soon as a subscriber takes something or a new one
comes.
"""

from __future__ import annotations

from math import inf

NONE = 0
WITHOUT_END = 1 << 62


class Leeway:
    """A token needs nobody's leave whose seq is below `until_seq`, with which the turn has said no more than
    `until_bytes`, and which comes no later than `until_time`. It ends by setting `until_seq` to `NONE`.
    """

    __slots__ = ("until_bytes", "until_seq", "until_time")

    def __init__(self) -> None:
        self.until_seq = NONE
        self.until_bytes = 0
        self.until_time = -inf

    def narrow(self, seq: int, size: int, time: float) -> None:
        if seq < self.until_seq:
            self.until_seq = seq
        if size < self.until_bytes:
            self.until_bytes = size
        if time < self.until_time:
            self.until_time = time
