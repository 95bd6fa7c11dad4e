"""Wrapping of text that comes in pieces: words stay whole, also if a word comes in several pieces. Pure.

A word is held back until the next piece shows that it is complete. Nothing that was written is ever moved.
"""

from __future__ import annotations

import re

from attrs import define
from rich.cells import cell_len

_WIDE = (
    r"\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6"
    r"\U0001f300-\U0003fffd"
)
_STAYS = r"[\ufe0f\U0001f3fb-\U0001f3ff\u3001\u3002\uff01\uff09\uff0c\uff0e\uff1f\u300d\u300f]*"
"""What never begins a line: modifiers of a picture, and closing punctuation of scripts without spaces."""
_UNIT = re.compile(rf"\n|[^\S\n]+|[{_WIDE}]{_STAYS}(?:\u200d.{_STAYS})*|[^\s{_WIDE}]+")
"""A line end, a space, a wide character, or a run of narrow ones. A line may be broken between any two."""


@define
class Wrapping:
    """A text that is written on lines of a terminal. Lines after a break begin with `indent` spaces."""

    indent: int = 0
    column: int = 0
    """The cells of the last line that are taken."""
    _space: str = ""
    _held: str = ""

    def add(self, text: str, width: int) -> str:
        """What can be written now, with its line ends."""
        units = _UNIT.findall(self._held + text)
        self._held = units.pop() if units and not units[-1].isspace() else ""
        return "".join(self._placed(unit, width) for unit in units)

    def flush(self, width: int) -> str:
        """The word that was held back."""
        held, self._held = self._held, ""
        return self._placed(held, width) if held else ""

    def _placed(self, unit: str, width: int) -> str:
        if unit == "\n":
            self.column, self._space = 0, ""
            return "\n"
        if unit.isspace():
            self._space += unit
            return ""
        space, self._space = self._space, ""
        cells = cell_len(unit)
        if self.column > self.indent and self.column + cell_len(space) + cells > width:
            space, self.column = "\n" + " " * self.indent, self.indent
        else:
            self.column += cell_len(space)
        self.column += cells
        if self.column > width:  # a word that is wider than the line: the terminal breaks it
            self.column = (self.column - 1) % width + 1
        return space + unit


_MARK = re.compile(r"\s*(?:\W )?")


def wrapped(text: str, width: int) -> str:
    """A line with a mark before it, such as "  · ", broken so that the rest stands under its first word."""
    mark = _MARK.match(text)
    indent = 0 if mark is None else min(cell_len(mark[0]), width // 2)
    wrapping = Wrapping(indent)
    return wrapping.add(text, width) + wrapping.flush(width)
