"""Private files: created with mode 0600, and refused when other users of the machine may read them.

The mode applies at creation, independent of the umask; an existing file keeps its mode. On Windows the mode does not
describe who may read a file, so nothing is refused there.
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
    """Create an empty file with mode 0600, unless it exists. Errors are ignored: opening the file will report them."""
    with suppress(OSError):
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


def exposure(path: Path, readers: int = GROUP_AND_OTHERS) -> str | None:
    """Advice about a file that other users may open, worded to follow its name; None for a private file.

    `readers` is the mask of mode bits that must not be set. Raises `OSError`.
    """
    if os.name != "posix" or not path.stat().st_mode & readers:
        return None
    return "which other users of this machine may open: give it the mode 600 (chmod 600)"
