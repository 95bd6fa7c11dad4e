"""Labelled prompts: those that the weights are learned from, and the held-out ones that they are judged by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

LABELS = Path(__file__).parent / "labels"
HELD_OUT = Path(__file__).parents[2] / "tests/runtime/modes/labels/held-out.jsonl"


@frozen
class Labelled:
    """A prompt, and what it asks for."""

    text: str
    is_work: bool
    activity: str
    """The kind of work, if it is labelled with one."""
    kind: str
    """The way of asking, if it is labelled with one."""


def training() -> dict[str, list[Labelled]]:
    """By writer, the prompts to learn from, always in the same order. A test shows that none of them judges."""
    return {file.stem: list(labelled(file)) for file in sorted(LABELS.glob("*.jsonl"))}


def labelled(file: Path) -> Iterator[Labelled]:
    for row in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
        kind = row.get("kind", "")
        is_work = row["label"] == "work"
        activity = row.get("activity", "delete" if is_work and kind == "destructive" else "")
        yield Labelled(row["text"], is_work, activity, kind)
