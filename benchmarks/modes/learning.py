"""Support vector machine for sets of features: the same examples give the same weights, on every machine.

It uses dual coordinate descent for the squared hinge loss. Only `+`, `-`, `*`, `/`, `sqrt` and `fsum` touch its
numbers, which are rounded alike everywhere, unlike those of `sum`, which differs between versions of Python.
"""

from __future__ import annotations

import random
from math import fsum, log, sqrt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROUNDS = 25
_COST = 0.005
"""What an example on the wrong side costs. A low cost forgives more."""
_SCALE = 1_000


def learned(examples: Sequence[tuple[Sequence[int], bool]], counts: Sequence[int]) -> list[int]:
    """A weight for each feature. An example is its features and its label; a feature that is rare says more."""
    importance = [round(1_000 * log(len(examples) / count)) ** 3 / 1e9 for count in counts]
    weights = [0.0] * len(counts)
    slack = 1 / (2 * _COST)
    known: list[tuple[Sequence[int], int, float, float]] = []
    for found, is_positive in examples:
        if found:
            length = fsum([importance[each] for each in found]) / len(found)
            known.append((found, 1 if is_positive else -1, 1 / sqrt(len(found)), length + slack))
    duals = [0.0] * len(known)
    order = list(range(len(known)))
    shuffle = random.Random(1)
    for _ in range(_ROUNDS):
        shuffle.shuffle(order)
        for number in order:
            found, label, share, curvature = known[number]
            before = duals[number]
            gradient = label * share * fsum([weights[each] for each in found]) - 1 + slack * before
            after = max(before - gradient / curvature, 0.0)
            if after != before:
                duals[number] = after
                step = (after - before) * label * share
                for each in found:
                    weights[each] += step * importance[each]
    return [round(_SCALE * weight) for weight in weights]
