"""Shortening: the part of a text that may be spoken within a limit, without a change of its meaning.

A text is cut after whole sentences, or after a clause of its first sentence that stands alone. It is never cut before
words that limit what was said: of "Open the door only after the alarm has stopped." nothing is left but the whole.
Such a word counts wherever it stands in the rest of a line, and at the beginning of the next line, which says something
else. Limiting words of seven languages are known, and the `t` of "isn't"; a word of one language counts in all.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import TYPE_CHECKING, cast

import sentencex  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs] - a compiled module

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WORD = re.compile(r"[^\W\d_]+")
_LIMITS = frozenset(
    _WORD.findall(
        """
        after although before but cancel cannot correction disregard else except false first however if ignore
        instead lest neither never no nobody none nor not nothing once only or otherwise pending provided rather
        still t than though till unless until wait when while without wrong yet

        aber außer bevor bis erst falls falsch jedoch kein keine keinen nachdem nicht nichts nie niemals nur oder ohne
        sobald sofern solange sonst vorher warte warten wartet wenn zuerst

        abord après attendez attends aucun aucune avant faux jamais jusqu mais ne ou pas quand rien sans sauf seulement
        si sinon

        antes cuando después espera espere esperen excepto hasta menos ni ninguna ninguno nunca o pero primero salvo sin
        solo sólo tampoco

        aguarde apenas até depois exceto mas nada não nem nenhum primeiro quando se sem somente só

        aspetta aspettate attendi dopo eccetto finché fino ma mai nessuno niente non oppure prima senza soltanto tranne

        alleen behalve eerst geen maar na nadat niet niets nooit of pas tenzij tot totdat voordat wacht zodra zonder
        """
    )
)
_OPENING_WORDS = 3
"""Words of a line among which one that limits the line before it is looked for: "But do not ..."."""

_CLAUSE_END = re.compile(r"[;\uff1b]\s*")
_PAIRS = (("(", ")"), ("[", "]"), ("“", "”"), ("«", "»"), ("「", "」"))


def sentences(text: str) -> list[str]:
    """The sentences of a text, each with the white space behind it. Joined they are the text."""
    # The ends of sentences of other languages and scripts are known to it too.
    return cast("list[str]", sentencex.segment("en", text))  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def shorten(lines: Sequence[str], max_chars: int) -> str:
    """The longest beginning of these lines that fits and means what they say; an empty text if there is none."""
    text = " ".join(lines)
    if len(text) <= max_chars:
        return text
    safe = (
        kept
        for kept, rest, following in _cuts(lines)
        if len(kept) <= max_chars and _is_closed(kept) and not _limits(rest) and not _limits(following, _OPENING_WORDS)
    )
    return max(safe, key=len, default="")


def _cuts(lines: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """What may be kept, each with what is then left out of its line, and the line after that."""
    kept = ""
    for number, (line, following) in enumerate(zip(lines, [*lines[1:], ""], strict=True)):
        parts = sentences(line)
        clauses = _CLAUSE_END.finditer(parts[0]) if number == 0 else ()
        yield from ((f"{line[: each.start()].rstrip()}.", line[each.end() :], following) for each in clauses)
        yield from ((kept + line[:end].rstrip(), line[end:], following) for end in accumulate(map(len, parts)))
        kept += f"{line} "


def _limits(rest: str, words: int | None = None) -> bool:
    """Whether one of the first `words` words of what would be left out limits what is said before it."""
    return any(word in _LIMITS for word in _WORD.findall(rest.lower())[:words])


def _is_closed(text: str) -> bool:
    """Whether no bracket and no quotation is left open."""
    return text.count('"') % 2 == 0 and all(text.count(left) == text.count(right) for left, right in _PAIRS)
