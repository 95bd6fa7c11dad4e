"""The wheel `footlights-kit`: the kit alone, for people without Footlights."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import requires, version
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest

from tests.kit.pages import FENCED
from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ["pytester"]

SOURCE = ROOT / "runtime/kit_wheel"
README = (SOURCE / "README.md").read_text(encoding="utf-8")
MOST_MILLISECONDS = 20
"""What the kit may add to the import of trio and trio.testing."""

IMPORT_SECONDS = """
import time, trio, trio.testing
began = time.perf_counter()
import footlights_kit
print(time.perf_counter() - began)
"""
EXPLORE = """
import trio, footlights_kit
async def scenario(): await trio.sleep(1)
print(footlights_kit.cancel_everywhere(scenario))
"""


def build(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=SOURCE, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def new_modules(python: str | Path, program: str) -> set[str]:
    """The packages outside of the standard library that a program imports beyond trio and trio.testing."""
    code = f"import sys, trio, trio.testing; before = set(sys.modules); {program}; print(*set(sys.modules) - before)"
    done = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    return {name.partition(".")[0] for name in done.stdout.split()} - sys.stdlib_module_names


def test_the_kit_imports_nothing_that_trio_does_not_need() -> None:
    needed = {re.match(r"[\w-]+", each)[0] for each in requires("trio") or ()}  # type: ignore[index]  # each has a name
    assert new_modules(sys.executable, "import footlights_kit") <= {"footlights_kit", *needed, "attr"}


def test_the_wheel_has_the_kit_and_nothing_else(tmp_path: Path) -> None:
    wheel = build(tmp_path)
    assert re.fullmatch(r"footlights_kit-[\d.]+-py3-none-any\.whl", wheel.name)
    with ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata, entries = (
            archive.read(next(name for name in archive.namelist() if name.endswith(file))).decode()
            for file in ("METADATA", "entry_points.txt")
        )
    assert re.search(r"^Version: (.*)$", metadata, re.MULTILINE)[1] == version("footlights")  # type: ignore[index]
    kit = ROOT / "runtime/footlights_kit"
    assert names == {f"footlights_kit/{each.name}" for each in (*kit.glob("*.py"), kit / "py.typed", ROOT / "LICENSE")}
    assert re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE) == [
        "trio>=0.33",
        "pytest>=9; extra == 'pytest'",
    ]
    assert "footlights_kit.plugin = footlights_kit.plugin" in entries


def test_its_readme_shows_what_its_first_program_does(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    blocks = dict(reversed(FENCED.findall(README)))
    pytester.makepyfile(test_cache=blocks["python"])
    said = pytester.runpytest("-p", "footlights_kit.plugin", "-p", "no:cacheprovider").stdout.str()
    shown = [line.removeprefix("E").strip() for line in said.splitlines()]
    for line in blocks["text failure"].splitlines():
        assert any(each.endswith(line.strip()) for each in shown), line
    assert README.index("anyio 4.16") < README.index("\n## ")


@pytest.mark.package
def test_it_is_installed_with_trio_alone_and_adds_little_to_its_import(tmp_path: Path) -> None:
    wheel = build(tmp_path / "dist")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv/bin/python"
    environ = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def run(*arguments: str) -> str:
        done = subprocess.run([python, *arguments], cwd=tmp_path, env=environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(
        "-m", "pip", "--disable-pip-version-check", "install", "-q", "-c", str(ROOT / ".ci/constraints.txt"), str(wheel)
    )
    installed = {line.partition("==")[0] for line in run("-m", "pip", "freeze").splitlines()}
    assert {"trio", "attrs", "outcome"} < {each.partition(" @")[0] for each in installed}
    assert not {"pytest", "footlights"} & installed
    assert new_modules(python, "import footlights_kit") == {"footlights_kit"}
    assert min(float(run("-c", IMPORT_SECONDS)) for _ in range(10)) * 1000 < MOST_MILLISECONDS
    assert run("-c", EXPLORE) == "9 of 9 points, 0 pairs, 3 orders, 12 runs\n"
