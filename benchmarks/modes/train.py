"""Training of the weights by which a request for work is found: `make train-modes`.

    PYTHONPATH=benchmarks python -m modes.train          learn from all prompts but the held-out ones
    PYTHONPATH=benchmarks python -m modes.train --cross  judge the prompts of dev by weights learned without them

Only integers and a fixed order are used, so the file is the same on every machine.
"""

from __future__ import annotations

import sys
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from footlights.modes import weights as runtime
from footlights.modes.detection import units
from footlights.modes.features import MARKS, features
from modes.labels import Labelled, judged, training
from modes.learning import learned

if TYPE_CHECKING:
    from collections.abc import Sequence

FILE = Path(runtime.__file__).with_name("weights.tsv")
COMMON_WORDS = 300
ROUNDS = 12
MARGIN = 100
TIMES = 4
"""How often a prompt of dev counts."""
FEWEST = 2
"""Prompts in which a feature occurs at least."""
THRESHOLD = 330
MOST = 19_000
"""Weights for work that are kept, the strongest."""
MOST_FOR_ACTIVITY = 300


def trained(prompts: Sequence[Labelled]) -> str:
    """The file of weights that these prompts give."""
    said = [units(each.text) or [()] for each in prompts]
    words = Counter(word for clauses in said for clause in clauses for word in set(clause) if word not in MARKS)
    common = frozenset(word for word, _ in sorted(words.items(), key=lambda each: (-each[1], each[0]))[:COMMON_WORDS])
    found = [[features(clause, common) for clause in clauses] for clauses in said]
    counts = Counter(name for clauses in found for name in frozenset[str]().union(*clauses))
    names = sorted(name for name, count in counts.items() if count >= FEWEST)
    number = {name: place for place, name in enumerate(names)}
    known = [[sorted(number[name] for name in clause if name in number) for clause in clauses] for clauses in found]
    examples = [(clauses, each.is_work) for clauses, each in zip(known, prompts, strict=True)]
    lines = _lines(runtime.WORK, names, learned(examples, len(names), rounds=ROUNDS, margin=MARGIN), MOST)
    kinds = [(clauses, each.activity) for clauses, each in zip(known, prompts, strict=True) if each.activity]
    for activity in sorted({activity for _, activity in kinds}):
        of_kind = [(clauses, activity == each) for clauses, each in kinds]
        lines += _lines(activity, names, learned(of_kind, len(names), rounds=6, margin=20), MOST_FOR_ACTIVITY)
    rest = "\n".join([f"common\t{' '.join(sorted(common))}", *lines, ""])
    return f"version\tw{blake2b(rest.encode(), digest_size=4).hexdigest()}\t{THRESHOLD}\n{rest}"


def _lines(of: str, names: Sequence[str], weights: Sequence[int], most: int) -> list[str]:
    strongest = sorted(range(len(names)), key=lambda place: (-abs(weights[place]), place))[:most]
    return [of, *(f"{names[place]}\t{weights[place]}" for place in sorted(strongest) if weights[place])]


def score(weights: runtime.Weights, text: str) -> int:
    return max((weights.score(clause)[0] for clause in units(text)), default=-weights.threshold)


def crossed(parts: int = 4) -> None:
    """How well prompts of dev are judged that were not learned from, at several thresholds."""
    prompts, dev = training(), judged("dev")
    scores: list[tuple[int, Labelled]] = []
    for part in range(parts):
        rest = [each for place, each in enumerate(dev) if place % parts != part]
        weights = runtime.read_weights(trained([*prompts, *rest * TIMES]))
        scores += [(score(weights, each.text) + THRESHOLD, each) for each in dev[part::parts]]
    for threshold in range(0, 700, 100):
        work = [got > threshold for got, each in scores if each.is_work]
        chat = [got <= threshold for got, each in scores if not each.is_work]
        print(f"{threshold}: work {sum(work) / len(work):.3f}, chat {sum(chat) / len(chat):.3f}")
    if "--errors" in sys.argv:
        for got, each in scores:
            if (got > THRESHOLD) != each.is_work:
                print(got, "work" if each.is_work else "chat", each.kind, "|", each.text[:160])


if __name__ == "__main__":
    if "--cross" in sys.argv:
        crossed()
    else:
        FILE.write_text(trained([*training(), *judged("dev") * TIMES]), encoding="utf-8")
