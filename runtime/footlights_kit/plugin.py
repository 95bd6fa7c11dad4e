"""Pytest plugin of the kit. `footlights-kit` registers it; with `footlights`, add it to `pytest_plugins` in a conftest.

- `@pytest.mark.cancel_everywhere` on an async test runs it once for every point at which it can be cancelled, and
  `@pytest.mark.fail_everywhere(error=OSError)` once for every await that can fail. Their arguments are those of the
  functions.
- A marked test has its fixtures, which its runs share, but `tmp_path` is a new folder in each. A test that takes
  `trial` defines the cancel itself.
- `--cancel-replay="order=0 points=2"` runs only this case, of marked tests and of every call in other tests.
- `quiet_clock` is a virtual clock for pytest-trio that jumps when no task is runnable and no worker thread is busy.
"""

from __future__ import annotations

import inspect
import os
from contextvars import Token
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
import trio.testing

from footlights_kit.explore import cancel_everywhere, fail_everywhere, requested_replay
from footlights_kit.quiesce import quiesced_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from footlights_kit.trial import Scenario, Trial

_MARKERS: dict[str, Callable[..., object]] = {
    "cancel_everywhere": cancel_everywhere,
    "fail_everywhere": fail_everywhere,
}
_TEST = pytest.StashKey["Callable[..., Any]"]()
_REPLAY = pytest.StashKey[Token[str | None]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("footlights-kit").addoption(
        "--cancel-replay", metavar="CASE", help='run only this case of each exploration, such as "order=0 points=2"'
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "cancel_everywhere(**options): cancel this async test at every point")
    config.addinivalue_line("markers", "fail_everywhere(error=..., **options): raise this at every await of it")
    config.stash[_REPLAY] = requested_replay.set(config.getoption("--cancel-replay"))


def pytest_unconfigure(config: pytest.Config) -> None:
    requested_replay.reset(config.stash[_REPLAY])


@pytest.fixture
def quiet_clock() -> Generator[trio.testing.MockClock]:
    with quiesced_threads():
        yield trio.testing.MockClock(autojump_threshold=0)


@pytest.fixture
def trial(request: pytest.FixtureRequest) -> None:
    """The `Trial` of a marked test. Each run gets its own."""
    if _marker(request.node) is None:
        pytest.fail("the fixture `trial` is for tests that are marked with cancel_everywhere or fail_everywhere")


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if isinstance(item, pytest.Function) and _marker(item) is not None:
        item.stash[_TEST] = item.obj  # before pytest-trio puts its own function there


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    __tracebackhide__ = True
    marker = _marker(pyfuncitem)
    if marker is None:
        return None
    test = pyfuncitem.stash[_TEST]
    if not inspect.iscoroutinefunction(test):
        pytest.fail(f"{marker.name} marks an async test: {pyfuncitem.name} is a plain one")
    names = list(inspect.signature(test).parameters)
    fixtures = {name: pyfuncitem.funcargs[name] for name in names if name in pyfuncitem.funcargs}
    for name, value in fixtures.items():
        if inspect.isawaitable(value) or inspect.isasyncgen(value) or type(value).__module__.startswith("pytest_trio"):
            pytest.fail(f"the fixture {name} belongs to one run of trio, and this test has many: make it in the test")
    scenario = _scenario(test, fixtures)
    vars(scenario)["replay_command"] = _replay_command(pyfuncitem)
    _MARKERS[marker.name](scenario, *marker.args, **marker.kwargs)
    return True


def _replay_command(item: pytest.Function) -> str:
    """The command that runs this test, from the folder in which pytest was started, for a shell."""
    path = os.path.relpath(item.path, item.config.invocation_params.dir)
    test = f"{path}::{item.nodeid.partition('::')[2]}".replace("'", "'\\''")
    return f"pytest '{test}' --cancel-replay"


def _scenario(test: Callable[..., Any], fixtures: dict[str, Any]) -> Scenario:
    folders = _folders(fixtures.get("tmp_path"))

    async def canceled_as_a_whole() -> None:
        await test(**fixtures, **next(folders))

    async def with_trial(trial: Trial) -> None:
        await test(**fixtures, **next(folders), trial=trial)

    fixtures.pop("tmp_path", None)
    if "trial" in fixtures:
        del fixtures["trial"]
        return with_trial
    return canceled_as_a_whole


def _folders(parent: Any) -> Iterator[dict[str, Any]]:
    """A new folder for each run, if the test asks for one."""
    for number in count():
        if parent is None:
            yield {}
        else:
            folder = parent / f"run-{number}"
            folder.mkdir()
            yield {"tmp_path": folder}


def _marker(item: Any) -> pytest.Mark | None:
    return next((mark for name in _MARKERS if (mark := item.get_closest_marker(name)) is not None), None)
