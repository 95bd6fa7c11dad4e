"""The tables of the modes: the vetoes, and how well the prompts of strangers are understood."""

from __future__ import annotations

import json
from pathlib import Path

import tables

from footlights.modes import IntentKind, detect
from footlights.modes.rules import VETOES

_LABELS = Path(__file__).parents[2] / "tests/runtime/modes/labels"


def held_out() -> str:
    """By kind, how many of the held-out prompts for work and for chat are judged as they are labelled."""
    rows = [json.loads(line) for line in (_LABELS / "held-out.jsonl").read_text(encoding="utf-8").splitlines()]
    counts: dict[str, dict[tuple[str, bool], int]] = {}
    for row in rows:
        is_work = detect(row["text"]).kind is IntentKind.EXECUTION
        for kind in ("all", row["kind"].replace("_", " ")):
            of_kind = counts.setdefault(kind, {})
            of_kind[row["label"], is_work] = of_kind.get((row["label"], is_work), 0) + 1
    return tables.table(
        ["kind", "work, found", "work, missed", "chat, kept", "chat, taken for work"],
        (
            [
                kind,
                *(
                    str(counts[kind].get(cell, "·"))
                    for cell in (("work", True), ("work", False), ("chat", False), ("chat", True))
                ),
            ]
            for kind in ("all", *sorted(counts.keys() - {"all"}))
        ),
    )


def vetoes() -> str:
    rows = (
        [tables.code(name), ", ".join(tables.code(form.replace("|", "\\|")) for form in forms)]
        for name, forms in VETOES.items()
    )
    return tables.table(["rule", "words, as expressions"], rows)
