"""The pages hold together: links lead somewhere, every page can be found, and every command exists."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import typer.main

from footlights_transports.cli.commands import app
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

DOCS = ROOT / "docs"
AT_THE_TOP = [ROOT / f"{each}.md" for each in ("README", "CONTRIBUTING", "CHANGELOG", "SECURITY")]
PAGES = [*AT_THE_TOP, *sorted(DOCS.rglob("*.md"))]

_LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    prose = _FENCED.sub("", page.read_text(encoding="utf-8"))
    return [link for link in _LINK.findall(prose) if not link.startswith("https://")]


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", _FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_page_and_a_heading(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_found_from_the_index() -> None:
    linked = {(DOCS / link.partition("#")[0]).resolve() for link in links(DOCS / "index.md")}
    assert sorted(page for page in DOCS.rglob("*.md") if page not in linked and page != DOCS / "index.md") == []


def test_every_command_in_a_shell_block_exists() -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    commands = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]  # it is a group
    shell = "\n".join(block for page in PAGES for block in _SHELL.findall(page.read_text(encoding="utf-8")))
    assert set(re.findall(r"\bmake (\w+)", shell)) <= targets
    assert set(re.findall(r"\bfootlights (\w+)", shell)) <= commands


def test_the_readme_begins_with_how_to_run_and_how_to_test() -> None:
    blocks = _FENCED.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert blocks[0] == "```sh\nmake run\nmake test\n```"
