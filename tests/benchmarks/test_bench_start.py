"""The harness times what it says it times. How long that takes is a benchmark's matter, never a test's."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from footlights_bench.start.first_turn import play
from footlights_bench.start.runs import Runs
from tests.kit.command import footlights

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

AIMS = {
    ("a process that only imports", "import footlights"): 150,
    ("footlights serve", "until /healthz answers"): 1_000,
}


def test_a_quick_run_prints_and_writes_every_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "start.json"
    assert footlights(monkeypatch, "bench", "start", "--quick", "--json", str(path)) == 0
    printed = capsys.readouterr()
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["bench"] == "start"
    figures = written["figures"]
    assert {(each["subject"], each["name"]): each["aim"]["bound"] for each in figures if each["aim"]} == AIMS
    for figure in figures:
        assert figure["unit"] == "ms"
        assert 0 < figure["spread"]["min"] <= figure["value"] <= figure["spread"]["max"]
        assert figure["name"] in printed.out
    assert "round 1 of 1" in printed.err


async def test_the_first_turn_is_committed_as_it_should_be(capsys: pytest.CaptureFixture[str]) -> None:
    await play()
    outcome, milliseconds = capsys.readouterr().out.split()
    assert outcome == "ok"
    assert float(milliseconds) >= 0


def test_a_program_that_fails_is_no_measurement(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="failed: raise SystemExit"):
        Runs(tmp_path).program("raise SystemExit(3)")


def test_what_runs_is_compiled_in_the_folder_and_has_no_settings_of_the_user(
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
    """Runs of another program, whatever is asked for."""

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
def test_a_first_turn_that_goes_wrong_is_no_measurement(
    stand_in: Callable[[str], Runs], program: str, complaint: str
) -> None:
    with pytest.raises(AssertionError, match=complaint):
        stand_in(program).first_turn()


def test_a_server_that_never_opens_is_no_measurement(stand_in: Callable[[str], Runs]) -> None:
    with pytest.raises(AssertionError, match="without output"):
        stand_in("echo Footlights is open.").server()
