"""Phrases of whole words, looked up at a place in a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_T = TypeVar("_T")


def word_set(text: str) -> frozenset[str]:
    """The words of a table."""
    return frozenset(text.split())


class PhraseTable(Generic[_T]):
    """What phrases mean. Looking one up takes time that does not depend on how much was said or how many there are."""

    __slots__ = ("_by_first",)

    def __init__(self, entries: Iterable[tuple[str, _T]]) -> None:
        self._by_first: dict[str, list[tuple[tuple[str, ...], _T]]] = {}
        for phrase, meaning in entries:
            words = tuple(phrase.split())
            self._by_first.setdefault(words[0], []).append((words, meaning))
        for candidates in self._by_first.values():
            candidates.sort(key=lambda entry: -len(entry[0]))

    def matches(self, words: Sequence[str], at: int) -> Iterator[tuple[int, _T]]:
        """Where each phrase that stands at this place ends, and what it means; the longest first."""
        if at >= len(words):
            return
        for phrase, meaning in self._by_first.get(words[at], ()):
            end = at + len(phrase)
            if tuple(words[at:end]) == phrase:
                yield end, meaning

    def longest(self, words: Sequence[str], at: int) -> tuple[int, _T] | None:
        """The longest phrase at this place."""
        return next(self.matches(words, at), None)
