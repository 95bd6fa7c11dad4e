"""Every test of this project runs under the public test kit."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from footlights_actors.models.local.weights import WeightsNotFetched, find

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

pytest_plugins = ["footlights.testing.plugin"]

# The same examples on every machine in every run; `make fuzz` explores. Neither judges by the speed of the machine.
_ANYWHERE = settings(deadline=None, database=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", _ANYWHERE, derandomize=True, max_examples=30)
settings.register_profile("fuzz", _ANYWHERE)
settings.load_profile("same")
# Hypothesis also tries the constants of the modules that are loaded, so that examples would depend on the tests that
# ran before, and a seed would not replay them.
providers._get_local_constants = lambda: providers._local_constants

_NO_LOCAL_MODEL = "no local model: "


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The weights of a real, small model. Tests that need them are skipped where they are not, and the run says so."""
    if find_spec("xllamacpp") is None:
        pytest.skip(f"{_NO_LOCAL_MODEL}install the extra local (from a checkout: pip install '.[local]')")
    try:
        return find("smollm2")
    except WeightsNotFetched as error:
        pytest.skip(f"{_NO_LOCAL_MODEL}{error}")


@pytest.fixture
def interruptible() -> Generator[None]:
    """SIGINT as in a terminal, here and in the processes that the test starts: a job in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def logs_as_they_were() -> Generator[None]:
    """What `set_up_logs` changes in the process, as it was before the test."""
    root, hooks = logging.getLogger(), (sys.unraisablehook, threading.excepthook, warnings.showwarning)
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers, root.level = handlers, level
    sys.unraisablehook, threading.excepthook, warnings.showwarning = hooks


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [each for each in terminalreporter.getreports("skipped") if _NO_LOCAL_MODEL in str(each.longrepr)]
    if skipped:
        terminalreporter.section("THE LOCAL MODEL WAS NOT TESTED", sep="!", red=True, bold=True)
        for report in skipped:
            terminalreporter.line(report.nodeid)
        terminalreporter.line("To test it, fetch its weights: footlights models fetch smollm2")
