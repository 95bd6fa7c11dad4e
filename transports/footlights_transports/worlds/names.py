"""World names: what a name may be, and where it stands in an address. Pure.

/v1                the main world
/w/harbour/v1      the world named harbour
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from footlights_transports.errors import InvalidWorld

if TYPE_CHECKING:
    from pathlib import Path

MAIN = "main"
"""The world of an address that names none."""
PREFIX = "/w/"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
RULE = "1 to 63 lower-case letters, digits, _ or -, and begins with a letter or a digit"


def is_world_name(name: object) -> bool:
    """Whether a world may be called that: a name is also that of a file, and a key in a map."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def split_address(path: str) -> tuple[str, str]:
    """The name of the world in the path of a request, and the path within that world. Raises `InvalidWorld`."""
    if not path.startswith(PREFIX):
        return MAIN, path
    name, slash, rest = path.removeprefix(PREFIX).partition("/")
    if not is_world_name(name):
        raise InvalidWorld(f"The name of a world has {RULE}.")
    return name, slash + rest


def folder_of_world(folder: Path, name: str) -> Path:
    """Where what a view keeps of a world beside the main one is, if what it keeps of the main one is in `folder`."""
    return folder.with_name(f"{folder.name}.worlds") / name


def check_pattern(pattern: str) -> bool:
    """Whether this is a name of a world, or the beginning of one and a star."""
    return pattern == "*" or is_world_name(pattern.removesuffix("*"))


def matching(name: str, patterns: list[str]) -> str | None:
    """The pattern that fits best: the name itself, or else the longest one with a star."""
    if name in patterns:
        return name
    starred = [each for each in patterns if each.endswith("*") and name.startswith(each[:-1])]
    return max(starred, key=len, default=None)
