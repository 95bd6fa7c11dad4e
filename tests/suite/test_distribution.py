"""The wheel and the sdist hold every file, and the docs say what each page needs. `make test-package` installs them."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from tests.kit.pages import NEEDS, requirement
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PACKAGES = [ROOT / each for each in SETTINGS["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]]
HOW_TO = sorted((ROOT / "docs/how-to").rglob("*.md"))


def files_in(folders: Iterable[Path], start: Path | None = None) -> set[str]:
    """The files in the folders, as paths from `start`, or from the folder that each of them is in."""
    return {
        each.relative_to(start or folder.parent).as_posix()
        for folder in folders
        for each in folder.rglob("*")
        if each.is_file() and "__pycache__" not in each.parts
    }


def test_the_wheel_has_every_file_of_the_packages_and_nothing_else() -> None:
    wheel = {each.distribution_path for each in WheelBuilder(str(ROOT)).recurse_included_files()}
    assert wheel == files_in(PACKAGES)


@pytest.mark.parametrize(
    "needed",
    [
        "footlights/py.typed",
        "footlights_transports/static/footlights.js",
        "footlights_transports/static/footlights.d.ts",
        "footlights_transports/static/console/index.html",
        "footlights_transports/cli/new/template/game.toml",
        "footlights_transports/cli/new/template/README.md",
        "footlights_transports/cli/new/template/gitignore",
        "footlights_actors/demo/documents/the-mended-lantern.md",
        "footlights_bench/scenario/scenarios/tavern.toml",
    ],
)
def test_the_wheel_has_the_files_that_are_no_modules(needed: str) -> None:
    assert needed in {each.distribution_path for each in WheelBuilder(str(ROOT)).recurse_included_files()}


def test_what_measures_footlights_itself_is_not_in_the_wheel() -> None:
    wheel = {each.distribution_path for each in WheelBuilder(str(ROOT)).recurse_included_files()}
    of_bench = {each.split("/")[1] for each in wheel if each.startswith("footlights_bench/")}
    assert of_bench == {"__init__.py", "py.typed", "attack", "lib", "scenario"}


def test_the_sdist_has_what_is_needed_to_build_and_to_test() -> None:
    sdist = {each.distribution_path for each in SdistBuilder(str(ROOT)).recurse_included_files()}
    folders = [ROOT / each for each in ("runtime", "actors", "transports", "benchmarks", "tests", "docs", ".ci")]
    assert files_in(folders, ROOT) <= sdist
    assert {"README.md", "LICENSE", "CHANGELOG.md", "Makefile"} <= sdist


def test_the_metadata_is_complete() -> None:
    metadata = WheelBuilder(str(ROOT)).metadata.core  # raises for a classifier that does not exist
    assert metadata.name == "footlights"
    assert len(metadata.description) <= 120
    assert metadata.license_expression == "MIT"
    assert metadata.keywords == sorted(metadata.keywords)
    assert metadata.classifiers == sorted(metadata.classifiers)
    lowest = metadata.requires_python.removeprefix(">=")
    assert f"Programming Language :: Python :: {lowest}" in metadata.classifiers
    assert metadata.scripts == {"footlights": "footlights_transports.cli.main:main"}
    assert metadata.readme.startswith("# Footlights\n")


# -- what each page needs


@pytest.mark.parametrize("page", [ROOT / "docs/tutorial.md", *HOW_TO], ids=lambda page: page.name)
def test_every_guide_says_first_which_extra_it_needs(page: Path) -> None:
    title, needs, *_ = page.read_text(encoding="utf-8").split("\n\n")
    assert title.startswith("# ")
    assert NEEDS.match(needs), needs
    extras = {each for found in re.findall(r"footlights\[([\w,]+)\]", needs) for each in found.split(",")}
    assert extras <= SETTINGS["project"]["optional-dependencies"].keys() - {"dev", "docs"}


def test_a_requirement_is_read_from_its_sentence() -> None:
    assert requirement("# T\n\nNeeds `footlights`.\n\n") == (frozenset(), ())
    assert requirement("# T\n\nNeeds `footlights[server,content]`; without, `footlights`.\n\n") == (
        frozenset({"server", "content"}),
        (),
    )
    assert requirement("# T\n\nNeeds `footlights`, and `pygame-ce` for loops.\n\n") == (frozenset(), ("pygame-ce",))
