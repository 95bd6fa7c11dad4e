"""Training of the weights by which a request for work is found: `make train-modes`.

    PYTHONPATH=benchmarks python -m modes.train          learn from all prompts of `labels`
    PYTHONPATH=benchmarks python -m modes.train --cross  judge each writer by weights learned from the others

The file is the same on every machine.
"""

from __future__ import annotations

import sys
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from footlights.modes import weights as runtime
from footlights.modes.detection import asking_clauses
from footlights.modes.features import features
from footlights.modes.record import Activity
from footlights.modes.words import MARKS
from modes.labels import training
from modes.learning import learned

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from modes.labels import Labelled

FILE = Path(runtime.__file__).with_name("weights.tsv")
COMMON_WORDS = 300
FEWEST = 2
"""Prompts in which a feature occurs at least."""
THRESHOLD = 240
"""What a message must score: the median of the writers' own by --cross, at which 95 % of the chat is kept. The writer
without whom hardly a prompt in another language is left does not count."""
MOST = 40_000
"""Weights for work that are kept, the strongest."""
MOST_FOR_ACTIVITY = 300


def trained(prompts: Iterable[Labelled]) -> str:
    """The file of weights that these prompts give. Prompts that the rules decide teach nothing."""
    said = [(clauses, each) for each in prompts if (clauses := asking_clauses(each.text))]
    words = Counter(word for clauses, _ in said for word in {word for clause in clauses for word in clause} - MARKS)
    common = frozenset(word for word, _ in sorted(words.items(), key=lambda each: (-each[1], each[0]))[:COMMON_WORDS])
    found = [(features(clauses, common), each) for clauses, each in said]
    lines = _lines(runtime.WORK, [(names, each.is_work) for names, each in found], MOST)
    for activity in sorted({each.activity for _, each in found} - {""}):
        # All work that deletes is labelled so; of other work only a part is labelled with its kind.
        of_kind = [
            (names, each) for names, each in found if each.activity or (each.is_work and activity == Activity.DELETE)
        ]
        lines += _lines(activity, [(names, activity == each.activity) for names, each in of_kind], MOST_FOR_ACTIVITY)
    rest = "\n".join([f"common\t{' '.join(sorted(common))}", *lines, ""])
    return f"version\tw{blake2b(rest.encode(), digest_size=4).hexdigest()}\t{THRESHOLD}\n{rest}"


def _lines(of: str, examples: Sequence[tuple[set[str], bool]], most: int) -> list[str]:
    """Weights of the features that say most, learned again without the others."""
    counts = Counter(name for found, _ in examples for name in found)
    names = sorted(name for name, count in counts.items() if count >= FEWEST)
    weights = _weights(names, examples, counts)
    strongest = sorted(names, key=lambda name: (-(weights[name] ** 2) * counts[name], name))[:most]
    weights = _weights(sorted(strongest), examples, counts)
    return [of, *(f"{name}\t{weight}" for name, weight in weights.items() if weight)]


def _weights(names: Sequence[str], examples: Sequence[tuple[set[str], bool]], counts: Counter[str]) -> dict[str, int]:
    number = {name: place for place, name in enumerate(names)}
    known = [(sorted(number[name] for name in found if name in number), label) for found, label in examples]
    return dict(zip(names, learned(known, [counts[name] for name in names]), strict=True))


def crossed() -> None:
    """How well the prompts of each writer are judged by weights that were learned from the others."""
    by_writer = training()
    scores: list[tuple[int, str, Labelled]] = []
    for writer, prompts in by_writer.items():
        if writer.startswith("writer"):
            weights = runtime.read_weights(
                trained(each for of, own in by_writer.items() if of != writer for each in own)
            )
            for each in prompts:
                clauses = asking_clauses(each.text)
                scores.append((weights.score(clauses)[0] + THRESHOLD if clauses else -100_000, writer, each))
    for name in ("writer", *by_writer):
        chat = sorted(got for got, writer, each in scores if writer.startswith(name) and not each.is_work)
        work = [got for got, writer, each in scores if writer.startswith(name) and each.is_work]
        for kept in (95, 90, 85, 80) if work else ():
            least = chat[len(chat) * kept // 100]
            print(f"{name}: above {least} chat {kept} %, work {sum(got > least for got in work) / len(work):.0%}")


if __name__ == "__main__":
    if "--cross" in sys.argv:
        crossed()
    else:
        FILE.write_text(trained(each for prompts in training().values() for each in prompts), encoding="utf-8")
