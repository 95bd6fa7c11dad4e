"""Grammar of wishes: the patterns of `grammar.toml`, by name, and what a vessel holds."""

from __future__ import annotations

import re

from footlights_actors.demo.tavern.tables import any_of, one_line, tables
from footlights_actors.demo.tavern.vocabulary import DISHES, ROOMS

VESSELS = {"bowl": "stew", "mug": "ale", "goblet": "wine", "slice": "bread"}
"""What is in a vessel if nothing else was named."""
_REFERENCE = re.compile(r"\{([a-z_]+)\}")


def _compiled() -> dict[str, re.Pattern[str]]:
    written = tables("grammar")
    parts = {"dish": "|".join(DISHES), "room": "|".join(ROOMS)}
    parts |= {name: any_of(phrases) for name, phrases in written["phrases"].items()}
    for name, pattern in written["patterns"].items():
        parts[name] = _REFERENCE.sub(lambda reference: parts[reference[1]], one_line(pattern))
    return {name: re.compile(pattern) for name, pattern in parts.items()}


PATTERNS = _compiled()
