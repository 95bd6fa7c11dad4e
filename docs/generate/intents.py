"""The tables of the modes: the standard rules, and how well they do on the labelled prompts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import tables

from footlights.modes import STANDARD_RULES, Candidate, Confirmation, ExecutionPolicy, decide
from footlights.modes.standard import ARTIFACTS, DOING, MEASURES, SOURCES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from footlights.modes import IntentRule

_FOLDER = Path(__file__).parent.parent / "reference"
_NAMES = {
    (Candidate.CHAT, "-"): "chat",
    (Candidate.EXECUTION, "-"): "execution",
    **{(Candidate.EXECUTION, str(each)): f"execution, {each.replace('_', ' ')}" for each in Confirmation},
}
_LISTS = {
    frozenset(DOING): "doing",
    SOURCES: "sources",
    MEASURES: "measures",
    ARTIFACTS: "artifacts",
}


def built_with() -> str:
    return _confusion("built-with")


def held_out() -> str:
    return _confusion("held-out")


def reviewer() -> str:
    return _confusion("reviewer")


def missed() -> str:
    return _missed("held-out")


def missed_reviewer() -> str:
    return _missed("reviewer")


def _missed(name: str) -> str:
    """What the rules get wrong, word for word."""
    rows = ([message, label, found] for message, label, found in _judged(name) if label != found)
    return tables.table(["prompt", "label", "found"], rows)


def rules() -> str:
    return tables.table(
        ["rule", "activity", "conditions", "a request begins with"],
        (
            [
                tables.code(rule.id),
                rule.activity,
                ", ".join(each.replace("_", " ") for each in rule.conditions),
                _words(rule),
            ]
            for rule in STANDARD_RULES.rules
        ),
    )


def vetoes() -> str:
    rows = (
        [tables.code(veto.id), ", ".join(f"“{phrase}”" for phrase in veto.phrases)] for veto in STANDARD_RULES.vetoes
    )
    return tables.table(["rule", "words"], rows)


def _words(rule: IntentRule) -> str:
    parts: list[str] = []
    if rule.verbs:
        parts.append(_listed(rule.verbs) + (f", with one of {_listed(rule.about)}" if rule.about else ""))
    if rule.doing:
        parts.append(f"{_listed(rule.doing)} and one of {_listed(rule.things)}")
    if rule.asked:
        parts.append(f"a question with one of {_listed(rule.asked)} and one of {_listed(rule.about)}")
    return "; or ".join(parts)


def lists() -> str:
    return "\n".join(f"- **{name}**: {', '.join(sorted(words))}" for words, name in _LISTS.items())


def _listed(words: Collection[str]) -> str:
    known = next((known for known in _LISTS if known <= set(words)), frozenset[str]())
    others = [word for word in words if word not in known] if known else list(words)
    if isinstance(words, frozenset):
        others.sort()
    return ", ".join([*([f"**{_LISTS[known]}**"] if known else []), *([f"*{', '.join(others)}*"] if others else [])])


def _judged(name: str) -> Iterator[tuple[str, str, str]]:
    _, *rows = (_FOLDER / f"intents-{name}.tsv").read_text(encoding="utf-8").splitlines()
    for candidate, confirmation, message in (row.split("\t") for row in rows):
        decision = decide(message.replace("\\n", "\n"), ExecutionPolicy.AUTO)
        found = (decision.candidate, str(decision.confirmation or "-"))
        yield message, _NAMES[Candidate(candidate), confirmation], _NAMES[found]


def _confusion(name: str) -> str:
    counted = Counter((label, found) for _, label, found in _judged(name))
    kinds = list(_NAMES.values())
    rows = [[label, *(str(counted[label, found] or "·") for found in kinds)] for label in kinds]
    return tables.table(["label ↓ found →", *kinds], rows)
