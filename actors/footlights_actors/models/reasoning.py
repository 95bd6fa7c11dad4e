"""Thought filter: removes thoughts that a model writes into its text.

    thoughts = ThoughtFilter()
    thoughts.feed("<thi"), thoughts.feed("nk>A bed?</think>A room?"), thoughts.finish()     # "", "A room?", ""

The result does not depend on how the text is cut into pieces. Only a possible beginning of a tag is held back until the
next piece.
"""

from __future__ import annotations

import re
from collections import Counter

_NAMES = ("think", "thinking", "reasoning")
_BEGINNINGS = sorted({name[:end] for name in _NAMES for end in range(1, len(name))})
_BLANKS = r"\s{0,16}"
_OPENING = rf"<{_BLANKS}(?P<slash>/?){_BLANKS}"
_NAME = rf"(?P<name>{'|'.join(_NAMES)}){_BLANKS}"
_TAG = re.compile(rf"{_OPENING}{_NAME}>", re.IGNORECASE | re.ASCII)
_PART_OF_TAG = re.compile(rf"{_OPENING}(?:{_NAME}|{'|'.join(_BEGINNINGS)})?", re.IGNORECASE | re.ASCII)


class ThoughtFilter:
    """Removes `<think>`, `<thinking>` and `<reasoning>` from one text, in upper and lower case, also as `<think >`.

    A thought ends when every tag that was opened in it is closed; one that is never closed hides the rest. A closing
    tag without an opening one is dropped; text before it stays visible. Blanks between a thought and the first word are
    removed.
    """

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._held = ""
        self._after_thought = False
        self._shown = False

    def feed(self, text: str) -> str:
        """The visible part of the next piece, and of text held back before it."""
        text = self._held + text
        shown: list[str] = []
        begin = 0
        for tag in _TAG.finditer(text):
            shown.append(self._show(text[begin : tag.start()]))
            self._pass(tag["name"].lower(), closes=bool(tag["slash"]))
            begin = tag.end()
        end = _may_be_tag_from(text, begin)
        self._held = text[end:]
        shown.append(self._show(text[begin:end]))
        return "".join(shown)

    def finish(self) -> str:
        """The text held back, which was not a tag, at the end of the text."""
        held, self._held = self._held, ""
        return self._show(held)

    def _pass(self, name: str, *, closes: bool) -> None:
        if not closes:
            self._open[name] += 1
            self._after_thought = True
        elif self._open[name]:
            self._open[name] -= 1

    def _show(self, text: str) -> str:
        if self._open.total():
            return ""
        if self._after_thought and not self._shown:
            text = text.lstrip()
        self._shown = self._shown or bool(text)
        return text


def _may_be_tag_from(text: str, begin: int) -> int:
    """The start of a possible incomplete tag at the end of the text, or the length of the text."""
    found = text.rfind("<", begin)
    if found < 0:
        return len(text)
    return found if _PART_OF_TAG.fullmatch(text, found) else len(text)
