"""Sentence limit: ends a streamed text after a number of sentences, for models that do not know when to stop. Pure."""

from __future__ import annotations

_ENDS = frozenset(".!?\u2026")
_AFTER_END = frozenset("\"')]*\u2019\u201d")
"""Characters that belong to the sentence that ended before them."""


class SentenceLimit:
    """Passes on the first `sentences` of one text. A sentence has ended at a blank after its mark: `3.5` is no end."""

    def __init__(self, sentences: int) -> None:
        self._left = sentences
        self._after_mark = False

    @property
    def is_reached(self) -> bool:
        """Whether the last sentence has ended."""
        return self._left <= 0

    def feed(self, text: str) -> str:
        """The part of the next piece that is within the limit."""
        if self.is_reached:
            return ""
        for place, character in enumerate(text):
            if character.isspace() and self._after_mark:
                self._left -= 1
                if self._left == 0:
                    return text[:place]
            if character not in _AFTER_END:
                self._after_mark = character in _ENDS
        return text
