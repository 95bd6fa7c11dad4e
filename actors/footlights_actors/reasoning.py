"""What a model thinks is not what it says: thoughts written into the text are taken out of it.

    thoughts = ThoughtFilter()
    thoughts.feed("<thi"), thoughts.feed("nk>A bed?</think>A room?"), thoughts.finish()     # "", "A room?", ""

However a text is cut into pieces, the same of it is shown. Only what may be the beginning of a tag waits for
the next piece.
"""

from __future__ import annotations

import re

_NAMES = ("think", "thinking", "reasoning")
_CLOSED_BY = {f"<{name}>": f"</{name}>" for name in _NAMES}
_TAGS = (*_CLOSED_BY, *_CLOSED_BY.values())
_TAG = re.compile("|".join(_TAGS), re.IGNORECASE | re.ASCII)


class ThoughtFilter:
    """Takes `<think>`, `<thinking>` and `<reasoning>` out of one text, in any case of letters.

    A thought ends with the tag that closes it; one that is never closed hides the rest. A closing tag where
    nothing is open is dropped, and what was shown before it stays shown. The blank between a thought and the
    first word goes with the thought.
    """

    def __init__(self) -> None:
        self._closing: str | None = None
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
            self._pass(tag.group().lower())
            begin = tag.end()
        end = _may_be_tag_from(text, begin)
        self._held = text[end:]
        shown.append(self._show(text[begin:end]))
        return "".join(shown)

    def finish(self) -> str:
        """The text is over: what was held back was no tag."""
        held, self._held = self._held, ""
        return self._show(held)

    def _pass(self, tag: str) -> None:
        if self._closing is None:
            self._closing = _CLOSED_BY.get(tag)
            self._after_thought = self._after_thought or self._closing is not None
        elif tag == self._closing:
            self._closing = None

    def _show(self, text: str) -> str:
        if self._closing is not None:
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
    tail = text[found:].lower()
    return found if any(tag.startswith(tail) for tag in _TAGS) else len(text)
