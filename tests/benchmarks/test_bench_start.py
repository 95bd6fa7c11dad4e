"""Start suite: processes are timed in a clean environment, and failures are errors. Tests check no performance."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from suites.start.first_turn import play
from suites.start.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.benchmarks.conftest import QuickRun

AIMS = {
    ("a process that only imports", "import footlights"): 150,
    ("footlights serve", "until /healthz answers"): 1_000,
}


def test_a_quick_run_prints_and_writes_every_figure(quick_run: Callable[..., QuickRun]) -> None:
    run = quick_run("start")
    assert {(each["subject"], each["name"]): each["aim"]["bound"] for each in run.figures if each["aim"]} == AIMS
    for figure in run.figures:
        assert figure["unit"] == "ms"
        assert 0 < figure["spread"]["min"] <= figure["value"] <= figure["spread"]["max"]
    assert "round 1 of 1" in run.err


async def test_the_program_of_the_first_turn_prints_its_outcome_and_time(capsys: pytest.CaptureFixture[str]) -> None:
    await play()
    outcome, milliseconds = capsys.readouterr().out.split()
    assert outcome == "ok"
    assert float(milliseconds) >= 0


def test_a_failing_program_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="failed: raise SystemExit"):
        Runs(tmp_path).program("raise SystemExit(3)")


def test_a_timed_process_keeps_its_bytecode_in_the_folder_and_has_no_settings_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("FOOTLIGHTS_SERVER__GRACE", "7")
    found = tmp_path / "found.json"
    told = (
        "import json, os, pathlib, sys; pathlib.Path('found.json').write_text(json.dumps("
        "[sys.dont_write_bytecode, sys.pycache_prefix, sorted(n for n in os.environ if n.startswith('FOOTLIGHTS_'))]))"
    )
    assert Runs(tmp_path).program(told) > 0
    assert json.loads(found.read_text()) == [False, str(tmp_path / "bytecode"), []]
    assert any((tmp_path / "bytecode").rglob("*.pyc"))


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Runs]:
    """Makes `Runs` that start a given shell script instead of Python."""

    def make(program: str) -> Runs:
        script = tmp_path / "stand_in.sh"
        script.write_text(f"#!/bin/sh\n{program}\n")
        script.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(script))
        return Runs(tmp_path)

    return make


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        ("exit 0", "without output"),
        ("echo fail_closed 1.0", "outcome fail_closed, not ok"),
        ("echo ok 1.0; exit 1", "process of the first turn failed"),
    ],
)
def test_a_failing_first_turn_is_an_error(stand_in: Callable[[str], Runs], program: str, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        stand_in(program).first_turn()


def test_a_server_that_never_opens_is_an_error(stand_in: Callable[[str], Runs]) -> None:
    with pytest.raises(AssertionError, match="without output"):
        stand_in("echo Footlights is open.").server()
