"""The same evening gives the same digests: in other processes, under other hash seeds, with other Pythons.

`golden_digests.json` is committed, so machines that never met each other compare with the same file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import pytest

from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = Path(__file__).with_name("determinism.py")
GOLDEN: dict[str, Any] = json.loads(Path(__file__).with_name("golden_digests.json").read_text(encoding="utf-8"))

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
SOURCES = os.pathsep.join(str(ROOT / name) for name in ("runtime", "actors"))
DEPENDENCIES = "import attrs, blake3, cattrs, orjson, rfc8785, trio"


def _played(python: str, hash_seed: str) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": SOURCES}
    done = subprocess.run([python, str(PROGRAM)], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    played: dict[str, Any] = json.loads(done.stdout)
    return played


@pytest.mark.parametrize("hash_seed", ["0", "1", "271828", "random"])
def test_every_process_comes_to_the_digests_that_are_kept(hash_seed: str) -> None:
    assert _played(sys.executable, hash_seed) == GOLDEN


@pytest.mark.parametrize("version", [each for each in ("3.11", "3.12", "3.13") if each != HERE])
def test_every_python_comes_to_the_digests_that_are_kept(version: str) -> None:
    python = next((each for each in _pythons(version) if _has_dependencies(each)), None)
    if python is None:
        pytest.skip(f"No Python {version} here has what Footlights needs; `determinism_everywhere.py` makes one.")
    assert _played(python, "0") == GOLDEN


def _pythons(version: str) -> Iterator[str]:
    if found := which(f"python{version}"):
        yield found
    for folder in (Path(os.environ.get("PYENV_ROOT", "-")), Path.home() / ".pyenv"):
        yield from map(str, sorted(folder.glob(f"versions/{version}.*/bin/python")))


def _has_dependencies(python: str) -> bool:
    return not subprocess.run([python, "-c", DEPENDENCIES], capture_output=True, check=False).returncode


def test_the_evening_has_something_of_everything() -> None:
    decided = {commit["decided"] for commit in GOLDEN["commits"]}
    assert decided == {"ok", "fail_closed turn_interrupted", "fail_closed out_of_stock"}
    epochs = {commit["turn"].partition("-")[0] for commit in GOLDEN["commits"]}
    assert epochs == {"t1", "t2"}
    digests = [commit["commit"] for commit in GOLDEN["commits"]]
    assert len(set(digests)) == len(digests) == 19
