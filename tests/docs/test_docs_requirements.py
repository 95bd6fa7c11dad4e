"""Every requirement is shown by a test, and every marker names a requirement."""

from __future__ import annotations

import runpy
from typing import TYPE_CHECKING, Any

from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

REQUIREMENTS: dict[str, Any] = runpy.run_path(str(ROOT / "docs/generate/requirements.py"))
DOCUMENTS = REQUIREMENTS["documents"]()
SHOWN = REQUIREMENTS["shown_by"](ROOT / "tests")
IDS = {row for document in DOCUMENTS for row in document.ids}
PENDING = {row for document in DOCUMENTS for row in document.pending}


def test_every_requirement_is_shown_by_a_test() -> None:
    assert sorted(IDS - PENDING - set(SHOWN)) == [], "mark the test that shows it: @pytest.mark.shows(...)"


def test_every_marker_names_a_requirement() -> None:
    assert {row: tests for row, tests in SHOWN.items() if row not in IDS} == {}


def test_nothing_is_pending_that_a_test_shows() -> None:
    assert sorted(PENDING & set(SHOWN)) == [], "take it out of the list `pending` of its file"
    assert sorted(PENDING - IDS) == []


def test_the_rows_of_a_part_are_numbered_without_a_gap() -> None:
    for document in DOCUMENTS:
        numbers = range(1, len(document.ids) + 1)
        assert sorted(document.ids) == sorted(f"{document.name}-{number}" for number in numbers)


def test_markers_are_found_on_tests_wherever_they_stand_among_the_decorators(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        '@pytest.mark.shows("a-1", "a-2")\n@given()\n@pytest.mark.shows("a-3")\nasync def test_it(): ...\n'
        '@pytest.mark.shows("a-4")\ndef helper(): ...\n'
    )
    assert REQUIREMENTS["shown_by"](tmp_path) == {f"a-{number}": ["test_it.py::test_it"] for number in (1, 2, 3)}
