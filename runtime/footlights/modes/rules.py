"""Rules: which words ask for which work, and which forbid it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import field, frozen

from footlights.errors import RegistrationError
from footlights.modes.record import Activity, Condition
from footlights.modes.words import PhraseTable, phrase_list, sentences, word_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ID = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
_DOUBLED = word_set("run get dig scan plot skim drop set begin cut")
"""Verbs whose last letter is doubled before -ing."""


def _conditions(given: Iterable[str]) -> tuple[Condition, ...]:
    try:
        return tuple(Condition(each) for each in given)
    except ValueError:
        raise RegistrationError(f"The conditions of a rule are some of {', '.join(Condition)}.") from None


def _phrases(given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise RegistrationError("Give phrases as a list, not as one string.")
    return tuple(_folded(each) for each in given)


def _words(given: Iterable[str]) -> frozenset[str]:
    words = frozenset(_phrases(given))
    if any(" " in word for word in words):
        raise RegistrationError("What a rule is about, and its things, are single words.")
    return words


def _folded(phrase: str) -> str:
    found = sentences(phrase)
    if len(found) != 1:
        raise RegistrationError("A phrase of a rule must be words, and not more than one sentence.")
    return " ".join(found[0])


@frozen(kw_only=True)
class IntentRule:
    """Words that ask for some work. Raises `RegistrationError` for a rule that could never match.

    A request begins with a verb ("simulate 200 people") or with a verb and a thing ("run a simulation"), or asks for
    the thing by name ("I need a simulation"). All are matched as whole words, verbs in the form that a request has.
    """

    id: str
    """Stable, in lower case; records refer to the rule by it."""
    activity: str
    """The kind of work."""
    conditions: tuple[Condition, ...] = field(converter=_conditions)
    """The conditions for execution that such a request meets; at least one."""
    verbs: tuple[str, ...] = field(default=(), converter=_phrases)
    """Verbs that ask for it by themselves."""
    about: frozenset[str] = field(default=frozenset(), converter=_words)
    """If given, a verb counts only if one of these words follows in its clause."""
    asked: frozenset[str] = field(default=frozenset(), converter=_words)
    """If given, a question with one of these words and one of `about` counts too."""
    doing: tuple[str, ...] = field(default=(), converter=_phrases)
    """Verbs that ask for it together with one of `things`."""
    things: frozenset[str] = field(default=frozenset(), converter=_words)
    """The names of what is asked for, as single words."""
    wanted: bool = False
    """Whether a thing may be asked for by its name alone."""
    never_before: frozenset[str] = field(default=frozenset(), converter=_words)
    """A verb does not count in front of one of these words."""
    alone: bool = False
    """A verb counts only if nothing but fillers follows."""
    destructive: bool = False
    """Whether it deletes or overwrites something."""

    def __attrs_post_init__(self) -> None:
        for name in (self.id, self.activity):
            if not _ID.fullmatch(name):
                raise RegistrationError("A rule's id and activity are lower-case words joined by . _ or -.")
        if not self.conditions:
            raise RegistrationError(f"The rule {self.id} meets no condition, so it would never matter.")
        if not (self.verbs or self.things or self.asked):
            raise RegistrationError(f"The rule {self.id} has no words to match.")
        if bool(self.doing or self.wanted) != bool(self.things):
            raise RegistrationError(f"The rule {self.id} needs things, and a way to ask for them.")


@frozen(kw_only=True)
class VetoRule:
    """Words that forbid any execution, wherever they stand."""

    id: str
    """Stable, in lower case."""
    phrases: tuple[str, ...] = field(converter=_phrases)
    """Matched as whole words."""
    takes_back: bool = False
    """At the end of a sentence it takes back what was asked before, instead of forbidding everything."""
    alone: bool = False
    """It takes back only if its sentence says nothing else: "No, wait, don't." """


def tool_hint(tool: str, *, verbs: Iterable[str] = (), things: Iterable[str] = ()) -> IntentRule:
    """A rule for requests of one tool: by its name, and by words that its author gives."""
    return IntentRule(
        id=f"tool.{tool.casefold()}",
        activity=Activity.TOOL,
        conditions=(Condition.TOOLS_NEEDED,),
        verbs=tuple(verbs),
        doing=USING,
        things=(tool, *things),
    )


USING = phrase_list("use, call, invoke, try, run, execute, launch, start")
"""Verbs that ask for a tool."""


@frozen
class Match:
    """A verb of a rule that was found in a message."""

    rule: IntentRule
    needs_thing: bool
    """Whether it is one of `doing`, which ask only together with one of `things`."""
    ing: bool
    """Whether the verb is in its -ing form."""


class IntentRules:
    """Rules, indexed for lookup. Raises `RegistrationError` for two rules with one id."""

    __slots__ = ("asked", "rules", "things", "verbs", "vetoes", "vetoing")

    def __init__(self, rules: Iterable[IntentRule], vetoes: Iterable[VetoRule] = ()) -> None:
        self.rules = tuple(rules)
        self.vetoes = tuple(vetoes)
        ids = [*(rule.id for rule in self.rules), *(veto.id for veto in self.vetoes)]
        if len(set(ids)) != len(ids):
            raise RegistrationError("Two rules have the same id.")
        self.verbs = PhraseTable(entry for rule in self.rules for entry in _verbs(rule))
        self.things: dict[str, tuple[IntentRule, ...]] = {}
        for rule in self.rules:
            for thing in rule.things:
                self.things[thing] = (*self.things.get(thing, ()), rule)
        self.asked = tuple(rule for rule in self.rules if rule.asked)
        self.vetoing = PhraseTable((phrase, veto) for veto in self.vetoes for phrase in veto.phrases)

    def adding(self, *rules: IntentRule) -> IntentRules:
        """These rules and the given ones, as new rules."""
        return IntentRules((*self.rules, *rules), self.vetoes)

    @property
    def activities(self) -> frozenset[str]:
        """The activities that the rules can recognise."""
        return frozenset(rule.activity for rule in self.rules)


def _verbs(rule: IntentRule) -> Iterator[tuple[str, Match]]:
    for phrases, needs_thing in ((rule.verbs, False), (rule.doing, True)):
        for phrase in phrases:
            yield phrase, Match(rule, needs_thing, ing=False)
            yield _ing(phrase), Match(rule, needs_thing, ing=True)


def _ing(phrase: str) -> str:
    first, space, rest = phrase.partition(" ")
    stem = first[:-1] if first.endswith("e") and not first.endswith("ee") else first
    if first in _DOUBLED:
        stem += first[-1]
    return f"{stem}ing{space}{rest}"
