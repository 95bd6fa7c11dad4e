"""Folder lock: one process at a time changes a folder."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

if sys.platform == "win32":  # pragma: no cover

    @contextmanager
    def locked(folder: Path) -> Generator[None]:
        """No lock on this platform: only one process may use the folder."""
        yield
else:
    import fcntl

    @contextmanager
    def locked(folder: Path) -> Generator[None]:
        """Hold the lock; at the end, renamed files are on the disk. Raises `BlockingIOError` if another holds it."""
        # The folder itself is locked: a lock file could not be removed, and erasing should leave nothing behind.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
