"""Detection, the first stage: finds what a message asks for, by rules and by weighted features.

The rules take out what certainly asks for nothing. Each clause that is left is scored, and the message asks for work
if one of them does. The same message always gives the same record. Detection takes time linear in the length of the
message and never raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define, field

from footlights.modes.features import MARKS, clauses, features
from footlights.modes.record import Activity, Condition, Confirmation, Intent, IntentKind
from footlights.modes.rules import NO_HINTS, asking_part, is_taken_back, vetoes_in
from footlights.modes.weights import standard_weights
from footlights.modes.words import COMMA, sentences, word_set

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from footlights.modes.rules import ModeHints
    from footlights.modes.weights import Weights

_FILLERS = word_set("""
    a an the some any my your our it this that these those them me us you one all again now please pls for once more too
    also as well then just first next quickly here there right away thanks thank at and or something anything stuff
    thing things dexi do can will would mind of ok yes go ahead , ? !
""")
"""Words that do not say what to work on."""
_REQUIRES: Mapping[str, tuple[Condition, ...]] = {
    Activity.SEARCH: (Condition.WORK_REQUESTED, Condition.TOOLS_NEEDED),
    Activity.SIMULATE: (Condition.WORK_REQUESTED, Condition.TOOLS_NEEDED, Condition.ARTIFACTS),
    Activity.EVALUATE: (Condition.WORK_REQUESTED,),
    Activity.GENERATE: (Condition.ARTIFACTS,),
    Activity.CHANGE: (Condition.TOOLS_NEEDED, Condition.ARTIFACTS),
    Activity.DELETE: (Condition.TOOLS_NEEDED, Condition.ARTIFACTS),
    Activity.TOOL: (Condition.TOOLS_NEEDED,),
    Activity.UNNAMED: (Condition.TOOLS_NEEDED,),
}
_ALIKE = 50
"""The percentage of features that a clause shares with an example of the host that decides about it."""
_HINT = 120
"""What a word of a tool's description adds to the score, for two words at most."""
_NAMED = 1_000
"""What the name of a tool adds."""
_BEGINS = 700
"""What it adds to begin with the first word of a tool's name, as in "search the shelves" with `search_shelves`."""
_COURTESIES = word_set("i we could to like want need let's hi hello dexi kindly not if")
_JOINTS = frozenset({COMMA, "and", "then", "or"})
_SHORTEST_HINT = 4


def detect(message: str, hints: ModeHints = NO_HINTS) -> Intent:
    """What this message asks for."""
    weights = standard_weights()
    found = _Found()
    content = 0
    for sentence in sentences(message):
        content += sum(word not in _FILLERS for word in sentence)
        _read(sentence, hints, weights, found)
    return found.intent(content, weights)


def units(message: str) -> list[tuple[str, ...]]:
    """The clauses of a message that may ask for something, from which the weights are learned."""
    found: list[tuple[str, ...]] = []
    for sentence in sentences(message):
        text = " ".join(sentence)
        if any(vetoes_in(text, NO_HINTS)):
            return []
        found = [] if is_taken_back(text) else [*found, *filter(None, clauses(asking_part(sentence)[0]))]
    return found


@define
class _Found:
    """What was found so far, in the order of the message."""

    rules: dict[str, None] = field(factory=dict[str, None])
    vetoes: dict[str, None] = field(factory=dict[str, None])
    activities: dict[str, None] = field(factory=dict[str, None])
    paths: bool = False
    score: int | None = None
    """Of the clause that asks for work most clearly."""
    features: set[str] = field(factory=set[str])

    def intent(self, content: int, weights: Weights) -> Intent:
        asked = tuple(self.activities) if self.score is not None and self.score > 0 and not self.vetoes else ()
        met = {condition for each in asked for condition in _REQUIRES[each]}
        if len(asked) > 1:
            met.add(Condition.SEVERAL_PASSES)
        return Intent(
            kind=IntentKind.EXECUTION if asked else IntentKind.CONVERSATIONAL,
            activities=asked,
            rule_ids=tuple(self.rules),
            vetoes=tuple(self.vetoes),
            score=self.score,
            features=weights.strongest(self.features),
            conditions=tuple(each for each in Condition if each in met),
            confirmation=self._confirmation(asked, content),
        )

    def _confirmation(self, asked: tuple[str, ...], content: int) -> Confirmation | None:
        if Activity.DELETE in asked:
            return Confirmation.DESTRUCTIVE
        if asked and self.paths:
            return Confirmation.DIFFERENT_PATHS
        return Confirmation.AMBIGUOUS if asked and content <= 1 else None


def _read(sentence: Sequence[str], hints: ModeHints, weights: Weights, found: _Found) -> None:
    text = " ".join(sentence)
    found.vetoes.update(dict.fromkeys(vetoes_in(text, hints)))
    if is_taken_back(text):
        found.rules["rule.taken_back"] = None
        found.score, found.paths = None, False
        found.activities.clear()
        return
    asking, rules = asking_part(sentence)
    found.rules.update(dict.fromkeys(rules))
    for clause in clauses(asking):
        score, names = weights.score(clause)
        for rule, change in _hinted(clause, names, hints, weights):
            found.rules[rule] = None
            score += change
        if found.score is None or score > found.score:
            found.score, found.features = score, names
        if score > 0:
            asked = _activities(clause, names, weights)
            found.paths = found.paths or ("or" in clause and (len(asked) > 1 or clause[0] == "either"))
            found.activities.update(dict.fromkeys(asked))


def _activities(clause: Sequence[str], names: set[str], weights: Weights) -> list[str]:
    """The kinds of work of the parts of a clause that ask for work themselves, or else of the whole."""
    asked: dict[str, None] = {}
    part: list[str] = []
    for word in (*clause, COMMA):
        if word not in _JOINTS:
            part.append(word)
            continue
        score, of_part = weights.score(part)
        if score > 0 and any(word not in _FILLERS for word in part):
            asked[weights.activity(of_part)] = None
        part = []
    return list(asked) or [weights.activity(names)]


def _hinted(clause: Sequence[str], names: set[str], hints: ModeHints, weights: Weights) -> Iterator[tuple[str, int]]:
    """The hints of the host that apply to this clause, and what each adds to its score."""
    if hints is NO_HINTS:
        return
    for rule, examples, change in (("host.work", hints.work, 10_000), ("host.chat", hints.chat, -10_000)):
        if any(_alike(names, each, weights) for each in examples):
            yield rule, change
    said = {word for word in clause if word not in MARKS}
    if any(tool.casefold() in said for tool in hints.tools):
        yield "host.tool", _NAMED
    verbs = {tool.casefold().partition("_")[0] for tool in hints.tools}
    if next((word for word in clause if word not in _FILLERS and word not in _COURTESIES), None) in verbs:
        yield "host.verb", _BEGINS
    shared = sum(len(word) >= _SHORTEST_HINT and word in hints.told and word not in weights.common for word in said)
    if shared:
        yield "host.words", _HINT * min(shared, 2)


def _alike(names: set[str], example: str, weights: Weights) -> bool:
    """Whether a clause shares at least half of the features of both with a clause of an example."""
    for sentence in sentences(example):
        others = features(sentence, weights.common)
        if 100 * len(names & others) >= _ALIKE * len(names | others):
            return True
    return False
