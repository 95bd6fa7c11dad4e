"""Words of a message, and tables to look up words and phrases in them. Takes time linear in the length of the message.

A message is case-folded, stripped of what it quotes, and split into sentences.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Generic, TypeVar
from unicodedata import normalize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_T = TypeVar("_T")

QUOTED = "“”"
"""Stands for a quotation."""
COMMA = ","
"""Stands for any pause inside a sentence."""

# ruff: noqa: RUF001  # this module is about the punctuation that people type
_QUOTED_LINE = re.compile(r"^[ \t]*>[^\n]*", re.MULTILINE)
_TOKEN = re.compile(r"\w+(?:['.\-]\w+)*|[.!?;:,…()\[\]{}\"“”„«»`'‘—–。]")
_ENDS = frozenset(".!?;:…。")
_CLOSING = {'"': '"', "“": "”", "„": "“", "«": "»", "`": "`", "'": "'", "‘": "'"}


def word_set(text: str) -> frozenset[str]:
    """The words of a text, which are separated by spaces."""
    return frozenset(text.split())


def phrase_list(text: str) -> tuple[str, ...]:
    """The phrases of a text, which are separated by commas."""
    return tuple(" ".join(phrase.split()) for phrase in text.split(","))


class PhraseTable(Generic[_T]):
    """Meanings of phrases. A lookup costs the same in a long message as in a short one."""

    __slots__ = ("_by_first",)

    def __init__(self, entries: Iterable[tuple[str, _T]]) -> None:
        self._by_first: dict[str, list[tuple[tuple[str, ...], _T]]] = {}
        for phrase, meaning in entries:
            words = tuple(phrase.split())
            self._by_first.setdefault(words[0], []).append((words, meaning))
        for candidates in self._by_first.values():
            candidates.sort(key=lambda entry: -len(entry[0]))

    def matches(self, words: Sequence[str], at: int) -> Iterator[tuple[int, _T]]:
        """The end and the meaning of each phrase that begins at this place, the longest first."""
        if at >= len(words):
            return
        for phrase, meaning in self._by_first.get(words[at], ()):
            end = at + len(phrase)
            if tuple(words[at:end]) == phrase:
                yield end, meaning

    def longest(self, words: Sequence[str], at: int) -> tuple[int, _T] | None:
        """The longest phrase that begins at this place."""
        return next(self.matches(words, at), None)


_REPORTS = phrase_list("""
    told me, told us, tells me, tells us, said, says, asked me, asked us, asks, wrote, writes, reads, repeat after me,
    say after me, this sentence, this line, this phrase, the sentence, the phrase, the words, title, subject, heading,
    headline, caption, quote
""")
_REPORTING = PhraseTable((" ".join(reversed(each.split())), True) for each in _REPORTS)
"""Phrases before a colon that is followed by other people's words, from the last word to the first."""
_FIRST_PERSON = frozenset({"i", "we"})
_REPORT_WORDS = 4


def sentences(message: str) -> list[list[str]]:
    """The words of each sentence, without quotations. Spacing and capitals make no difference."""
    folded = normalize("NFKC", normalize("NFKC", message).casefold()).replace("’", "'")
    done: list[list[str]] = []
    current: list[str] = []
    is_reported = False
    for token in _without_quotes(_QUOTED_LINE.sub("“”.", folded)):
        if token in _ENDS:
            is_reported = token == ":" and not is_reported and _reports(current)
            done.append(current)
            current = [QUOTED] if is_reported else []
        elif is_reported:
            continue
        elif token is QUOTED or token[0].isalnum() or token[0] == "_":
            current.append(token)
        elif current and current[-1] != COMMA:
            current.append(COMMA)
    return [*(each for each in done if each), *([current] if current else [])]


def _reports(words: list[str]) -> bool:
    """ "He told me: ...", and not "I said: ..."."""
    last = words[: -_REPORT_WORDS - 1 : -1]
    found = _REPORTING.longest(last, 0)
    return found is not None and not (len(last) > found[0] and last[found[0]] in _FIRST_PERSON)


def _without_quotes(text: str) -> list[str]:
    tokens = [(match[0], match.start(), match.end()) for match in _TOKEN.finditer(text)]
    closers = _last_places(tokens)
    kept: list[str] = []
    place = 0
    while place < len(tokens):
        token, start, end = tokens[place]
        closing = _CLOSING.get(token)
        if closing is None or closers.get(closing, -1) <= place or (token == "'" and _is_apostrophe(text, start, end)):
            kept.append(token)
            place += 1
            continue
        place += 1
        while tokens[place][0] != closing:
            place += 1
        kept.append(QUOTED)
        place += 1
    return kept


def _last_places(tokens: list[tuple[str, int, int]]) -> dict[str, int]:
    """The last place of each token, so that no search for a closing quote runs to the end in vain."""
    return {token: place for place, (token, _, _) in enumerate(tokens)}


def _is_apostrophe(text: str, start: int, end: int) -> bool:
    """Whether this mark opens no quotation: it follows a word, or no word follows it."""
    return (start > 0 and not text[start - 1].isspace()) or end >= len(text) or text[end].isspace()
