"""Secret filter: the output filter that hides what a `Redactor` finds.

It settles a text up to its last word, and holds more where more decides: groups of digits, which may grow to a card
number; a value after a label such as `password:`, which may turn out to be a sentence; a list of words that may be a
seed phrase.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import field, frozen

from footlights.redaction.redactor import Redactor
from footlights.redaction.screen import Found

if TYPE_CHECKING:
    from footlights.redaction.spans import Span

LONGEST_UNDECIDED = 64
"""Characters of a value that may still turn out to be a sentence."""
_LOOK_BACK = 400

_LAST_WORD = re.compile(r"[^\s\u3000-\u9fff\uac00-\ud7af\uff00-\uffef]*\Z")
_GROUPS = re.compile(
    r"(?<![!-~])(?:(?:[A-Z]{1,4}|[A-Z0-9()+./:-]{0,12}\d[A-Z0-9()+./:-]{0,12})[,;]?[ \n]{1,2}){1,10}\S*\Z"
)
_OPEN = re.compile(
    r"(?i)(?<!\S)\d{3}[ -]?\d{3}(?: [^\s\d]+){0,6} ?\Z"
    r"|\becho [^\n|]{0,80}(?:\|[^\n]{0,10})?\Z"
)
_WORDS = re.compile(
    r"(?i)(?<=[:=\"'\s])(?:(?:\d{1,2}[.):]\s{0,2})?[a-z]{3,8}[\s,]{1,3}){1,23}(?:\d{1,2}[.):]?\s{0,2})?[a-z]{0,8}\Z"
)
_SEED = re.compile(r"(?i)\b(?:seed|mnemonic|recovery|backup|wallet|12[- ]word|24[- ]word|bip-?39)\b")


@frozen
class SecretFilter:
    """Hides secrets and personal data."""

    redactor: Redactor = field(factory=Redactor)

    def find(self, text: str, *, ended: bool) -> Found:
        spans = self.redactor.spans(text)
        return Found(spans, len(text) if ended else _settled(text, spans))


def _settled(text: str, spans: list[Span]) -> int:
    tail = text[-_LOOK_BACK:]
    begins = len(text) - len(tail)
    last_word = _LAST_WORD.search(tail)
    settled = begins + (last_word.start() if last_word else len(tail))
    if groups := _GROUPS.search(tail):
        settled = min(settled, begins + groups.start())
    if is_open := _OPEN.search(tail):
        settled = min(settled, begins + is_open.start())
    if _SEED.search(tail) and (words := _WORDS.search(tail)):
        settled = min(settled, begins + words.start())
    if spans and spans[-1][1] >= len(text.rstrip()) and len(text) - spans[-1][0] < LONGEST_UNDECIDED:
        settled = min(settled, spans[-1][0])
    return settled
