"""llama.cpp's own server with real weights, in another process."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.kit.paths import ROOT

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path


@contextmanager
def open_real_server(weights: Path, key: str) -> Generator[str]:
    """The address of a server with one slot, which requires the key."""
    command = [sys.executable, str(ROOT / "tests/kit/models/chat_server.py"), str(weights)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{key}\n")
        process.stdin.flush()
        yield process.stdout.readline().strip()
        process.stdin.close()
        process.kill()
