"""The labelled prompts that judge the modes: those of `dev`, which the weights know, and the held-out ones."""

from __future__ import annotations

import json
from typing import Any

from tests.kit.paths import ROOT


def labelled(name: str) -> list[dict[str, Any]]:
    file = ROOT / f"tests/runtime/modes/labels/{name}.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


DEV = labelled("dev")
HELD_OUT = labelled("held-out")
