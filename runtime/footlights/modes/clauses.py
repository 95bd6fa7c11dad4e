"""A sentence cut where a new request, ban or question begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from footlights.modes.speech import LEADS, Lead
from footlights.modes.words import COMMA

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from footlights.modes.rules import IntentRules

MAX_LEADS = 12
"""More courtesies than that are not looked at, so that no message takes long."""

_JOINERS = frozenset({COMMA, "and", "or", "then", "but"})
_ADVERBIAL = frozenset({"without", "instead", "rather"})
_BEGINS = frozenset({Lead.ASKING, Lead.WANTING, Lead.DENYING, Lead.QUESTION, Lead.TELLING})


@frozen
class Clause:
    """Words that ask, forbid or tell one thing."""

    words: tuple[str, ...]
    link: str
    """What joins it to the clause before: a comma, a conjunction, or nothing."""


def clauses(sentence: Sequence[str], rules: IntentRules) -> Iterator[Clause]:
    """The clauses of a sentence, in order."""
    start, link, place = 0, "", 0
    while place < len(sentence):
        after = _after_joiners(sentence, place)
        if after > place and _begins(sentence, after, rules):
            yield Clause(tuple(sentence[start:place]), link)
            start, link = after, _link(sentence[place:after])
        elif after == place and sentence[place] in _ADVERBIAL and place > start and _forbids(sentence, place, rules):
            yield Clause(tuple(sentence[start:place]), link)
            start, link, after = place, COMMA, place + 1
        place = max(after, place + 1)
    yield Clause(tuple(sentence[start:]), link)


def _after_joiners(sentence: Sequence[str], place: int) -> int:
    while place < len(sentence) and sentence[place] in _JOINERS:
        place += 1
    return place


def _link(joiners: Sequence[str]) -> str:
    return next((each for each in reversed(joiners) if each != COMMA), COMMA)


def _begins(sentence: Sequence[str], place: int, rules: IntentRules) -> bool:
    for _ in range(MAX_LEADS):
        lead = LEADS.longest(sentence, place)
        if any(not match.ing for _, match in rules.verbs.matches(sentence, place)) or (lead and lead[1] in _BEGINS):
            return True
        if lead is None or lead[1] not in (Lead.OPENER, Lead.NOW):
            return False
        place = lead[0]
    return False


def _forbids(sentence: Sequence[str], place: int, rules: IntentRules) -> bool:
    lead = LEADS.longest(sentence, place)
    return lead is not None and any(match.ing for _, match in rules.verbs.matches(sentence, lead[0]))
