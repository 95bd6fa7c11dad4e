"""The gallery of cancellation bugs: each is found with its line, and its mended twin is not suspected."""

from __future__ import annotations

import re
import runpy
from typing import TYPE_CHECKING

import pytest

from footlights_kit import ExplorationFailed, cancel_everywhere
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from footlights_kit.trial import Scenario

PAGE = ROOT / "docs/examples/cancellation-bugs.md"
FOLDER = PAGE.parent / "cancellation"
FOUND_BY = dict(
    re.findall(r"^\| \[.+?\]\(cancellation/bugs/(\w+)\.py\) \|.*\| (.+?) \| \[", PAGE.read_text("utf-8"), re.MULTILINE)
)
"""What the page says of each bug."""


def scenario_of(kind: str, name: str) -> Scenario:
    scenario: Scenario = runpy.run_path(f"docs/examples/cancellation/{kind}/{name}.py")["scenario"]
    return scenario


def test_the_page_has_every_bug_and_every_bug_a_twin() -> None:
    bugs, mended = ({each.stem for each in (FOLDER / kind).glob("*.py")} for kind in ("bugs", "mended"))
    assert set(FOUND_BY) == bugs == mended
    assert len(bugs) == 20
    assert "Six of them" in PAGE.read_text("utf-8")
    assert list(FOUND_BY.values()).count("its own assert") == 6


@pytest.mark.parametrize("name", FOUND_BY)
def test_the_bug_is_found_with_its_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    file = f"docs/examples/cancellation/bugs/{name}.py"
    line = next(number for number, text in enumerate((ROOT / file).read_text().splitlines(), 1) if "# here" in text)
    with pytest.raises(ExplorationFailed) as failed:
        cancel_everywhere(scenario_of("bugs", name))
    said = str(failed.value)
    assert f"{file}:{line} in " in said
    assert ("AssertionError" if FOUND_BY[name] == "its own assert" else FOUND_BY[name].strip("`")) in said
    with pytest.raises(ExplorationFailed) as again:
        cancel_everywhere(scenario_of("bugs", name), replay=failed.value.replay)
    assert type(again.value.__cause__) is type(failed.value.__cause__)


@pytest.mark.parametrize("name", FOUND_BY)
def test_the_mended_twin_is_not_suspected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert cancel_everywhere(scenario_of("mended", name)).points > 1
