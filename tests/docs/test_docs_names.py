"""The docs name files, folders and modules that exist."""

from __future__ import annotations

import pkgutil
import re
import tomllib
from itertools import chain
from typing import TYPE_CHECKING

import pytest

from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(DOCS.rglob("*.md"))]
HOMES = {
    "footlights": ROOT / "runtime",
    "footlights_actors": ROOT / "actors",
    "footlights_kit": ROOT / "runtime",
    "footlights_transports": ROOT / "transports",
    "footlights_bench": ROOT / "benchmarks",
}
HOPS = ["socket", "framing", "protocol", "access", "session", "turn", "performance", "generator", "say", "outbox"]
HOPS += ["broadcaster", "committer", "judge", "ledger"]
WORDS = {
    "stage",
    "cast",
    "session",
    "turn",
    "plane",
    "intent",
    "boundary",
    "commit",
    "epoch",
    "lane",
    "outbox",
    "dialect",
}
WORDS |= {"view", "ledger", "digest", "broadcaster", "cursor", "replay", "law", "workload", "persona", "artifact"}
WORDS |= {"kernel", "performance", "observer", "follower", "lease", "settle", "in doubt", "fast path", "operator"}
WORDS |= {"Dexi", "K-gent", "Dottie"}

_PATH = re.compile(r"`(footlights(?:_[a-z]+)?/[\w/]*(?:\.\w+)?)`")
_DOTTED = re.compile(r"`(footlights(?:_(?:actors|kit|transports|bench)|\.(?:authority|testing|stream|turn))(?:\.\w+)+)")


def pages_that_match(pattern: re.Pattern[str]) -> list[Path]:
    return [page for page in PAGES if page.exists() and pattern.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", pages_that_match(_PATH), ids=lambda page: page.name)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    named = _PATH.findall(page.read_text(encoding="utf-8"))
    gone = sorted({each for each in named if not (HOMES[each.partition("/")[0]] / each).exists()})
    assert not gone, (
        f"{page.relative_to(ROOT)} names files that do not exist: {', '.join(gone)}. If you moved them, write "
        "the new paths there, and check that the sentences beside them are still true."
    )


@pytest.mark.parametrize("page", pages_that_match(_DOTTED), ids=lambda page: page.name)
def test_every_dotted_name_on_a_page_can_be_imported(page: Path) -> None:
    named = sorted(set(_DOTTED.findall(page.read_text(encoding="utf-8"))))
    gone = [each for each in named if not is_importable(each)]
    assert not gone, (
        f"{page.relative_to(ROOT)} names what cannot be imported: {', '.join(gone)}. If you moved or renamed it, write "
        "the new name there."
    )


def is_importable(name: str) -> bool:
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def test_the_way_of_a_turn_names_every_hop() -> None:
    page = (DOCS / "design/way-of-a-turn.md").read_text(encoding="utf-8")
    hops = set(re.findall(r"^\| (\w+) \| `", page, re.MULTILINE))
    assert set(HOPS) <= hops, "docs/design/way-of-a-turn.md: the first column of its tables names each hop"


def test_the_overview_names_every_part_of_every_package() -> None:
    page = (DOCS / "design/overview.md").read_text(encoding="utf-8")
    folders = [
        f"{package}/{part.name}/"
        for package, home in HOMES.items()
        if package != "footlights_bench"
        for part in sorted((home / package).iterdir())
        if part.is_dir() and part.name != "__pycache__"
    ]
    missing = [each for each in folders if f"`{each}`" not in page]
    assert missing == [], "docs/design/overview.md has a table for each package: add a row with what lives there."


def test_the_glossary_defines_each_word_in_one_sentence_in_alphabetical_order() -> None:
    page = (DOCS / "glossary.md").read_text(encoding="utf-8")
    known: list[str] = []
    for section in page.split("\n## ")[1:]:
        entries = re.findall(r"^\| (.+?) \| (.+) \|$", section, re.MULTILINE)[2:]
        words = [word for word, _ in entries]
        assert words == sorted(words, key=str.casefold)
        assert [meaning for _, meaning in entries if not meaning.endswith(".") or ". " in meaning] == []
        known += words
    assert len(set(known)) == len(known)
    assert set(known) >= WORDS


def test_no_folder_of_the_docs_has_more_than_20_files() -> None:
    folders = [DOCS, *(each for each in DOCS.rglob("*") if each.is_dir() and each.name != "__pycache__")]
    assert {each.name: n for each in folders if (n := sum(1 for file in each.iterdir() if file.is_file())) > 20} == {}


def dependencies() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    return {re.split(r"[\[<>=~!; ]", each)[0].lower() for each in wanted} - {"footlights"}


def test_every_dependency_is_on_its_page_with_a_reason() -> None:
    page = (DOCS / "design/dependencies.md").read_text(encoding="utf-8")
    assert sorted(name for name in dependencies() if f"[{name}](" not in page and f"`{name}`" not in page) == []


def test_every_dependency_is_pinned_for_the_gates_and_no_pin_names_an_index() -> None:
    pins = (ROOT / ".ci/constraints.txt").read_text(encoding="utf-8").splitlines()
    assert all(re.fullmatch(r"[\w.-]+==[\w.+!]+", pin) for pin in pins)
    assert sorted(dependencies() - {pin.partition("==")[0].lower().replace("_", "-") for pin in pins}) == []
