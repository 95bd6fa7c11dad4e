"""Argument checks: names that exist are listed, and a long list is cut."""

from __future__ import annotations

import pytest

from footlights.checks import listed


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ([], "none"),
        (["odo"], "odo"),
        (["odo", "edda"], "odo, edda"),
        ([f"npc{n}" for n in range(23)], ", ".join(f"npc{n}" for n in range(20)) + " and 3 more"),
    ],
)
def test_names_are_listed(names: list[str], told: str) -> None:
    assert listed(names) == told
