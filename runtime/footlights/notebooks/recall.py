"""Recall: which notes fit what a player says. A pure function of an index and a text.

The score of a note is a sum. For each word that it shares with the text, and that is rare in this notebook, it gets the
logarithm of the word's inverse frequency. To that comes its recency: 1 for the newest, half of that after each
`half_life` turns in which something was noted. Ties are broken by id. Of the best, those are taken that fit into a
number of characters.

A word that is in more than 20 notes, and in more than one of a hundred, is not rare: it costs no time and says nothing.
Words are compared by their stems. Text without spaces between words, such as Chinese, is compared by whole runs.
"""

from __future__ import annotations

import re
from heapq import nsmallest
from math import log
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_RECALLED = 32
"""The most notes of one prompt."""
_FEW, _SHARE = 20, 100
_MAX_WORDS = 256
"""Of what the player says."""
_WORD = re.compile(r"[^\W_]{2,64}")


class NoteIndex:
    """The words of the notes of one owner, added in their order. `stem` takes a word in lower case."""

    def __init__(self, stem: Callable[[str], str]) -> None:
        self.notes: dict[str, str] = {}
        """The text of each note by its id, the oldest first."""
        self._stem = stem
        self._turns: dict[str, int] = {}
        self._places: dict[str, list[str]] = {}
        self._newest = 0

    def add(self, note_id: str, number: int, text: str) -> None:
        """Add a note that is newer than all others; `number` counts the turns in which something was noted."""
        self.notes[note_id] = text
        self._turns[note_id] = self._newest = number
        for word in self._words(text):
            self._places.setdefault(word, []).append(note_id)

    def _words(self, text: str) -> Iterable[str]:
        return dict.fromkeys(self._stem(word) for word in _WORD.findall(text.casefold())[:_MAX_WORDS])

    def scores(self, said: str, half_life: float) -> dict[str, float]:
        """The score of each note that shares a rare word with the text, and of the newest ones."""
        count = len(self.notes)
        most = max(_FEW, count // _SHARE)
        found = dict.fromkeys(list(self.notes)[-MAX_RECALLED:], 0.0)
        for word in self._words(said):
            places = self._places.get(word, ())
            if 0 < len(places) <= most:
                weight = log(1 + count / len(places))
                for note_id in places:
                    found[note_id] = found.get(note_id, 0.0) + weight
        return {id_: score + 0.5 ** ((self._newest - self._turns[id_]) / half_life) for id_, score in found.items()}


def recall(index: NoteIndex, said: str, *, half_life: float, chars: int) -> tuple[str, ...]:
    """The ids of the best notes that have no more than `chars` characters together, the best first."""
    scores = index.scores(said, half_life)
    recalled: list[str] = []
    for _, note_id in nsmallest(MAX_RECALLED, ((-score, id_) for id_, score in scores.items())):
        length = len(index.notes[note_id])
        if length <= chars:
            chars -= length
            recalled.append(note_id)
    return tuple(recalled)
