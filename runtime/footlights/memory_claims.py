"""Phrases by which an agent claims to remember a chat: "As we discussed earlier", "You asked me before to".

They cannot be true here. A model is told who it is, facts of the world, what was just said and what its tools answered;
no earlier turn is among it. So such a phrase is made up, or the host leaks chat into its facts or tools. Either way it
is worth counting. It decides nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

_HAVE = r"(?:['\u2019]ve| have| had)?(?: already| just)?"
_TALKED = r"(?:discussed|mentioned|said|talked about|agreed|established|covered|noted)"
_ASKED = r"(?:asked|told|requested|instructed)"
_BEFORE = r"(?:earlier|before|previously|above|last time)"
_CHAT = r"(?:messages?|conversations?|chats?|discussions?|exchanges?)"

MAX_CHARS = 50_000
"""No more of a text is looked at: whoever watches must be quick."""


@frozen
class _Phrase:
    meaning: str
    """The words that it is named after."""
    words: tuple[str, ...]
    """One of these is always in it. They are found much faster than the pattern."""
    pattern: re.Pattern[str]


def _phrase(meaning: str, words: str, pattern: str) -> _Phrase:
    return _Phrase(meaning, tuple(words.split()), re.compile(rf"\b(?:{pattern})\b".replace(" ", r"\s+")))


_PHRASES = {
    "as_we_discussed": _phrase(
        "As we discussed earlier",
        "earlier before previous above last",
        rf"as (?:(?:we|i|you){_HAVE} )?(?:{_TALKED} {_BEFORE}|{_BEFORE} {_TALKED})",
    ),
    "previous_messages": _phrase(
        "Based on previous messages",
        "message conversation chat discussion exchange",
        rf"(?:based on|according to|given|per|from|in) (?:(?:our|your|the|my) )?"
        rf"(?:previous|earlier|prior|past|last) {_CHAT}",
    ),
    "you_asked_before": _phrase(
        "You asked me before to",
        "asked told requested instructed",
        rf"you{_HAVE} (?:{_ASKED} (?:me )?{_BEFORE}|{_BEFORE} {_ASKED})"
        rf"|(?:earlier|previously|last time),? you{_HAVE} {_ASKED}",
    ),
}

MEMORY_CLAIMS: Mapping[str, str] = {name: phrase.meaning for name, phrase in _PHRASES.items()}
"""What is looked for, by name, with the words that it is named after. Close variants count too."""


def memory_claims(text: str) -> tuple[str, ...]:
    """The names of the phrases in it, once for each time that one is there."""
    words = text[:MAX_CHARS].lower()
    return tuple(
        name
        for name, phrase in _PHRASES.items()
        if any(word in words for word in phrase.words)
        for _ in phrase.pattern.finditer(words)
    )
