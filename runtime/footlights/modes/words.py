"""Words of a message: case-folded, without accents, without what it quotes, in sentences. Takes linear time."""

from __future__ import annotations

import re
from unicodedata import combining, normalize

QUOTED = "“”"
"""Stands for a quotation."""
COMMA = ","
"""Stands for any pause inside a sentence."""
NUMBER = "#"
"""Stands for any number."""
MARKS = frozenset({COMMA, QUOTED, "?", "!"})
"""What stands among the words of a sentence and is none."""

# ruff: noqa: RUF001  # this module is about the punctuation that people type
_QUOTED_LINE = re.compile(r"^[ \t]*>[^\n]*", re.MULTILINE)
_TOKEN = re.compile(r"\w+(?:['.\-]\w+)*|[.!?;:,…()\[\]{}\"“”„«»`'‘—–。]")
_ENDS = frozenset(".!?…。")
_CLOSING = {'"': '"', "“": "”", "„": "“", "«": "»", "`": "`", "'": "'", "‘": "'"}
_REPORT_WORDS = 4
_REPORT = re.compile(
    r"(?<!\bi )(?<!\bwe )\b(?:told (?:me|us)|tells (?:me|us)|asked me|said|says|asks|wrote|writes|reads|(?:repeat|say) "
    r"after me|(?:this|the) (?:sentence|line|phrase|words)|title|subject|heading|headline|caption|quote)$"
)
"""What stands before a colon that is followed by other people's words."""


def word_set(text: str) -> frozenset[str]:
    """The words of a text, which are separated by spaces."""
    return frozenset(text.split())


def folded(text: str) -> str:
    """The text without differences that do not matter: case, width, accents, forms of the apostrophe."""
    plain = normalize("NFKC", normalize("NFKC", text).casefold()).replace("’", "'")
    return "".join(each for each in normalize("NFD", plain) if not combining(each))


def sentences(message: str) -> list[list[str]]:
    """The words of each sentence, with its last mark if that is `?` or `!`."""
    done: list[list[str]] = []
    current: list[str] = []
    is_reported = False
    for token in _without_quotes(folded(_QUOTED_LINE.sub("“”.", message))):
        if token in _ENDS:
            done.append([*current, token] if token in "?!" and current else current)
            current, is_reported = [], False
        elif is_reported:
            continue
        elif token == QUOTED or token[0].isalnum() or token[0] == "_":
            current.append(NUMBER if token[0].isdigit() else token)
        elif current and current[-1] != COMMA:
            if token == ":" and _REPORT.search(" ".join(current[-_REPORT_WORDS:])):
                current, is_reported = [*current, QUOTED], True
            else:
                current.append(COMMA)
    return [each for each in [*done, current] if each]


def _without_quotes(text: str) -> list[str]:
    tokens = [(match[0], match.start(), match.end()) for match in _TOKEN.finditer(text)]
    closers = {token: place for place, (token, _, _) in enumerate(tokens)}  # no search runs to the end in vain
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


def _is_apostrophe(text: str, start: int, end: int) -> bool:
    """Whether this mark opens no quotation: it follows a word, or no word follows it."""
    return (start > 0 and not text[start - 1].isspace()) or end >= len(text) or text[end].isspace()
