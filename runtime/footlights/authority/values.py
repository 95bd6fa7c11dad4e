"""JSON values of the authority plane: copied on entry, shared afterwards.

No module of the authority plane changes a list or a dict after it was made, so documents, operations and records may
share parts. `snapshot` makes that safe: the copy has no references from outside.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, cast

from footlights.errors import TooLarge

if TYPE_CHECKING:
    from footlights.events import JsonValue

MAX_DEPTH = 200
"""Maximum nesting of every value; far below the limit of the interpreter's stack."""
SCALARS = frozenset({str, int, float, bool, type(None)})


class View(ABC):
    """A read-only object or array of a world."""

    __slots__ = ()

    @abstractmethod
    def copy(self) -> JsonValue:
        """The same as plain data, which may be changed. It takes as long as the part is large."""
        ...


def snapshot(value: JsonValue) -> JsonValue:
    """A plain copy of every list, dict and view in `value`. `canonical` checks whether the leaves are JSON.

    Raises `TooLarge` if it nests deeper than `MAX_DEPTH`, as a value that contains itself does.
    """
    return value if type(value) in SCALARS else _copied(value, MAX_DEPTH)


def _copied(value: JsonValue, levels: int) -> JsonValue:
    if not isinstance(value, (dict, list)):
        return cast("View", value).copy() if isinstance(cast("object", value), View) else value
    if levels == 0:
        raise TooLarge(f"A value nests deeper than {MAX_DEPTH} levels.")
    if isinstance(value, dict):
        return {key: _copied(child, levels - 1) for key, child in value.items()}
    return [_copied(child, levels - 1) for child in value]


def same(left: JsonValue, right: JsonValue) -> bool:
    """JSON equality, in which `true` is not 1 as in Python."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(child, right[key]) for key, child in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right
