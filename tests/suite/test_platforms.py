"""Platforms: every module imports where what only POSIX has is missing."""

from __future__ import annotations

import subprocess
import sys

WITHOUT_POSIX = """
import importlib, os, pkgutil, signal, sys, types

# The standard library and other packages look after themselves: they are imported as they are here.
import asyncio, multiprocessing, subprocess, tempfile
import anthropic, cryptography.fernet, httpx2, hypercorn.trio, prometheus_client, rich.live, starlette.applications
import trio.testing, trio_websocket, typer

HIDDEN = {"fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}: it is hidden.", name=name)

for name in HIDDEN:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Hide())
sys.modules["msvcrt"] = types.ModuleType("msvcrt")
sys.platform = "win32"
for module, names in {
    os: ("fchmod", "fchown", "fork", "geteuid", "getuid", "killpg", "mkfifo", "setsid", "sysconf", "O_DIRECTORY"),
    signal: ("SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2"),
}.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)

import footlights, footlights_actors, footlights_kit, footlights_transports

modules = [
    module.name
    for package in (footlights, footlights_actors, footlights_kit, footlights_transports)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.endswith("__main__")
]
for name in modules:
    importlib.import_module(name)
print(len(modules))
"""


def test_every_module_imports_without_what_only_posix_has() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_POSIX], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, (
        f"{done.stderr}\nImport what only POSIX has where it is used, under a check of sys.platform."
    )
    assert int(done.stdout) > 100
