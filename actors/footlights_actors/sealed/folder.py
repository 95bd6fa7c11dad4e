"""Folder of sealed files: one process at a time changes it, in a thread, and a file is written whole or not at all."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import trio

from footlights.notebooks.store import ContentUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

T = TypeVar("T")

FRESH = ".fresh"
"""A file that is being written anew."""
PRIVATE = 0o600
_RETRY = 0.02
"""Seconds until the lock of another process is tried again."""

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


def replace_file(path: Path, data: bytes) -> None:
    """Write a private file anew: it has all of this or what it had before. The folder must be locked."""
    fresh = path.with_suffix(FRESH)
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


async def in_thread(work: Callable[[], T], limiter: trio.CapacityLimiter, *, may_leave: bool = False) -> T:
    """Run it in a thread as soon as the folder is not locked. Raises `ContentUnavailable`."""
    while True:
        try:
            return await trio.to_thread.run_sync(work, abandon_on_cancel=may_leave, limiter=limiter)
        except BlockingIOError:
            # Wait here, where it can be canceled, and not in the thread.
            await trio.sleep(_RETRY)
        except OSError as error:
            raise ContentUnavailable(f"Kept content cannot be reached: {error.strerror}.") from None
