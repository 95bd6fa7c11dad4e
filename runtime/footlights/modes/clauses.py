"""Clauses of a sentence: where each begins, how it is said, and which rules match it."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from attrs import frozen

from footlights.modes.record import Condition
from footlights.modes.speech import DETERMINERS, FILLERS, FINITE, LEADS, NOTHING, OWNED, PREPOSITIONS, Lead
from footlights.modes.words import COMMA

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from footlights.modes.rules import IntentRule, IntentRules, Match

_MAX_LEADS = 12
"""Leads that are read at the beginning of a clause. The limit keeps the time linear."""
_NAME_WORDS = 8
"""Words of a phrase in which its noun is looked for."""

_JOINERS = frozenset({COMMA, "and", "or", "then", "but"})
_ADVERBIAL = frozenset({"without", "instead", "rather"})
_BEGINS = frozenset({Lead.ASKING, Lead.WANTING, Lead.DENYING, Lead.QUESTION, Lead.TELLING})
_EXPLICIT = frozenset({Lead.NOW, Lead.ASKING, Lead.ASKING_ING, Lead.WANTING, Lead.DENYING})
_EMBEDDED = frozenset({"how", "whether"})
"""In "tell me how to ...", what follows is a question."""


@frozen
class Clause:
    """Words that ask, forbid or tell one thing."""

    words: tuple[str, ...]
    link: str
    """What joins it to the previous clause: a comma, a conjunction, or nothing."""


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
    for _ in range(_MAX_LEADS):
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


class Speech(Enum):
    """How a clause is said."""

    REQUEST = auto()
    BAN = auto()
    QUESTION = auto()
    TELLING = auto()
    STATEMENT = auto()


@frozen
class Reading:
    """What a clause says."""

    speech: Speech
    rules: tuple[IntentRule, ...] = ()
    """The rules for what it asks for or forbids."""
    vague: bool = False
    """Whether it does not say what to work on."""
    explicit: bool = False
    """Whether it is marked as a request or a ban itself, whatever the previous clause is."""
    choice: bool = False
    """Whether it begins a choice: "either"."""


@frozen
class _Start:
    """The place of the first word after the leads of a clause, and those leads."""

    at: int
    leads: frozenset[Lead]
    choice: bool

    @property
    def explicit(self) -> bool:
        return bool(self.leads & _EXPLICIT)


def read(words: Sequence[str], rules: IntentRules) -> Reading:
    """How these words are said, and which rules match them."""
    start = _start(words, rules)
    last = Speech.BAN if Lead.DENYING in start.leads else Speech.REQUEST
    if Lead.QUESTION in start.leads or Lead.TELLING in start.leads:
        asked = tuple(rule for rule in rules.asked if rule.asked & set(words) and rule.about & set(words))
        if asked and last is Speech.REQUEST:
            return Reading(Speech.REQUEST, asked)
        is_question = Lead.QUESTION in start.leads or not _EMBEDDED.isdisjoint(words)
        return Reading(Speech.QUESTION if is_question else Speech.TELLING)
    found = [] if Lead.CONDITION in start.leads else list(_found(words, start, rules))
    if not found:
        return Reading(Speech.BAN if last is Speech.BAN else Speech.STATEMENT, explicit=last is Speech.BAN)
    return Reading(
        last,
        tuple(rule for rule, _ in found),
        vague=all(vague for _, vague in found),
        explicit=start.explicit,
        choice=start.choice,
    )


def mentions(words: Sequence[str], rules: IntentRules) -> Iterator[IntentRule]:
    """The rules whose words appear here, whatever the clause says about them."""
    for place, word in enumerate(words):
        yield from (rule for rule in rules.things.get(word, ()) if rule.wanted)
        for _, match in rules.verbs.matches(words, place):
            if not match.needs_thing and not match.rule.about:
                yield match.rule


def _start(words: Sequence[str], rules: IntentRules) -> _Start:
    at, leads, choice = 0, set[Lead](), False
    for _ in range(_MAX_LEADS):
        lead = LEADS.longest(words, at)
        if lead is None or _is_work(words, at, lead[0], frozenset(leads), rules):
            break
        choice = choice or words[at] == "either"
        at = lead[0]
        leads.add(lead[1])
        if lead[1] in (Lead.QUESTION, Lead.TELLING, Lead.CONDITION):
            break
    return _Start(at, frozenset(leads), choice)


def _is_work(words: Sequence[str], at: int, lead_end: int, leads: frozenset[Lead], rules: IntentRules) -> bool:
    """Whether a lead is really a verb of a rule, as "start" can be: the longer of the two counts, then the verb."""
    start = _Start(at, leads, choice=False)
    return any(end >= lead_end for end, match in rules.verbs.matches(words, at) if _meets(words, start, end, match))


def _found(words: Sequence[str], start: _Start, rules: IntentRules) -> Iterator[tuple[IntentRule, bool]]:
    by_verb = False
    for end, match in rules.verbs.matches(words, start.at):
        if _meets(words, start, end, match):
            by_verb = True
            yield match.rule, _is_vague(words, end, match)
    if not by_verb and (thing := _named(words, start.at, rules)):
        place, meant = thing
        if start.leads & {Lead.WANTING, Lead.ASKING_ING}:
            yield from ((rule, False) for rule in meant if rule.wanted)
        elif Lead.DENYING in start.leads:
            yield from ((rule, False) for rule in meant)
        elif _is_headline(words, start.at, place):
            yield from ((rule, False) for rule in meant if rule.wanted and Condition.WORK_REQUESTED in rule.conditions)


def _meets(words: Sequence[str], start: _Start, end: int, match: Match) -> bool:
    rule, rest = match.rule, words[end:]
    if match.ing and not start.leads & {Lead.ASKING_ING, Lead.DENYING}:
        return False
    if not start.explicit and _is_noun(rest):
        return False
    if rest and rest[0] in NOTHING:
        return False
    if match.needs_thing:
        return _thing_at(words, end, rule) is not None
    if rest and rest[0] in rule.never_before:
        return False
    if rule.alone:
        return all(word in FILLERS for word in rest)
    return not rule.about or any(
        word in rule.about and words[place - 1] != "this" for place, word in enumerate(words[end:], end)
    )


def _is_noun(rest: Sequence[str]) -> bool:
    """Whether the word before was a noun, as in "search is hard" or "search engines are biased"."""
    for word in rest[:4]:
        if word in DETERMINERS or word in PREPOSITIONS:
            return False
        if word in FINITE:
            return True
    return False


def _noun_phrase(words: Sequence[str], at: int) -> Iterator[tuple[int, str]]:
    """The words of a name such as "a quick cohort simulation", without what it is about or for."""
    for place in range(at, min(at + _NAME_WORDS, len(words))):
        if words[place] in PREPOSITIONS or words[place] in FINITE:
            return
        yield place, words[place]


def _thing_at(words: Sequence[str], at: int, rule: IntentRule) -> int | None:
    return next((place for place, word in _noun_phrase(words, at) if word in rule.things), None)


def _named(words: Sequence[str], at: int, rules: IntentRules) -> tuple[int, tuple[IntentRule, ...]] | None:
    """The last thing in a name, which is what it means: a "cohort simulation" is a simulation."""
    named = [(place, rules.things[word]) for place, word in _noun_phrase(words, at) if word in rules.things]
    return named[-1] if named else None


def _is_headline(words: Sequence[str], at: int, place: int) -> bool:
    """Whether this is "simulation of 200 people" and not "the simulation of last week was wrong"."""
    if place - at > 3 or any(word in OWNED for word in words[at:place]):
        return False
    rest = words[place + 1 :]
    return not any(word in FINITE for word in rest) and bool(rest) and rest[0] in PREPOSITIONS


def _is_vague(words: Sequence[str], end: int, match: Match) -> bool:
    rest = words[end:]
    if not match.needs_thing:
        return all(word in FILLERS for word in rest)
    return len(rest) == 1 and rest[0].endswith("s") and rest[0] in match.rule.things
