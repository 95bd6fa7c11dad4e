"""Every test of this project runs under the public test kit."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from footlights_actors.weights import WeightsNotFetched, find

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ["footlights.testing.plugin"]

# No deadline: machines are noisy. In CI the examples are always the same ones and fewer, at home new ones each time.
settings.register_profile("home", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("ci" if os.environ.get("CI") else "home")

_NO_LOCAL_MODEL = "no local model: "


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The weights of a real, small model. Tests that need them are skipped where they are not, and the run says so."""
    if find_spec("xllamacpp") is None:
        pytest.skip(f"{_NO_LOCAL_MODEL}pip install 'footlights[local]'")
    try:
        return find("smollm2")
    except WeightsNotFetched as error:
        pytest.skip(f"{_NO_LOCAL_MODEL}{error}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [each for each in terminalreporter.getreports("skipped") if _NO_LOCAL_MODEL in str(each.longrepr)]
    if skipped:
        terminalreporter.section("THE LOCAL MODEL WAS NOT TESTED", sep="!", red=True, bold=True)
        for report in skipped:
            terminalreporter.line(report.nodeid)
        terminalreporter.line("To test it, fetch its weights: footlights models fetch smollm2")
