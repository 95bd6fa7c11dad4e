"""Phrases by which an agent claims to remember a chat: "As we discussed earlier", "You asked me before to".

Such a claim cannot be true. A prompt holds the persona, facts of the world, the current message and tool results, and
no earlier turn. So the model made the claim up, or the host leaks chat into its facts or tools. The metrics count
these phrases; nothing else depends on them.
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
"""Only the beginning of a longer text is searched, which bounds the time that a metric costs."""


@frozen
class _Phrase:
    meaning: str
    """An example of the phrase."""
    words: tuple[str, ...]
    """Every match contains one of these, and a substring search is much faster than the pattern."""
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
"""An example of each phrase, by name. Close variants match too."""


def memory_claims(text: str) -> tuple[str, ...]:
    """The name of each phrase in the text, once for each occurrence."""
    words = text[:MAX_CHARS].lower()
    return tuple(
        name
        for name, phrase in _PHRASES.items()
        if any(word in words for word in phrase.words)
        for _ in phrase.pattern.finditer(words)
    )
