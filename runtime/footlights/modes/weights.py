"""Weights: what each feature says for or against work, and for each activity. Integers, learned from labelled prompts.

`make train-modes` writes `weights.tsv`. Each line is a feature and its weight, below a line that says for what: first
for work. The record of a decision names a feature by its line, so that it never holds a word: `feature_named` gives its
name.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from math import isqrt
from operator import itemgetter
from typing import TYPE_CHECKING

from attrs import frozen

from footlights.modes.features import features

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WORK = "work"


@frozen
class Weights:
    """The weights of one file."""

    version: str
    """Changes whenever a weight does."""
    common: frozenset[str]
    threshold: int
    """What a message must score to ask for work."""
    of: Mapping[str, Mapping[str, int]]
    """By activity, or `work`, and feature."""
    lines: Mapping[str, int]
    """By feature, the line of its weight for work."""

    def score(self, said: Sequence[Sequence[str]]) -> tuple[int, set[str]]:
        """How far these clauses are from chat, or the last of them alone, and the features that say so.

        A long message needs more than a short one.
        """
        found = features(said, self.common)
        last = features(said[-1:], self.common) if len(said) > 1 else found
        return max(((self._sum(WORK, each) - self.threshold, each) for each in (found, last)), key=itemgetter(0))

    def _sum(self, of: str, found: set[str]) -> int:
        known = [weight for each in found if (weight := self.of[of].get(each))]
        return 10 * sum(known) // (isqrt(100 * len(known)) or 1)

    def strongest(self, found: set[str], most: int = 5) -> tuple[str, ...]:
        """The features that weigh most, by line."""
        known = self.of[WORK]
        names = sorted(found & known.keys(), key=lambda each: (-abs(known[each]), each))
        return tuple(f"{self.version}:{self.lines[each]}" for each in names[:most])

    def activity(self, found: set[str]) -> str:
        """What kind of work these features ask for."""
        return max(sorted(self.of.keys() - {WORK}), key=lambda name: self._sum(name, found))


def read_weights(text: str) -> Weights:
    (_, version, threshold), (_, common), *rows = (line.split("\t") for line in text.splitlines())
    of: dict[str, dict[str, int]] = {}
    current: dict[str, int] = {}
    lines: dict[str, int] = {}
    for number, (feature, *weight) in enumerate(rows, 3):
        if not weight:
            current = of.setdefault(feature, {})
            continue
        current[feature] = int(weight[0])
        if len(of) == 1:
            lines[feature] = number
    return Weights(version, frozenset(common.split()), int(threshold), of, lines)


@cache
def standard_weights() -> Weights:
    """The weights of this version."""
    return read_weights(files("footlights.modes").joinpath("weights.tsv").read_text(encoding="utf-8"))


def feature_named(reference: str) -> str:
    """The name of a feature in the record of a decision. Raises `LookupError` for one of other weights."""
    weights = standard_weights()
    by_line = {f"{weights.version}:{line}": name for name, line in weights.lines.items()}
    return by_line[reference]
