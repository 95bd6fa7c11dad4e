"""The pytest plugin: a marker, fixtures and a replay, in a project that has only the kit."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def no_other_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


TRIO = ("-p", "pytest_trio.plugin", "-o", "trio_mode=true")
PROJECT = """
import pytest
import trio


@pytest.fixture
def pause():
    return 1


class Pool:
    def __init__(self):
        self.free = 1


@pytest.mark.cancel_everywhere(pairs=4)
async def test_pool(trial, pause):
    pool = Pool()
    with trial.part():
        pool.free -= 1
        await trio.sleep(pause)
        pool.free += 1
    assert pool.free == 1, "not given back"


@pytest.mark.cancel_everywhere
async def test_folder(tmp_path):
    assert not list(tmp_path.iterdir()), "another run was here"
    (tmp_path / "file").write_text("x")
    await trio.sleep(1)


@pytest.mark.cancel_everywhere
async def test_lock(pause):
    lock = trio.Lock()
    await lock.acquire()
    await trio.sleep(pause)
    lock.release()


@pytest.mark.fail_everywhere(error=OSError)
async def test_failing():
    try:
        await trio.sleep(1)
    except OSError as error:
        raise LookupError("what the caller expects") from error


class TestInAClass:
    @pytest.mark.cancel_everywhere(orders=1)
    async def test_method(self):
        await trio.sleep(1)


@pytest.mark.cancel_everywhere
def test_plain():
    pass


def test_without_a_mark(trial):
    pass
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(test_project=PROJECT)
    return pytester.runpytest("-p", "footlights_kit.plugin", "-p", "no:cacheprovider", *arguments)


@pytest.mark.parametrize("others", [(), TRIO, ("-p", "xdist.plugin", "-n", "1")], ids=str)
def test_marked_tests_are_cancelled_everywhere_with_their_fixtures(
    pytester: pytest.Pytester, others: tuple[str, ...]
) -> None:
    result = run(pytester, *others)
    result.assert_outcomes(passed=3, failed=3, errors=1)
    said = result.stdout.str()
    assert "AssertionError: not given back" in said
    assert "LocksHeld: still held after the scenario: the Lock acquired at test_project.py:" in said
    assert "To replay: pytest 'test_project.py::test_pool' --cancel-replay=\"order=0 points=0\"" in said
    assert "test_plain is a plain one" in said
    assert "is for tests that are marked" in said


def test_a_case_is_replayed_without_a_change_of_the_source(pytester: pytest.Pytester) -> None:
    passed = run(pytester, "-k", "lock", "--cancel-replay=order=0 points=0")
    passed.assert_outcomes(passed=1, deselected=6)
    failed = run(pytester, "-k", "lock", "--cancel-replay=order=0 points=1")
    failed.assert_outcomes(failed=1, deselected=6)
    assert "canceled at point 1" in failed.stdout.str()


def test_the_command_holds_in_the_folder_in_which_pytest_was_started(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]")
    folder = pytester.mkdir("inside")
    (folder / "test_project.py").write_text(PROJECT)
    monkeypatch.chdir(folder)
    run(pytester, "-k", "lock").stdout.fnmatch_lines(["*pytest 'test_project.py::test_lock' --cancel-replay=*"])


def test_a_fixture_of_one_run_is_refused_by_name(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.cancel_everywhere
        async def test_it(nursery):
            pass
    """)
    result = pytester.runpytest("-p", "footlights_kit.plugin", *TRIO)
    result.assert_outcomes(failed=1)
    assert "the fixture nursery belongs to one run of trio" in result.stdout.str()


def test_the_plugin_brings_nothing_of_footlights(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import sys

        def test_it(request):
            assert "footlights_witness" not in request.fixturenames
            assert not [name for name in sys.modules if name.partition(".")[0] == "footlights"]
    """)
    pytester.runpytest_subprocess("-p", "footlights_kit.plugin").assert_outcomes(passed=1)
