"""One clause, read: how it is said, and which rules find something in it."""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from attrs import frozen

from footlights.modes.clauses import MAX_LEADS
from footlights.modes.record import Condition
from footlights.modes.speech import DETERMINERS, FILLERS, FINITE, LEADS, NOTHING, OWNED, PREPOSITIONS, Lead

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from footlights.modes.rules import IntentRule, IntentRules, Match

_NAME_WORDS = 8
"""How far into a phrase its noun is looked for."""

_EMBEDDED = frozenset({"how", "whether"})
""" "Tell me how to ..." goes on as a question does."""


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
    """What it asks for, or forbids."""
    vague: bool = False
    """It does not say what to work on."""
    explicit: bool = False
    """It says by itself that it is a request or a ban, whatever came before it."""
    choice: bool = False
    """It begins a choice: "either"."""


@frozen
class _Start:
    """Where a clause really begins, and what its beginning makes of it."""

    at: int
    leads: frozenset[Lead]
    choice: bool

    @property
    def explicit(self) -> bool:
        return bool(self.leads & {Lead.NOW, Lead.ASKING, Lead.ASKING_ING, Lead.WANTING, Lead.DENYING})


def read(words: Sequence[str], rules: IntentRules) -> Reading:
    """How these words are said, and which rules they meet."""
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
    """The rules whose words stand here, however they are meant."""
    for place, word in enumerate(words):
        yield from (rule for rule in rules.things.get(word, ()) if rule.wanted)
        for _, match in rules.verbs.matches(words, place):
            if match.form == "verb" and not match.rule.about:
                yield match.rule


def _start(words: Sequence[str], rules: IntentRules) -> _Start:
    at, leads, choice = 0, set[Lead](), False
    for _ in range(MAX_LEADS):
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
    """A beginning may also be a verb of a rule ("start"); the longer of the two counts, and then the verb."""
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
    if match.form == "doing":
        return _thing_at(words, end, rule) is not None
    if rest and rest[0] in rule.never_before:
        return False
    if rule.alone:
        return all(word in FILLERS for word in rest)
    return not rule.about or any(
        word in rule.about and words[place - 1] != "this" for place, word in enumerate(words[end:], end)
    )


def _is_noun(rest: Sequence[str]) -> bool:
    """ "Search is hard", "search engines are biased": the first word was not a verb."""
    for word in rest[:4]:
        if word in DETERMINERS or word in PREPOSITIONS:
            return False
        if word in FINITE:
            return True
    return False


def _noun_phrase(words: Sequence[str], at: int) -> Iterator[tuple[int, str]]:
    """The words that name what comes next: "a quick cohort simulation", not what it is about or for."""
    for place in range(at, min(at + _NAME_WORDS, len(words))):
        if words[place] in PREPOSITIONS or words[place] in FINITE:
            return
        yield place, words[place]


def _thing_at(words: Sequence[str], at: int, rule: IntentRule) -> int | None:
    return next((place for place, word in _noun_phrase(words, at) if word in rule.things), None)


def _named(words: Sequence[str], at: int, rules: IntentRules) -> tuple[int, tuple[IntentRule, ...]] | None:
    """The last thing of the phrase is the one it names: a "cohort simulation" is a simulation."""
    named = [(place, rules.things[word]) for place, word in _noun_phrase(words, at) if word in rules.things]
    return named[-1] if named else None


def _is_headline(words: Sequence[str], at: int, place: int) -> bool:
    """ "Simulation of 200 people", and not "the simulation of last week was wrong" or "a simulation is a model"."""
    if place - at > 3 or any(word in OWNED for word in words[at:place]):
        return False
    rest = words[place + 1 :]
    return not any(word in FINITE for word in rest) and bool(rest) and rest[0] in PREPOSITIONS


def _is_vague(words: Sequence[str], end: int, match: Match) -> bool:
    if match.form == "verb":
        return all(word in FILLERS for word in words[end:])
    rest = words[end:]
    return len(rest) == 1 and rest[0].endswith("s") and rest[0] in match.rule.things
