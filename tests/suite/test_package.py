"""The package as a stranger gets it: built, installed with each extra outside of the checkout, and used there.

These take minutes and need a package index, so only `make test-package` runs them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import pytest

from tests.kit.pages import PAGES, examples, requirement
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.package

PROGRAMS = [page for page in PAGES if list(examples(page))]
MODULES = {
    "": ["footlights.testing", "footlights_actors.demo.tavern.cast", "footlights_transports"],
    "server": ["footlights_transports.server.serve", "footlights_transports.client.client"],
    "remote": ["footlights_actors.models.openai"],
    "anthropic": ["footlights_actors.models.anthropic", "footlights_actors.models.openai"],
    "local": ["footlights_actors.models.local.model", "xllamacpp"],
    "content": ["footlights_transports.views.kgent.store", "cryptography"],
}
"""What each extra makes importable."""
FIRST_ANSWER_SECONDS = 120
"""From `footlights new` to the first answer, on a machine where the package is installed."""


def run(folder: Path, *command: str | Path, said: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command without the variables of the checkout's environment."""
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(command, cwd=folder, input=said, capture_output=True, text=True, timeout=600, env=environ)


def succeed(folder: Path, *command: str | Path, said: str | None = None) -> str:
    done = run(folder, *command, said=said)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


@cache
def place() -> Path:
    """A folder outside of the checkout, the same for all tests of the run."""
    return Path(mkdtemp(prefix="footlights-package-"))


@pytest.fixture(scope="module", autouse=True)
def leaving_nothing() -> Iterator[None]:
    """Hundreds of megabytes are not left behind."""
    yield
    rmtree(place())


@cache
def wheel() -> Path:
    """The wheel, built from the unpacked sdist: so the sdist is complete."""
    build = (sys.executable, "-m", "hatchling", "build", "-d", place() / "dist")
    succeed(ROOT, *build, "-t", "sdist")
    (sdist,) = (place() / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(place() / "unpacked", filter="data")
    (source,) = (place() / "unpacked").iterdir()
    succeed(source, *build, "-t", "wheel")
    (built,) = (place() / "dist").glob("*.whl")
    return built


@cache
def environment(extras: frozenset[str], others: tuple[str, ...] = ()) -> Path:
    """The Python of a new environment with the wheel, its extras and nothing else."""
    venv = place() / "-".join(("venv", *sorted(extras), *others))
    succeed(place(), sys.executable, "-m", "venv", venv)
    python = venv / "bin" / "python"
    wanted = f"{wheel()}[{','.join(sorted(extras))}]" if extras else str(wheel())
    pins = ROOT / ".ci/constraints.txt"
    succeed(place(), python, "-m", "pip", "install", "--quiet", "-c", pins, wanted, *others)
    return python


@pytest.mark.parametrize("extra", MODULES)
def test_each_extra_installs_and_is_enough(extra: str) -> None:
    python = environment(frozenset({extra} - {""}))
    imports = "; ".join(f"import {each}" for each in MODULES[extra])
    where = succeed(place(), python, "-c", f"{imports}; import footlights; print(footlights.__file__)")
    assert where.startswith(str(place()))
    succeed(place(), python, "-m", "pip", "check")


@pytest.mark.parametrize("page", PROGRAMS, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_programs_of_a_page_run_with_what_it_says_it_needs(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    program = tmp_path / "program.py"
    program.write_text("\n".join(example.program for example in examples(page)), encoding="utf-8")
    succeed(tmp_path, environment(*requirement(text)), program)


def test_an_example_runs_when_it_is_copied_elsewhere(tmp_path: Path) -> None:
    name = "custom_ledger.py"
    (tmp_path / name).write_bytes((ROOT / "docs/examples" / name).read_bytes())
    succeed(tmp_path, environment(frozenset()), name)


def test_without_the_extra_the_command_says_which_one_it_needs() -> None:
    done = run(place(), environment(frozenset()).with_name("footlights"), "play")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "This needs typer: install the extra server (from a checkout: pip install '.[server]')\n"


def test_a_new_game_is_made_played_served_and_tested(tmp_path: Path) -> None:
    python = environment(frozenset({"server"}), ("pytest",))
    command = python.with_name("footlights")
    began = time.perf_counter()
    succeed(tmp_path, command, "new", "my-game")
    shown = succeed(tmp_path / "my-game", command, "play", said="Take me to the south bank\n")
    seconds = time.perf_counter() - began
    assert "  · boat: south; purse: 3\n" in shown
    print(f"from footlights new to the first answer: {seconds:.1f} s")
    assert seconds < FIRST_ANSWER_SECONDS
    assert succeed(tmp_path / "my-game", command, "serve", "--check") == "game.toml: Configuration OK.\n"
    assert "2 passed" in succeed(tmp_path / "my-game", python.with_name("pytest"), "-q")


def test_the_tavern_and_a_benchmark_come_with_the_package(tmp_path: Path) -> None:
    command = environment(frozenset({"server"}), ("pytest",)).with_name("footlights")
    assert "✓ committed c-" in succeed(tmp_path, command, "play", said="Hello\n")
    assert "Rooms: 1 of 4 let" in succeed(tmp_path, command, "run", "How many rooms are free?")
    succeed(tmp_path, command, "bench", "scenario", "tavern", "--quick")
