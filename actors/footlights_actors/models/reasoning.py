"""What a model thinks is not what it says: thoughts written into the text are taken out of it.

    thoughts = ThoughtFilter()
    thoughts.feed("<thi"), thoughts.feed("nk>A bed?</think>A room?"), thoughts.finish()     # "", "A room?", ""

However a text is cut into pieces, the same of it is shown. Only what may be the beginning of a tag waits for
the next piece.
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
    """Takes `<think>`, `<thinking>` and `<reasoning>` out of one text, in any case of letters, also `<think >`.

    A thought ends when every tag that was opened in it is closed; one that is never closed hides the rest. A closing
    tag where nothing is open is dropped, and what was shown before it stays shown. The blank between a thought and
    the first word goes with the thought.
    """

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._held = ""
        self._after_thought = False
        self._shown = False

    def feed(self, text: str) -> str:
        """The next piece of the text: what of it, and of what was held back, is to be shown."""
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
        """The text is over: what was held back was no tag."""
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
    """Where the last piece of the text begins that could still become a tag; its end if there is none."""
    found = text.rfind("<", begin)
    if found < 0:
        return len(text)
    return found if _PART_OF_TAG.fullmatch(text, found) else len(text)
