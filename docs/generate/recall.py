"""Table of what the secret filter finds in labelled texts, which a person wrote without sight of its rules."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from tables import table

from footlights.redaction.redactor import Redactor

if TYPE_CHECKING:
    from pathlib import Path


def counts(file: Path) -> tuple[Counter[str], Counter[str], int, int]:
    """Of labelled texts: places by kind, those that are found whole, harmless texts, and those with a blot."""
    there, found = Counter[str](), Counter[str]()
    harmless = alarms = 0
    redactor = Redactor()
    for line in file.read_text("utf-8").splitlines():
        row = json.loads(line)
        spans = redactor.spans(row["text"])
        for begin, end, kind in row["spans"]:
            there[kind] += 1
            found[kind] += any(a <= begin and end <= b for a, b in spans)
        harmless += not row["spans"]
        alarms += bool(spans) and not row["spans"]
    return there, found, harmless, alarms


def table_of(folder: Path) -> str:
    sets = [counts(folder / name) for name in ("dev.jsonl", "heldout.jsonl")]
    kinds = sorted({kind for there, *_ in sets for kind in there})
    rows = [
        [kind.replace("_", " "), *(f"{found[kind]} of {there[kind]}" for there, found, *_ in sets)] for kind in kinds
    ]
    rows.append(["**together**", *(_share(found.total(), there.total()) for there, found, *_ in sets)])
    rows.append(["**false alarms**", *(_share(alarms, harmless) for *_, harmless, alarms in sets)])
    return table(["what", "rules were made with", "held out"], rows)


def _share(part: int, whole: int) -> str:
    return f"**{part} of {whole} ({100 * part / whole:.1f} %)**"
