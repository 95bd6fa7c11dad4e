"""A message as words: folded, without what it quotes, sentence by sentence. Takes time linear in its length."""

from __future__ import annotations

import re
from unicodedata import normalize

QUOTED = "“”"
"""Stands for everything that was quoted."""
COMMA = ","
"""Stands for any pause inside a sentence."""

# ruff: noqa: RUF001  # the marks that people type are what this module is about
_TOKEN = re.compile(r"\w+(?:['.\-]\w+)*|[.!?;:,…()\[\]{}\"“”„«»`'‘—–。]")
_ENDS = frozenset(".!?;:…。")
_CLOSING = {'"': '"', "“": "”", "„": "“", "«": "»", "`": "`", "'": "'", "‘": "'"}


def sentences(message: str) -> list[list[str]]:
    """The words of each sentence, without what is quoted. How it is spaced or capitalised makes no difference."""
    folded = normalize("NFKC", normalize("NFKC", message).casefold()).replace("’", "'")
    done: list[list[str]] = []
    current: list[str] = []
    for token in _without_quotes(folded):
        if token in _ENDS:
            done.append(current)
            current = []
        elif token is QUOTED or token[0].isalnum() or token[0] == "_":
            current.append(token)
        elif current and current[-1] != COMMA:
            current.append(COMMA)
    return [*(each for each in done if each), *([current] if current else [])]


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
    """Where each mark stands for the last time: no search for a closing quote goes past the end in vain."""
    return {token: place for place, (token, _, _) in enumerate(tokens)}


def _is_apostrophe(text: str, start: int, end: int) -> bool:
    """One that follows a word closes it, or belongs to it; one that opens a quote has a word after it."""
    return (start > 0 and not text[start - 1].isspace()) or end >= len(text) or text[end].isspace()
