"""A message as words: folded, without what it quotes, sentence by sentence. Takes time linear in its length."""

from __future__ import annotations

import re
from unicodedata import normalize

from footlights.modes.phrases import PhraseTable

QUOTED = "“”"
"""Stands for everything that was quoted."""
COMMA = ","
"""Stands for any pause inside a sentence."""

# ruff: noqa: RUF001  # the marks that people type are what this module is about
_QUOTED_LINE = re.compile(r"^[ \t]*>[^\n]*", re.MULTILINE)
_TOKEN = re.compile(r"\w+(?:['.\-]\w+)*|[.!?;:,…()\[\]{}\"“”„«»`'‘—–。]")
_ENDS = frozenset(".!?;:…。")
_CLOSING = {'"': '"', "“": "”", "„": "“", "«": "»", "`": "`", "'": "'", "‘": "'"}


_REPORTS = """
    told me, told us, tells me, tells us, said, says, asked me, asked us, asks, wrote, writes, reads, repeat after me,
    say after me, this sentence, this line, this phrase, the sentence, the phrase, the words, title, subject, heading,
    headline, caption, quote
"""
_REPORTING = PhraseTable((" ".join(reversed(each.split())), True) for each in _REPORTS.split(","))
"""What stands before a colon if somebody else's words follow it; from its last word to its first."""
_FIRST_PERSON = frozenset({"i", "we"})
_REPORT_WORDS = 4


def sentences(message: str) -> list[list[str]]:
    """The words of each sentence, without what is quoted. How it is spaced or capitalised makes no difference."""
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
    """Where each mark stands for the last time: no search for a closing quote goes past the end in vain."""
    return {token: place for place, (token, _, _) in enumerate(tokens)}


def _is_apostrophe(text: str, start: int, end: int) -> bool:
    """One that follows a word closes it, or belongs to it; one that opens a quote has a word after it."""
    return (start > 0 and not text[start - 1].isspace()) or end >= len(text) or text[end].isspace()
