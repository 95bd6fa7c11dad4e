"""Plain JSON values as the authority plane holds them: copied when they come in, shared from then on.

Nothing here or in the modules above it changes a list or a dict after it was made, so documents, operations
and records may share parts of each other. `snapshot` is what makes that safe: it is the last moment at
which somebody else can hold a reference to what we keep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.errors import TooLarge

if TYPE_CHECKING:
    from footlights.events import JsonValue

MAX_DEPTH = 200
"""No value may nest deeper, wherever it is used. Far below what the interpreter's stack could bear."""


def snapshot(value: JsonValue) -> JsonValue:
    """A copy of every list and dict in `value`. Whether the rest is JSON at all is for `canonical` to say.

    Raises `TooLarge` if it nests deeper than `MAX_DEPTH`, as a value that contains itself does.
    """
    return _copied(value, MAX_DEPTH)


def _copied(value: JsonValue, levels: int) -> JsonValue:
    if not isinstance(value, (dict, list)):
        return value
    if levels == 0:
        raise TooLarge(f"A value nests deeper than {MAX_DEPTH} levels.")
    if isinstance(value, dict):
        return {key: _copied(child, levels - 1) for key, child in value.items()}
    return [_copied(child, levels - 1) for child in value]


def same(left: JsonValue, right: JsonValue) -> bool:
    """Equality as JSON has it. Python's own would take `true` for 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(child, right[key]) for key, child in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right
