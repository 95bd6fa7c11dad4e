"""Labelled prompts: those that the weights are learned from, and those that they are judged by.

A text file of `labels` has sections: `# work`, `# work delete`, `# chat`, and `# clause` or `# clause delete`. A line
is a prompt, or with `{}` a frame. Each clause is put into some frames for work and as many for chat, so that its words
say nothing of the label, and only the frame does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LABELS = Path(__file__).parent / "labels"
JUDGED = Path(__file__).parents[2] / "tests/runtime/modes/labels"
_FRAMES = {"english-orders": 6, "english-things": 5}
_FEW_FRAMES = 3
_WANDERS = 5
"""Lines of a long prompt."""
_STRIDE = 7


@frozen
class Labelled:
    """A prompt, and what it asks for."""

    text: str
    is_work: bool
    activity: str = ""
    """The kind of work, if it is labelled with one."""
    kind: str = ""
    """The way of asking, of a prompt that judges."""


def training() -> list[Labelled]:
    """All prompts to learn from, in the same order on every machine."""
    found: list[Labelled] = []
    for file in sorted(LABELS.glob("*.txt")):
        found += _of_file(file)
    for file in sorted(LABELS.glob("*.tsv")):
        for row in file.read_text(encoding="utf-8").splitlines()[1:]:
            candidate, reason, text = row.split("\t")
            activity = "delete" if reason == "destructive" else ""
            found.append(Labelled(text.replace("\\n", "\n"), candidate == "execution_candidate", activity))
    return found


def judged(name: str) -> list[Labelled]:
    """The prompts of `dev` or `held-out`, which a stranger wrote."""
    rows = map(json.loads, (JUDGED / f"{name}.jsonl").read_text(encoding="utf-8").splitlines())
    return [
        Labelled(row["text"], row["label"] == "work", "delete" if row["kind"] == "destructive" else "", row["kind"])
        for row in rows
    ]


def _of_file(file: Path) -> Iterator[Labelled]:
    sections: dict[tuple[str, str], list[str]] = {}
    current: list[str] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            label, _, activity = line[2:].partition(" ")
            current = sections.setdefault((label, activity), [])
        elif line:
            current.append(line)
    frames = {label: [line for line in sections[label, ""] if "{}" in line] for label in ("work", "chat")}
    yield from _long_ones(
        [line for line in sections["work", ""] if "{}" not in line],
        [line for line in sections["chat", ""] if "{}" not in line],
    )
    for (label, activity), lines in sections.items():
        if label != "clause":
            yield from (Labelled(line, label == "work", activity) for line in lines if "{}" not in line)
            continue
        yield from (Labelled(line, is_work=True, activity=activity) for line in lines)
        each = _FRAMES.get(file.stem, _FEW_FRAMES)
        for number, line in enumerate(lines):
            for place in range(number * (each + 1), number * (each + 1) + each):
                for kind, of_kind in frames.items():
                    frame = of_kind[place % len(of_kind)]
                    yield Labelled(frame.replace("{}", line), kind == "work", activity if kind == "work" else "")


def _long_ones(work: Sequence[str], chat: Sequence[str]) -> Iterator[Labelled]:
    """Long prompts that wander: each third line of chat begins one for chat, and one that also asks for work."""
    for place in range(0, len(chat) - _STRIDE * _WANDERS, 3):
        said = chat[place : place + _STRIDE * _WANDERS : _STRIDE]
        yield Labelled(" ".join(said), is_work=False)
        if work:
            yield Labelled(" ".join([*said[1:], work[place % len(work)]]), is_work=True)
