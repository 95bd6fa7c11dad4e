"""How a host says which words ask for which work."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import field, frozen

from footlights.errors import RegistrationError
from footlights.modes.phrases import PhraseTable, word_set
from footlights.modes.record import Activity, Condition
from footlights.modes.words import sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ID = re.compile(r"[a-z][a-z0-9_.-]{0,63}")
_DOUBLED = word_set("run get dig scan plot skim drop set begin cut")
"""They write their last letter twice before -ing."""


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
    """Words that ask for some work. Raises `RegistrationError` for a rule that cannot work.

    A request begins with a verb ("simulate 200 people"), or with a verb and a thing ("run a simulation"), or asks for
    the thing by name ("I need a simulation"). All are matched as whole words; verbs as one writes them in a request.
    """

    id: str
    """Stable, lower case; it is what the record holds."""
    activity: str
    """What kind of work it is."""
    conditions: tuple[Condition, ...] = field(converter=_conditions)
    """Which conditions for execution such a request meets; at least one."""
    verbs: tuple[str, ...] = field(default=(), converter=_phrases)
    """They ask for it by themselves."""
    about: frozenset[str] = field(default=frozenset(), converter=_words)
    """If given, a verb counts only if one of these words follows in its clause."""
    asked: frozenset[str] = field(default=frozenset(), converter=_words)
    """If given, a question with one of these words and one of `about` counts too."""
    doing: tuple[str, ...] = field(default=(), converter=_phrases)
    """Verbs that ask for it together with one of `things`."""
    things: frozenset[str] = field(default=frozenset(), converter=_words)
    """What is asked for, as single words."""
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
    """Stable, lower case."""
    phrases: tuple[str, ...] = field(converter=_phrases)
    """Whole words."""
    takes_back: bool = False
    """It ends its sentence and takes back what was asked before it, instead of forbidding everything."""
    alone: bool = False
    """It takes back only if its sentence says nothing else: "No, wait, don't." """


def tool_hint(tool: str, *, verbs: Iterable[str] = (), things: Iterable[str] = ()) -> IntentRule:
    """A rule for one tool: by its name, and by the words its author says it is for."""
    return IntentRule(
        id=f"tool.{tool.casefold()}",
        activity=Activity.TOOL,
        conditions=(Condition.TOOLS_NEEDED,),
        verbs=tuple(verbs),
        doing=USING,
        things=(tool, *things),
    )


USING = ("use", "call", "invoke", "try", "run", "execute", "launch", "start")
"""Verbs that ask for a tool."""

Form: TypeAlias = Literal["verb", "doing"]


@frozen
class Match:
    """What a verb of a rule is to it."""

    rule: IntentRule
    form: Form
    ing: bool


class IntentRules:
    """Rules, ready to be asked. Raises `RegistrationError` for two rules with one id."""

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
            for thing in sorted(rule.things):
                self.things[thing] = (*self.things.get(thing, ()), rule)
        self.asked = tuple(rule for rule in self.rules if rule.asked)
        self.vetoing = PhraseTable((phrase, veto) for veto in self.vetoes for phrase in veto.phrases)

    def adding(self, *rules: IntentRule) -> IntentRules:
        """These rules and those."""
        return IntentRules((*self.rules, *rules), self.vetoes)

    @property
    def activities(self) -> frozenset[str]:
        """What they can recognise."""
        return frozenset(rule.activity for rule in self.rules)


def _verbs(rule: IntentRule) -> Iterator[tuple[str, Match]]:
    forms: tuple[tuple[tuple[str, ...], Form], ...] = ((rule.verbs, "verb"), (rule.doing, "doing"))
    for phrases, form in forms:
        for phrase in phrases:
            yield phrase, Match(rule, form, ing=False)
            yield _ing(phrase), Match(rule, form, ing=True)


def _ing(phrase: str) -> str:
    first, space, rest = phrase.partition(" ")
    stem = first[:-1] if first.endswith("e") and not first.endswith("ee") else first
    if first in _DOUBLED:
        stem += first[-1]
    return f"{stem}ing{space}{rest}"
