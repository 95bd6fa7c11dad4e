"""The text of a turn on its way into a Dexi stream: each piece of it goes out once, and in order.

If deltas are missing, nothing goes out from the hole on, until `turn_final` says it all.
"""

from __future__ import annotations


class Text:
    def __init__(self) -> None:
        self._held: list[str] = []
        self._end = 0
        self._has_hole = False

    def hear(self, delta: str, offset: int) -> None:
        """The next delta, and where it starts in the turn's text."""
        self._has_hole = self._has_hole or offset != self._end
        if not self._has_hole:
            self._hold(delta)

    def hear_all(self, text: str) -> None:
        """All that was said, as `turn_final` has it."""
        self._hold(text[self._end :])

    def take(self) -> str:
        """What was heard and not taken yet."""
        taken = "".join(self._held)
        self._held.clear()
        return taken

    def _hold(self, piece: str) -> None:
        self._held.append(piece)
        self._end += len(piece)
