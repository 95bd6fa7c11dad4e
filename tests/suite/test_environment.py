"""The environment that `make` sets up: small for running, whole for tests, and never half made.

The script is real; the venv module and pip, which it starts, are stand-ins that take no time.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

VENV_MODULE = """
import os, sys
from pathlib import Path
if "NO_VENV" in os.environ:
    sys.exit(1)
python = Path(sys.argv[1], "bin", "python")
python.parent.mkdir(parents=True)
python.write_text(os.environ["PIP"])
python.chmod(0o700)
"""
PIP = """#!/bin/sh
echo "$@" >> pip.log
echo 'Collecting everything'
echo 'WARNING: a wall of warnings' >&2
"""
NO_NETWORK = PIP + "exit 1\n"
SLOW = PIP + "echo > began; read go < go_on\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / ".ci").mkdir()
    for each in ("pyproject.toml", "Makefile", ".ci/constraints.txt", ".ci/environment.py"):
        shutil.copy2(ROOT / each, tmp_path / each)
    (tmp_path / "stand_ins").mkdir()
    (tmp_path / "stand_ins" / "venv.py").write_text(VENV_MODULE)
    return tmp_path


def start(checkout: Path, extra: str, pip: str = PIP, **environ: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, ".ci/environment.py", ".venv", extra],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": "stand_ins", "PIP": pip, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def installed(checkout: Path) -> list[str]:
    return [line.split()[-1] for line in (checkout / "pip.log").read_text().splitlines()]


def stamps(checkout: Path) -> set[str]:
    return {each.name for each in (checkout / ".venv").iterdir() if each.name != "bin"}


def test_running_installs_only_what_running_needs_and_tests_add_theirs(checkout: Path) -> None:
    shown, complaints = start(checkout, "server").communicate()
    assert [line[:3] for line in shown.splitlines()] == ["1/2", "2/2"]
    assert complaints == ""
    assert stamps(checkout) == {".ready-server"}
    shown, complaints = start(checkout, "dev").communicate()
    assert [line[:3] for line in shown.splitlines()] == ["2/2"]
    assert complaints == ""
    assert stamps(checkout) == {".ready-server", ".ready-dev"}
    assert installed(checkout) == [".[server]", ".[dev]"]


def test_what_was_installed_before_stays_ready_until_its_sources_change(checkout: Path) -> None:
    for extra in ("dev", "docs"):
        start(checkout, extra).communicate()
    assert stamps(checkout) == {".ready-server", ".ready-dev", ".ready-docs"}
    os.utime(checkout / ".venv" / ".ready-docs", (0, 0))
    os.utime(checkout / ".venv" / ".ready-dev", (0, 0))
    start(checkout, "docs").communicate()
    assert stamps(checkout) == {".ready-server", ".ready-docs"}


def test_an_installation_that_failed_says_why_and_the_next_one_goes_on(checkout: Path) -> None:
    failing = start(checkout, "server", NO_NETWORK)
    _, complaints = failing.communicate()
    assert failing.returncode == 1
    assert "WARNING: a wall of warnings" in complaints
    assert "Is there a network?" in complaints
    assert stamps(checkout) == set()
    (checkout / ".venv" / "bin" / "python").write_text(PIP)
    shown, complaints = start(checkout, "server").communicate()
    assert [line[:3] for line in shown.splitlines()] == ["2/2"]
    assert complaints == ""
    assert stamps(checkout) == {".ready-server"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_installation_that_was_interrupted_is_made_anew(
    interruptible: None, number: signal.Signals, checkout: Path
) -> None:
    for each in ("began", "go_on"):
        os.mkfifo(checkout / each)
    interrupted = start(checkout, "server", SLOW)
    (checkout / "began").read_text()
    interrupted.send_signal(number)
    (checkout / "go_on").write_text("\n")
    interrupted.communicate()
    assert stamps(checkout) == {".unfinished"}
    shown, complaints = start(checkout, "server").communicate()
    assert "The last installation was interrupted: .venv is made anew." in shown
    assert complaints == ""
    assert stamps(checkout) == {".ready-server"}


def test_a_python_that_cannot_make_environments_is_named_as_the_reason(checkout: Path) -> None:
    failing = start(checkout, "server", NO_VENV="1")
    _, complaints = failing.communicate()
    assert failing.returncode == 1
    assert "python3-venv" in complaints


def test_a_second_make_waits_for_the_first_and_has_nothing_left_to_do(checkout: Path) -> None:
    for each in ("began", "go_on"):
        os.mkfifo(checkout / each)
    first = start(checkout, "dev", SLOW)
    (checkout / "began").read_text()
    second = start(checkout, "server")
    assert second.stdout is not None
    assert second.stdout.readline() == "Another make is installing: waiting for it.\n"
    (checkout / "go_on").write_text("\n")
    assert first.wait() == second.wait() == 0
    for process in (first, second):
        process.communicate()
    assert installed(checkout) == [".[dev]"]


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
@pytest.mark.parametrize(
    ("target", "extra"),
    [("run", "server"), ("play", "server"), ("test", "dev"), ("test-fast", "dev"), ("check", "dev"), ("docs", "docs")],
)
def test_each_target_asks_for_what_it_needs(target: str, extra: str, checkout: Path) -> None:
    done = subprocess.run(["make", "--dry-run", target], cwd=checkout, capture_output=True, text=True)
    assert [line.split()[-1] for line in done.stdout.splitlines() if ".ci/environment.py" in line] == [extra]
