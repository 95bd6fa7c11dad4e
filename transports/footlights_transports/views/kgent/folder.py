"""A folder that several processes change, one at a time. Nobody waits for the others in here."""

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
    def alone_in(folder: Path) -> Generator[None]:
        """Here only one process may use the folder."""
        yield
else:
    import fcntl

    @contextmanager
    def alone_in(folder: Path) -> Generator[None]:
        """While nobody else changes anything in it. What was renamed in it is on the disk at the end.

        Raises `BlockingIOError` if somebody does.
        """
        # The folder itself is locked: a file for it could not be removed, and what is erased should leave nothing.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
