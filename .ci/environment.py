"""Environment of a checkout: `.venv` with the pinned versions of what running needs (`server`), or everything (`dev`).

`make` calls it. It shows each step, one process at a time installs, and an interrupted installation is made anew.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = ("pyproject.toml", ".ci/constraints.txt", ".ci/environment.py")
CONTENTS = {
    "server": "what running needs: 80 MB, about 20 seconds if pip has it in its cache",
    "docs": "what the docs site needs: 130 MB, about 20 seconds if pip has it in its cache",
    "dev": "what tests and checks need: 800 MB, about a minute if pip has it in its cache",
}
NO_VENV = """\
This Python cannot make environments: its venv module is missing or broken.
Debian and Ubuntu have it in the package python3-venv. Or use another Python: make PYTHON=python3.12 ..."""
NO_PACKAGES = """\
The packages could not be installed; the reason stands above. Is there a network?
Run make again to go on: what has been downloaded is kept."""


def make(venv: Path, extra: str) -> None:
    """Bring `venv` up to date for `extra`, and leave a stamp that says so. Exits with a reason if it cannot."""
    unfinished = venv / ".unfinished"
    if unfinished.exists():
        show(f"The last installation was interrupted: {venv} is made anew.")
        for each in venv.iterdir():
            if each != unfinished:
                shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
    venv.mkdir(exist_ok=True)
    unfinished.touch()
    stamps = {"server", extra, *(name for name in CONTENTS if is_ready(venv, name))}  # pip takes nothing away
    for each in venv.glob(".ready-*"):
        each.unlink()
    python = venv / "bin" / "python"
    if not python.exists():
        show(f"1/2 Making the environment {venv} with Python {sys.version.split()[0]}.")
        if subprocess.run([sys.executable, "-m", "venv", venv]).returncode:
            sys.exit(NO_VENV)
    show(f"2/2 Installing {CONTENTS[extra]}.")
    is_installed = install(python, extra)
    unfinished.unlink()  # also if it failed: pip leaves nothing half done unless it is killed
    if not is_installed:
        sys.exit(NO_PACKAGES)
    for name in stamps:
        (venv / f".ready-{name}").touch()


def install(python: Path, extra: str) -> bool:
    """Install; pip's steps are shown in one line at a terminal, its complaints only if it fails."""
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--progress-bar=off"]
    command += ["-c", ".ci/constraints.txt", "-e", f".[{extra}]"]
    with tempfile.TemporaryFile("w+") as complaints:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints, text=True) as pip:
            for line in pip.stdout or ():
                if sys.stdout.isatty():
                    print(f"\r\033[K    {line.strip()[:70]}", end="", flush=True)
        if sys.stdout.isatty():
            print("\r\033[K", end="", flush=True)
        if pip.returncode:
            complaints.seek(0)
            sys.stderr.write(complaints.read())
    return not pip.returncode


def is_ready(venv: Path, extra: str) -> bool:
    """Whether another process has done it already."""
    stamp = venv / f".ready-{extra}"
    return stamp.exists() and all(stamp.stat().st_mtime >= Path(each).stat().st_mtime for each in SOURCES)


def show(step: str) -> None:
    print(step, flush=True)


if __name__ == "__main__":
    with Path("pyproject.toml").open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            show("Another make is installing: waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            if not is_ready(Path(sys.argv[1]), sys.argv[2]):
                make(Path(sys.argv[1]), sys.argv[2])
        except KeyboardInterrupt:
            sys.exit(130)
