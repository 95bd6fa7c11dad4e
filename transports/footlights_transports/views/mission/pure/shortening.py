"""Shortening: the part of a text that may be spoken within a limit, without a change of its meaning.

A text is cut after whole sentences, or after a clause of its first sentence that stands alone. It is never cut before
words that limit what was said: of "Open the door only after the alarm has stopped." nothing is left but the whole.
Limiting words of six languages are known; a word that limits in one of them counts in all.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import cast

import sentencex  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs] - a compiled module

_WORD = re.compile(r"[^\W\d_]+")
_LIMITS = frozenset(
    _WORD.findall(
        """
        after although before but else except however if instead neither never no nor not only once or otherwise
        provided than though till unless until when while without yet

        aber außer bevor bis erst falls jedoch kein keine keinen nachdem nicht nie niemals nur oder ohne sobald sofern
        sonst solange wenn

        après avant jamais jusqu mais ne ou pas quand sans sauf seulement si sinon

        antes cuando después excepto hasta menos ni nunca o pero salvo sin solo sólo

        apenas até depois exceto mas não quando se sem somente só

        dopo eccetto finché fino ma mai non oppure prima senza soltanto tranne
        """
    )
)
_OPENING_WORDS = 3
"""Words of a sentence among which one that limits the sentence before it is looked for: "But do not ..."."""

_CLAUSE_END = re.compile(r"[;\uff1b]\s*")
_PAIRS = (("(", ")"), ("[", "]"), ("“", "”"), ("«", "»"), ("「", "」"))


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with the white space behind it. Joined they are the text."""
    # The ends of sentences of other languages and scripts are known to it too.
    return cast("list[str]", sentencex.segment("en", text))  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def shorten(text: str, max_chars: int) -> str:
    """The longest beginning of a text that fits and means what the text says; an empty text if there is none."""
    if len(text) <= max_chars:
        return text
    parts = sentences(text)
    ends = accumulate(map(len, parts[:-1]))
    cuts = [text[:end].rstrip() for end, rest in zip(ends, parts[1:], strict=True) if not _limits(rest, _OPENING_WORDS)]
    first = parts[0]
    clauses = (clause for clause in _CLAUSE_END.finditer(first) if not _limits(first[clause.end() :]))
    cuts += [f"{first[: clause.start()].rstrip()}." for clause in clauses]
    return max((cut for cut in cuts if len(cut) <= max_chars and _is_closed(cut)), key=len, default="")


def _limits(rest: str, words: int | None = None) -> bool:
    """Whether one of the first `words` words of what would be left out limits what is said before it."""
    return any(word in _LIMITS for word in _WORD.findall(rest.lower())[:words])


def _is_closed(text: str) -> bool:
    """Whether no bracket and no quotation is left open."""
    return text.count('"') % 2 == 0 and all(text.count(left) == text.count(right) for left, right in _PAIRS)
