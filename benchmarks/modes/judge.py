"""Judgement of the weights by prompts that they were not learned from: counts by label and kind, and no prompt.

    PYTHONPATH=benchmarks python -m modes.judge [FILE] [--labels-only]

The file is that of the held-out prompts, unless another is given.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from footlights.modes.detection import detect
from footlights.modes.record import IntentKind
from modes.labels import HELD_OUT, labelled


def counted(file: Path = HELD_OUT) -> dict[tuple[str, str], tuple[int, int]]:
    """By kind and label, the number of prompts, and of those that are judged as labelled. The kind "" is all."""
    all_of, right = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for each in labelled(file):
        found = detect(each.text).kind is IntentKind.EXECUTION
        for kind in ("", each.kind):
            key = (kind, "work" if each.is_work else "chat")
            all_of[key] += 1
            right[key] += found is each.is_work
    return {key: (all_of[key], right[key]) for key in sorted(all_of)}


if __name__ == "__main__":
    given = [Path(each) for each in sys.argv[1:] if each[0] != "-"]
    for (kind, label), (number, good) in counted(*given).items():
        if not kind or "--labels-only" not in sys.argv:
            print(f"{kind or 'all'} {label}: {good} of {number}, {good / number:.0%}")
