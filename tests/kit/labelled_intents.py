"""The held-out prompts that judge the modes, which the weights do not know."""

from __future__ import annotations

import json

from tests.kit.paths import ROOT

HELD_OUT = [
    json.loads(line)
    for line in (ROOT / "tests/runtime/modes/labels/held-out.jsonl").read_text(encoding="utf-8").splitlines()
]
