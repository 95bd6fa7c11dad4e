"""The same evening on every Python of this machine: `make determinism`.

For each of 3.11, 3.12 and 3.13 that is on the PATH or under pyenv it makes an environment of its own in a temporary
folder, installs Footlights there with the pinned versions, plays, and compares with `golden_digests.json`. It exits
with 1 if any differs or cannot be set up, and says which were not there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

VERSIONS = ("3.11", "3.12", "3.13")
ROOT = Path(__file__).parents[4]
PROGRAM = Path(__file__).with_name("determinism.py")
GOLDEN = Path(__file__).with_name("golden_digests.json")


def candidates(version: str) -> list[str]:
    pyenv = {Path(os.environ.get("PYENV_ROOT", "-")), Path.home() / ".pyenv"}
    installed = [str(path) for root in pyenv for path in sorted(root.glob(f"versions/{version}.*/bin/python"))]
    return [*installed, f"python{version}"]


def works(python: str, version: str) -> bool:
    question = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run([python, "-c", question], capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        return False
    return answer.strip() == version


def played(python: str, folder: Path) -> object:
    """What the evening comes to in a fresh environment of this interpreter."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    inside = str(folder / "bin" / "python")
    pinned = str(ROOT / ".ci" / "constraints.txt")
    install = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", pinned, str(ROOT)]
    subprocess.run(install, check=True)
    done = subprocess.run([inside, str(PROGRAM)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)


def compare(version: str, golden: object) -> bool:
    python = next((each for each in candidates(version) if works(each, version)), None)
    if python is None:
        print(f"{version}: not here")
        return True
    with TemporaryDirectory() as folder:
        try:
            same = played(python, Path(folder)) == golden
        except subprocess.CalledProcessError as error:
            print(f"{version}: {' '.join(map(str, error.cmd[1:4]))} failed")
            return False
    print(f"{version}: {'the same digests' if same else 'OTHER DIGESTS'}")
    return same


if __name__ == "__main__":
    kept = json.loads(GOLDEN.read_text(encoding="utf-8"))
    results = [compare(version, kept) for version in VERSIONS]
    sys.exit(0 if all(results) else 1)
