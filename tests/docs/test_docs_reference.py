"""The reference says what the source says: its generated parts are up to date, and nothing public is missing."""

from __future__ import annotations

import re
import subprocess
import sys
from enum import StrEnum

import pytest

import footlights
import footlights.authority
import footlights.testing
import footlights.testing.faults
import footlights_actors
from footlights import wire
from footlights.tools.artifact_notes import MAX_SUMMARY_CHARS
from footlights.turn import lifecycle
from footlights_actors.generator import MAX_CALLS_PER_ROUND, MAX_TOOL_ROUNDS
from tests.kit.paths import ROOT

REFERENCE = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs/reference").glob("*.md"))


def test_the_generated_parts_are_up_to_date() -> None:
    generator = [sys.executable, str(ROOT / "docs/generate"), "--check"]
    done = subprocess.run(generator, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}Run: python docs/generate"


def test_the_diagram_in_the_design_is_the_table() -> None:
    page = (ROOT / "docs/design/lifecycle.md").read_text(encoding="utf-8")
    assert f"```mermaid\n{lifecycle.diagram()}```" in page


def test_the_limits_without_an_option_are_the_ones_in_force() -> None:
    words = " ".join(REFERENCE.split())
    assert f"{MAX_TOOL_ROUNDS} rounds of up to {MAX_CALLS_PER_ROUND} calls" in words
    assert f"cut at {MAX_SUMMARY_CHARS} characters" in words
    assert f"nests up to {wire.MAX_EXT_DEPTH} levels" in words


@pytest.mark.parametrize(
    "module", [footlights, footlights_actors, footlights.authority, footlights.testing], ids=lambda m: m.__name__
)
def test_every_public_name_is_in_the_reference(module: object) -> None:
    names: list[str] = vars(module)["__all__"]
    assert [name for name in names if not _is_named(name)] == []


def test_every_fault_is_in_the_reference() -> None:
    made_here = [
        name
        for name, thing in vars(footlights.testing.faults).items()
        if getattr(thing, "__module__", "") == "footlights.testing.faults" and not name.startswith("_")
    ]
    assert [name for name in made_here if not _is_named(name)] == []


def test_every_value_of_a_public_enum_is_in_the_reference() -> None:
    public = [getattr(footlights, name) for name in vars(footlights)["__all__"]]
    enums = [each for each in public if isinstance(each, type) and issubclass(each, StrEnum)]
    assert len(enums) > 5
    values = {value for each in enums if each is not lifecycle.TurnState for value in each}
    assert sorted(value for value in values if value not in REFERENCE) == []


def _is_named(name: str) -> bool:
    """In a heading, or as code in the text."""
    return re.search(rf"^### {name}$|`[^`\n]*\b{name}\b[^`\n]*`", REFERENCE, re.MULTILINE) is not None
