"""Private files: created for their owner alone, and refused when other users of the machine may read them.

The mode 0600 counts when a file is created, whatever the umask says. A file that exists keeps the mode that its owner
gave it. On Windows modes say nothing of readers, so nothing is refused there.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

GROUP_AND_OTHERS = stat.S_IRWXG | stat.S_IRWXO
OTHERS = stat.S_IRWXO


def create_for_owner_only(path: Path) -> None:
    """Create an empty file with mode 0600, unless it exists. Whether that failed is found out by opening it."""
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


def exposure(path: Path, readers: int = GROUP_AND_OTHERS) -> str | None:
    """What to do about a file that other users may open, to be read after its name; None if they may not.

    `readers` are the bits of the mode that must not be set. Raises `OSError`.
    """
    if os.name != "posix" or not path.stat().st_mode & readers:
        return None
    return "which other users of this machine may open: give it the mode 600 (chmod 600)"
