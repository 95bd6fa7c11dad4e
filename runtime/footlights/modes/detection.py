"""Detection, the first stage: finds what a message asks for, by rules and by weighted features.

The rules take out what certainly asks for nothing. The clauses that are left are scored together. The same message
always gives the same record. Detection takes time linear in the length of the message and never raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.modes.features import clauses, features
from footlights.modes.record import Activity, Condition, Confirmation, Intent, IntentKind
from footlights.modes.rules import NO_HINTS, asking_part, is_taken_back, vetoes_in
from footlights.modes.weights import standard_weights
from footlights.modes.words import COMMA, MARKS, sentences, word_set

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
"""The percentage of features that a message shares with an example of the host that decides about it."""
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
    rules, vetoes, asking = _read(message, hints)
    if not asking:
        return Intent(kind=IntentKind.CONVERSATIONAL, rule_ids=tuple(rules), vetoes=tuple(vetoes))
    weights = standard_weights()
    score, names = weights.score(asking)
    for rule, change in _hinted(asking, names, hints, weights):
        rules[rule] = None
        score += change
    asked, has_paths = _activities(asking, names, weights) if score > 0 and not vetoes else ((), False)
    met = {condition for each in asked for condition in _REQUIRES[each]}
    if len(asked) > 1:
        met.add(Condition.SEVERAL_PASSES)
    return Intent(
        kind=IntentKind.EXECUTION if asked else IntentKind.CONVERSATIONAL,
        activities=asked,
        rule_ids=tuple(rules),
        vetoes=tuple(vetoes),
        score=score,
        features=weights.strongest(names),
        conditions=tuple(each for each in Condition if each in met),
        confirmation=_confirmation(message, asked, has_paths=has_paths) if asked else None,
    )


def asking_clauses(message: str) -> list[tuple[str, ...]]:
    """The clauses of a message that may ask for something, from which the weights are learned."""
    _, vetoes, asking = _read(message, NO_HINTS)
    return [] if vetoes else asking


def _read(message: str, hints: ModeHints) -> tuple[dict[str, None], dict[str, None], list[tuple[str, ...]]]:
    """The rules and the vetoes that matched, and the clauses that are left, all in the order of the message."""
    rules, vetoes, asking = dict[str, None](), dict[str, None](), list[tuple[str, ...]]()
    for sentence in sentences(message):
        text = " ".join(sentence)
        vetoes.update(dict.fromkeys(vetoes_in(text, hints)))
        if is_taken_back(text):
            rules["rule.taken_back"] = None
            asking.clear()
        else:
            part, found = asking_part(sentence)
            rules.update(dict.fromkeys(found))
            asking += filter(None, clauses(part))
    return rules, vetoes, asking


def _confirmation(message: str, asked: Sequence[str], *, has_paths: bool) -> Confirmation | None:
    if Activity.DELETE in asked:
        return Confirmation.DESTRUCTIVE
    if has_paths:
        return Confirmation.DIFFERENT_PATHS
    content = sum(word not in _FILLERS for sentence in sentences(message) for word in sentence)
    return Confirmation.AMBIGUOUS if content <= 1 else None


def _activities(asking: Sequence[Sequence[str]], names: set[str], weights: Weights) -> tuple[tuple[str, ...], bool]:
    """The kinds of work of the parts of clauses that ask for work themselves, or else of all; and whether to choose."""
    asked: dict[str, None] = {}
    has_paths = False
    for clause in asking:
        of_clause: dict[str, None] = {}
        part: list[str] = []
        for word in (*clause, COMMA):
            if word not in _JOINTS:
                part.append(word)
                continue
            if (len(part) > 1 or not of_clause) and any(word not in _FILLERS for word in part):
                score, of_part = weights.score([part])
                if score > 0:
                    of_clause[weights.activity(of_part)] = None
            part = []
        has_paths = has_paths or ("or" in clause and (len(of_clause) > 1 or clause[0] == "either"))
        asked |= of_clause
    return tuple(asked) or (weights.activity(names),), has_paths


def _hinted(
    asking: Sequence[Sequence[str]], names: set[str], hints: ModeHints, weights: Weights
) -> Iterator[tuple[str, int]]:
    """The hints of the host that apply, and what each adds to the score."""
    if hints is NO_HINTS:
        return
    for rule, examples, change in (("host.work", hints.work, 10_000), ("host.chat", hints.chat, -10_000)):
        if any(_alike(names, each, weights) for each in examples):
            yield rule, change
    said = {word for clause in asking for word in clause} - MARKS
    if any(tool.casefold() in said for tool in hints.tools):
        yield "host.tool", _NAMED
    verbs = {tool.casefold().partition("_")[0] for tool in hints.tools}
    begins = (
        next((word for word in clause if word not in _FILLERS and word not in _COURTESIES), "") for clause in asking
    )
    if not verbs.isdisjoint(begins):
        yield "host.verb", _BEGINS
    shared = sum(len(word) >= _SHORTEST_HINT and word in hints.told and word not in weights.common for word in said)
    if shared:
        yield "host.words", _HINT * min(shared, 2)


def _alike(names: set[str], example: str, weights: Weights) -> bool:
    """Whether a message shares at least half of the features of both with an example."""
    others = features(sentences(example), weights.common)
    return 100 * len(names & others) >= _ALIKE * len(names | others)
