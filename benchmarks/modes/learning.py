"""Averaged perceptron with integer weights: the same labelled prompts give the same weights, on every machine."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def learned(
    examples: Sequence[tuple[Sequence[Sequence[int]], bool]], size: int, *, rounds: int, margin: int
) -> list[int]:
    """A weight for each of `size` features: the best clause of a prompt is positive if the prompt asks for work.

    An example is a prompt: the features of each clause, and its label.
    """
    weights, sums, since = [0] * size, [0] * size, [0] * size
    step = 0
    order = list(range(len(examples)))
    shuffle = random.Random(1)
    for _ in range(rounds):
        shuffle.shuffle(order)
        for number in order:
            clauses, is_work = examples[number]
            step += 1
            best = max(clauses, key=lambda clause: sum([weights[each] for each in clause]))
            score = sum([weights[each] for each in best])
            if (score if is_work else -score) > margin:
                continue
            change = 1 if is_work else -1
            for each in best:
                sums[each] += weights[each] * (step - since[each])
                since[each] = step
                weights[each] += change
    return [
        (total + weight * (step - last)) * 8 // step for total, weight, last in zip(sums, weights, since, strict=True)
    ]
