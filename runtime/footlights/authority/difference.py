"""Difference between two values that users are shown, as JSON Patch operations that make the second of the first.

The values are views, or plain data with views in it, as the cast's `visibility` returns them. What two views share is
not visited. So a change of a large world is found in about the time of the change.
"""

# JSON values are Any here: a narrowed one would be partially unknown.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from footlights.authority import patch
from footlights.authority.values import View, same
from footlights.authority.world.edit import MAX_SHIFTED
from footlights.authority.world.nodes import Branch, Ref
from footlights.authority.world.tree import entries_of
from footlights.authority.world.views import ObjectView, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights.authority.patch import PatchOp
    from footlights.authority.world.nodes import Node
    from footlights.events import JsonValue


def difference(before: Any, after: Any, path: str) -> Iterator[PatchOp]:
    """The operations, for values at this path. Values in them are copies."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _in_object(before, after, path)
    elif _is_array(before) and _is_array(after):
        yield from _in_array(before, after, path)
    elif not same(before, after):
        yield patch.replace(path, after)


def _in_object(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[PatchOp]:
    old, new = _members(before, after)
    for key in sorted({*old, *new}):
        place = path + patch.path_to(key)
        if key not in new:
            yield patch.remove(place)
        elif key not in old:
            yield patch.add(place, new[key])
        else:
            yield from difference(old[key], new[key], place)


def _in_array(before: Sequence[Any], after: Sequence[Any], path: str) -> Iterator[PatchOp]:
    if isinstance(before, View) and before == after:
        return
    shorter = min(len(before), len(after))
    begin, both = 0, shorter
    if len(before) != len(after):
        begin = _common(iter(before), iter(after), shorter)
        end = _common(reversed(before), reversed(after), shorter - begin)
        if end and max(len(before), len(after)) > MAX_SHIFTED:
            yield patch.replace(path, cast("JsonValue", after))  # a world refuses to shift so many
            return
        # Items go, or come, in one place, so that one at the front is one operation. Those before it may differ.
        both = shorter - end
        for _ in range(both, len(before) - end):
            yield patch.remove(f"{path}/{both}")
        for index in range(both, len(after) - end):
            yield patch.add(f"{path}/{index}", after[index])
    for index in range(begin, both):
        yield from difference(before[index], after[index], f"{path}/{index}")


def _common(left: Iterator[Any], right: Iterator[Any], limit: int) -> int:
    """How many items are the same from the beginning."""
    for count, (one, other) in enumerate(islice(zip(left, right, strict=False), limit)):
        if not same(one, other):
            return count
    return limit


def _is_array(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


# -- members that can differ


def _members(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    if isinstance(before, ObjectView) and isinstance(after, ObjectView):
        if before == after:
            return {}, {}
        if isinstance(before.value, Ref) and isinstance(after.value, Ref):
            old, new = _apart(before.value.node, after.value.node)
            return {key: shown(each) for key, each in old.items()}, {key: shown(each) for key, each in new.items()}
    return before, after


def _apart(before: Node, after: Node) -> tuple[dict[Any, Any], dict[Any, Any]]:
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
