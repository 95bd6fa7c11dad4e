"""Command name: what a person types to start `footlights` again."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path


def command_name() -> str:
    """`footlights`, or the path of this program if the shell would not find it by name."""
    program = Path(sys.argv[0])
    return (
        str(program.absolute()) if program.name == "footlights" and shutil.which("footlights") is None else "footlights"
    )
