"""The labelled prompts that ship with the docs."""

from __future__ import annotations

from attrs import frozen

from footlights.modes import Candidate, Confirmation
from tests.kit.paths import ROOT

_FOLDER = ROOT / "docs/reference"


@frozen
class Labelled:
    message: str
    candidate: Candidate
    confirmation: Confirmation | None


def labelled(name: str) -> list[Labelled]:
    _, *rows = (_FOLDER / f"intents-{name}.tsv").read_text(encoding="utf-8").splitlines()
    cells = [row.split("\t") for row in rows]
    return [
        Labelled(
            message.replace("\\n", "\n"),
            Candidate(candidate),
            None if confirmation == "-" else Confirmation(confirmation),
        )
        for candidate, confirmation, message in cells
    ]


BUILT_WITH = labelled("built-with")
HELD_OUT = labelled("held-out")
REVIEWER = labelled("reviewer")
