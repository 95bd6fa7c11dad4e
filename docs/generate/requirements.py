"""Requirements: sentences that a promise was made of, and the tests that show them.

A row stands in `docs/reference/requirements/*.toml`, and its id stands in a marker on each test that shows it:
`@pytest.mark.shows("narration-17")`. Tests are parsed and never imported, so that reading all of them is cheap.
"""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "docs/reference/requirements"


@frozen
class Document:
    """The rows of one part, by heading and id, and the ids of those that no test can show yet."""

    name: str
    rows: Mapping[str, Mapping[str, str]]
    pending: frozenset[str]

    @property
    def ids(self) -> list[str]:
        return [each for rows in self.rows.values() for each in rows]


def documents() -> list[Document]:
    return [_document(file) for file in sorted(ROWS.glob("*.toml"))]


def _document(file: Path) -> Document:
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    return Document(file.stem, pending=frozenset(content.pop("pending")), rows=content)


def shown_by(folder: Path) -> dict[str, list[str]]:
    """The tests that show each id, as `file::test`."""
    found = defaultdict[str, list[str]](list)
    for file in sorted(folder.rglob("test_*.py")):
        source = file.read_text(encoding="utf-8")
        if "mark.shows" in source:
            for test, row in _markers(ast.parse(source)):
                found[row].append(f"{file.name}::{test}")
    return found


def _markers(module: ast.Module) -> Iterator[tuple[str, str]]:
    for statement in module.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name.startswith("test_"):
            for decorator in statement.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.shows":
                    yield from ((statement.name, ast.literal_eval(row)) for row in decorator.args)


def page() -> str:
    """All documents: each row with its tests."""
    tests = shown_by(ROOT / "tests")
    return "\n\n".join(line for each in documents() for line in _part(each, tests))


def _part(document: Document, tests: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield f"## {document.name.capitalize()}"
    for heading, rows in document.rows.items():
        yield f"### {heading}"
        lines = ["| id | requirement | shown by |", "| --- | --- | --- |"]
        for row, text in rows.items():
            shown = "<br>".join(f"`{test}`" for test in tests.get(row, ())) or "*not yet*"
            lines.append(f"| {row} | {text} | {shown} |")
        yield "\n".join(lines)
