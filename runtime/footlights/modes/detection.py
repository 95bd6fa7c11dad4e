"""Detection, the first stage: finds by rules what a message asks for.

The same message always gives the same record. Detection takes time linear in the length of the message and never
raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, evolve, field

from footlights.modes.clauses import Speech, clauses, mentions, read
from footlights.modes.record import Condition, Confirmation, Intent, IntentKind
from footlights.modes.speech import FILLERS, LEADS, Lead
from footlights.modes.standard import STANDARD_RULES
from footlights.modes.words import COMMA, sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from footlights.modes.clauses import Clause, Reading
    from footlights.modes.rules import IntentRule, IntentRules, VetoRule

_REFERENT_WORDS = 4
"""A request such as "simulate them" is clear if the rest of the message has at least this many words of content."""

_LAST_WORDS = 8
"""A veto takes back only if fewer words follow it, all of them fillers. "Never mind the costs" takes back nothing."""

_INHERITS: dict[Speech, frozenset[str]] = {
    Speech.QUESTION: frozenset({",", "and", "or"}),
    Speech.STATEMENT: frozenset({"and", "or"}),
    Speech.BAN: frozenset({"and", "or"}),
}
"""The links over which a clause that is not explicit is said in the same way as the previous one."""


def detect(message: str, rules: IntentRules = STANDARD_RULES) -> Intent:
    """What this message asks for."""
    found = _Found()
    said = sentences(message)
    for sentence in said:
        _read_sentence(sentence, rules, found)
    content = sum(word not in FILLERS for sentence in said for word in sentence)
    return found.intent(content)


@define
class _Found:
    """The rules that matched so far, in the order of the message."""

    requests: dict[str, IntentRule] = field(factory=dict[str, "IntentRule"])
    negated: dict[str, None] = field(factory=dict[str, None])
    mentioned: dict[str, None] = field(factory=dict[str, None])
    vetoes: dict[str, None] = field(factory=dict[str, None])
    clear: bool = False
    vague_words: int = 0
    paths: bool = False

    def take_back(self) -> None:
        self.negated.update(dict.fromkeys(self.requests))
        self.requests.clear()
        self.clear = self.paths = False
        self.vague_words = 0

    def intent(self, content: int) -> Intent:
        if self.vetoes:
            self.take_back()
        requests = self.requests.values()
        return Intent(
            kind=IntentKind.EXECUTION if requests else IntentKind.CONVERSATIONAL,
            activities=tuple(dict.fromkeys(rule.activity for rule in requests)),
            rule_ids=tuple(self.requests),
            negated=tuple(self.negated),
            mentioned=tuple(each for each in self.mentioned if each not in self.requests),
            vetoes=tuple(self.vetoes),
            conditions=_conditions(requests),
            confirmation=self._confirmation(content),
        )

    def _confirmation(self, content: int) -> Confirmation | None:
        if any(rule.destructive for rule in self.requests.values()):
            return Confirmation.DESTRUCTIVE
        if self.paths:
            return Confirmation.DIFFERENT_PATHS
        if self.requests and not self.clear and content - self.vague_words < _REFERENT_WORDS:
            return Confirmation.AMBIGUOUS
        return None


def _conditions(requests: Iterable[IntentRule]) -> tuple[Condition, ...]:
    met = {condition for rule in requests for condition in rule.conditions}
    if len({rule.activity for rule in requests}) > 1:
        met.add(Condition.SEVERAL_PASSES)
    return tuple(each for each in Condition if each in met)


def _read_sentence(sentence: Sequence[str], rules: IntentRules, found: _Found) -> None:
    before: Reading | None = None
    for clause in clauses(sentence, rules):
        reading = read(clause.words, rules)
        if before is not None and not reading.explicit and clause.link in _INHERITS.get(before.speech, ()):
            reading = evolve(reading, speech=before.speech)
        _keep(clause, reading, rules, found)
        if clause.link == "or" and before is not None and before.speech is reading.speech is Speech.REQUEST:
            found.paths |= before.choice or _activities(before) != _activities(reading)
        before = reading
    _obey_vetoes(sentence, rules, found)


def _activities(reading: Reading) -> set[str]:
    return {rule.activity for rule in reading.rules}


def _keep(clause: Clause, reading: Reading, rules: IntentRules, found: _Found) -> None:
    ids = {rule.id: rule for rule in reading.rules}
    if reading.speech is Speech.REQUEST:
        found.requests.update(ids)
        if reading.vague:
            found.vague_words += sum(word not in FILLERS for word in clause.words)
        else:
            found.clear = True
    elif reading.speech is Speech.BAN:
        found.negated.update(dict.fromkeys(ids))
    else:
        found.mentioned.update((rule.id, None) for rule in mentions(clause.words, rules))


def _obey_vetoes(sentence: Sequence[str], rules: IntentRules, found: _Found) -> None:
    for veto in _refusals(sentence, rules):
        found.take_back()
        found.negated[veto.id] = None
    for place in range(len(sentence)):
        for end, veto in rules.vetoing.matches(sentence, place):
            if veto.alone:
                continue
            if not veto.takes_back:
                found.vetoes[veto.id] = None
            elif len(sentence) - end < _LAST_WORDS and all(word in FILLERS for word in sentence[end:]):
                found.take_back()
                found.negated[veto.id] = None


def _refusals(sentence: Sequence[str], rules: IntentRules) -> list[VetoRule]:
    """The vetoes in a sentence that says nothing else except courtesies."""
    words = [word for word in sentence if word != COMMA]
    refusals: list[VetoRule] = []
    place = 0
    while place < len(words):
        refusal = next(((end, veto) for end, veto in rules.vetoing.matches(words, place) if veto.alone), None)
        lead = LEADS.longest(words, place)
        if refusal is not None:
            place = refusal[0]
            refusals.append(refusal[1])
        elif lead is not None and lead[1] in (Lead.OPENER, Lead.NOW):
            place = lead[0]
        elif words[place] in FILLERS:
            place += 1
        else:
            return []
    return refusals
