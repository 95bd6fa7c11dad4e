"""Difference between two values that users are shown, as JSON Patch operations that make the second of the first.

The values are views, or plain data with views in it, as the cast's `visibility` returns them. What two views share is
not visited. So a change of a large world is found in about the time of the change.
"""

# JSON values are Any here: a narrowed one would be partially unknown.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from footlights.authority import patch
from footlights.authority.values import same
from footlights.authority.world.edit import MAX_SHIFTED
from footlights.authority.world.nodes import Branch, Ref
from footlights.authority.world.tree import ABSENT, entries_of
from footlights.authority.world.views import shown, value_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights.authority.patch import PatchOp
    from footlights.authority.world.nodes import Node

_SCALARS = frozenset({str, int, float, bool, type(None)})


def difference(before: Any, after: Any, path: str) -> Iterator[PatchOp]:
    """The operations, for values at this path. Values in them are copies."""
    one, other = value_of(before), value_of(after)
    if one is other or (isinstance(one, Ref) and isinstance(other, Ref) and one.digest == other.digest):
        return
    if _begins(one, b"{", Mapping) and _begins(other, b"{", Mapping):
        yield from _in_object(one, other, path)
    elif _begins(one, b"[", Sequence) and _begins(other, b"[", Sequence):
        yield from _in_array(_items(one), _items(other), path)
    elif not same(_shown(one), _shown(other)):
        yield patch.replace(path, _shown(other))


def _in_object(before: Any, after: Any, path: str) -> Iterator[PatchOp]:
    are_nodes = isinstance(before, Ref) and isinstance(after, Ref)
    old, new = _apart(before.node, after.node) if are_nodes else (_members(before), _members(after))
    for key in sorted({*old, *new}):
        one, other = old.get(key, ABSENT), new.get(key, ABSENT)
        if type(one) is type(other) and type(one) in _SCALARS and one == other:
            continue  # most are, and need no path
        place = path + patch.path_to(key)
        if other is ABSENT:
            yield patch.remove(place)
        elif one is ABSENT:
            yield patch.add(place, _shown(other))
        else:
            yield from difference(one, other, place)


def _in_array(before: Sequence[Any], after: Sequence[Any], path: str) -> Iterator[PatchOp]:
    shorter = min(len(before), len(after))
    begin, both = 0, shorter
    if len(before) != len(after):
        begin = _common(iter(before), iter(after), shorter)
        end = _common(reversed(before), reversed(after), shorter - begin)
        if end and max(len(before), len(after)) > MAX_SHIFTED:
            yield patch.replace(path, [_shown(each) for each in after])  # a world refuses to shift so many
            return
        # Items go, or come, in one place, so that one at the front is one operation. Those before it may differ.
        both = shorter - end
        for _ in range(both, len(before) - end):
            yield patch.remove(f"{path}/{both}")
        for index in range(both, len(after) - end):
            yield patch.add(f"{path}/{index}", _shown(after[index]))
    for index in range(begin, both):
        yield from difference(before[index], after[index], f"{path}/{index}")


def _common(left: Iterator[Any], right: Iterator[Any], limit: int) -> int:
    """How many items are the same from the beginning."""
    for count, (one, other) in enumerate(islice(zip(left, right, strict=False), limit)):
        if any(True for _ in difference(one, other, "")):
            return count
    return limit


# -- values: small ones are plain, large ones in views are nodes


def _begins(value: Any, bracket: bytes, kind: type) -> bool:
    """Whether it is an object, or an array."""
    if not isinstance(value, Ref):
        return isinstance(value, kind) and not isinstance(value, str)
    return value.node[:1] == bracket if isinstance(value.node, bytes) else value.is_array == (bracket == b"[")


def _shown(value: Any) -> Any:
    return shown(value) if isinstance(value, Ref) else value


def _members(value: Any) -> dict[Any, Any]:
    return dict(entries_of(value.node) if isinstance(value, Ref) else value)


def _items(value: Any) -> Sequence[Any]:
    return [each for _, each in entries_of(value.node)] if isinstance(value, Ref) else value


def _apart(before: Node, after: Node) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """The members in which these objects can differ."""
    if not (isinstance(before, Branch) and isinstance(after, Branch) and before.skip == after.skip):
        return dict(entries_of(before)), dict(entries_of(after))
    old: dict[Any, Any] = {}
    new: dict[Any, Any] = {}
    for slot in {*before.slots, *after.slots}:
        one, other = _kid(before, slot), _kid(after, slot)
        if one is None or other is None:
            old.update(() if one is None else entries_of(one.node))
            new.update(() if other is None else entries_of(other.node))
        elif one.digest != other.digest:
            parts = _apart(one.node, other.node)
            old.update(parts[0])
            new.update(parts[1])
    return old, new


def _kid(parent: Branch, slot: str) -> Ref | None:
    place = parent.slots.find(slot)
    return None if place < 0 else parent.ref(place)
