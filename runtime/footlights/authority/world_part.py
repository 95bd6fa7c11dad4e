"""World part: what a server shows of the world at one place, with its digest and within a limit of bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import orjson
from attrs import frozen

from footlights.authority.values import View
from footlights.authority.world import digest_of, find_in, size_of_part
from footlights.errors import InvalidCommand, TooLarge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_PART_BYTES = 1_000_000
"""The most bytes of the world that are shown at once, as JSON."""


@frozen
class WorldPart:
    """A part of the world, as one user may see it."""

    value: Any
    """A view, or what the cast's `visibility` made of it."""
    digest: str | None
    """Its digest; None if something of it is hidden: what is small could be guessed from the digest of the whole."""


def part_of(whole: object, shown: object, path: str) -> WorldPart:
    """The part of `shown` at this JSON pointer. `whole` is the world without anything hidden.

    Raises `InvalidCommand` if nothing is there, and `TooLarge` if it takes more than `MAX_PART_BYTES`.
    """
    found = find_in(shown, path)
    if not found:
        raise InvalidCommand("Nothing of the world that you may see is at that path.")
    (value,) = found
    check_size(value)
    (true,) = find_in(whole, path) if isinstance(whole, View) else (None,)
    is_whole = shown is whole or (isinstance(value, View) and value == true)
    return WorldPart(value, digest_of(value) if is_whole and isinstance(whole, View) else None)


def check_size(shown: object) -> None:
    """Raises `TooLarge` for a part that takes more than `MAX_PART_BYTES`."""
    size = _size(shown)
    if size > MAX_PART_BYTES:
        raise TooLarge(
            f"That part of the world takes {size} bytes, and at most {MAX_PART_BYTES} are shown at once. Ask for a "
            "smaller part, by its path."
        )


def _size(value: object) -> int:
    """Bytes as JSON, without looking into views."""
    if isinstance(value, View):
        return size_of_part(value)
    if isinstance(value, dict):
        members = cast("Mapping[str, object]", value)
        return 2 + sum(len(key) + 4 + _size(child) for key, child in members.items())
    if isinstance(value, list):
        return 2 + sum(1 + _size(item) for item in cast("Sequence[object]", value))
    return len(orjson.dumps(value)) if isinstance(value, str | int | float | None) else 0
