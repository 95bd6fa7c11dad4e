"""Pages of the docs: their programs, and what these need."""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING

from attrs import frozen

from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NEEDS = re.compile(r"Needs `footlights(?:\[([\w,]+)\])?`(?:, and `([\w-]+)`)?")
"""The sentence under the title of a guide: first what its programs need, then exceptions in words."""

FENCED = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@frozen
class Example:
    page: Path
    line: int
    program: str
    output: str | None


def examples(page: Path) -> Iterator[Example]:
    """The Python blocks of a page. The `text output` block that follows one is what it prints."""
    text = page.read_text(encoding="utf-8")
    blocks = list(FENCED.finditer(text))
    for block, following in zip_longest(blocks, blocks[1:]):
        if block[1] == "python":
            output = following[2] if following is not None and following[1] == "text output" else None
            yield Example(page, text.count("\n", 0, block.start()) + 1, block[2], output)


def requirement(text: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """The extras and the other packages that the programs of a page need; none if it does not say."""
    needs = re.search(rf"\A# .*\n\n{NEEDS.pattern}", text)
    if needs is None:
        return frozenset(), ()
    return frozenset((needs[1] or "").split(",")) - {""}, (needs[2],) if needs[2] else ()
