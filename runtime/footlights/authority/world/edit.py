"""Edits of a world: JSON Patch by path copying, within the limits of the world.

Each operation finds the object or array that it changes, changes that, and puts the result into each one around it.
Everything else is shared with the world before.
"""

# JSON values are Any here: a narrowed one would be partially unknown.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import orjson
from attrs import frozen

from footlights.authority.digest import NotCanonical, canonical, canonical_again, is_scalar
from footlights.authority.patch import Misfit, PatchFailed, index_in, tokens_of
from footlights.authority.values import MAX_DEPTH, View
from footlights.authority.world.nodes import LEAF, Ref, Value, height_of, parsed, ref_to_json
from footlights.authority.world.tree import ABSENT, count_of, cut, entries_of, found, in_order, made, put, sealed
from footlights.authority.world.views import value_of
from footlights.errors import TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from footlights.authority.patch import OpName, PatchOp
    from footlights.authority.world.tree import Key

MAX_KEY = 128
"""The most UTF-16 units of a key, because keys can be chosen so that each is one level deeper than the one before."""
MAX_SHIFTED = 4_096
"""The most items of an array that may be inserted or removed elsewhere than at its end."""
_LONG_KEY = re.compile(rb'"[^"\\]{%d,}":' % (MAX_KEY + 1))


@frozen
class WorldLimits:
    max_bytes: int
    max_depth: int


def root_of(document: object, limits: WorldLimits) -> Ref:
    """The node of a whole document, which a view shares. Raises `NotCanonical` or `TooLarge`."""
    if isinstance(document, View):
        return checked(root_in(value_of(document)), limits)
    data = canonical(document, max_depth=limits.max_depth, max_bytes=limits.max_bytes)
    return root_in(_clean(document, data))


def changed(document: Value, ops: Iterable[PatchOp], limits: WorldLimits) -> Value:
    """The document after `ops`, in order. Raises `PatchFailed` at the first that does not fit, and `TooLarge`."""
    for index, op in enumerate(ops):
        try:
            document = _OPERATIONS[op.op](document, op, limits)
        except Misfit as misfit:
            raise PatchFailed(index, op, str(misfit)) from None
        if isinstance(document, Ref):
            checked(document, limits)
    return document


def checked(root: Ref, limits: WorldLimits) -> Ref:
    """The same node. Raises `TooLarge`."""
    if root.size > limits.max_bytes:
        raise TooLarge(f"The world takes more than the {limits.max_bytes} bytes it may.")
    if root.height > limits.max_depth:
        raise TooLarge(f"The world nests deeper than the {limits.max_depth} levels it may.")
    return root


# -- values


def _value(op: PatchOp, limits: WorldLimits) -> Value:
    if is_scalar(op.value) and type(op.value) is not str:
        return op.value
    return _clean(op.value, canonical(op.value, max_depth=limits.max_depth, max_bytes=limits.max_bytes))


def _clean(value: object, data: bytes) -> Value:
    if _LONG_KEY.search(data) or b"\\" in data:
        _check_keys(value)
    return sealed(orjson.loads(data))


def _check_keys(value: Any) -> None:
    if not isinstance(value, (dict, list)):
        return
    for key, child in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(key, str):
            _check_key(key)
        _check_keys(child)


def _check_key(key: str) -> None:
    try:
        units = len(key.encode("utf-16-be")) // 2
    except UnicodeEncodeError:
        raise NotCanonical("text with a lone surrogate", "") from None
    if units > MAX_KEY:
        raise TooLarge(f"A key of the world takes more than the {MAX_KEY} UTF-16 units it may.")


def root_in(value: Value) -> Ref:
    """The node of a value, as the outermost one."""
    return value if isinstance(value, Ref) else ref_to_json(canonical_again(value), value)


def small_if_small(value: Value) -> Value:
    """A value as its parent keeps it, and as it is edited: a small one is written and hashed when all is done."""
    if isinstance(value, Ref) and isinstance(value.node, bytes) and len(value.node) <= LEAF:
        return parsed(value.node)
    return value


# -- objects and arrays: plain if they are small, nodes if they are large


def _is_array(value: Value) -> bool:
    """Raises `Misfit` for what is neither an object nor an array."""
    if isinstance(value, (dict, list)):
        return isinstance(value, list)
    if not isinstance(value, Ref) or (isinstance(value.node, bytes) and value.node[:1] not in (b"{", b"[")):
        raise Misfit("its parent is neither an object nor an array")
    return value.is_array


def child_of(parent: Value, token: str) -> Value:
    """Raises `Misfit` if there is none."""
    if _is_array(parent):
        key: Key = index_in(token, _count(parent))
        return found(parent.node, key) if isinstance(parent, Ref) else parent[key]
    child = found(parent.node, token) if isinstance(parent, Ref) else parent.get(token, ABSENT)
    if child is ABSENT:
        raise Misfit("there is no such member")
    return child


def _found(value: Value, tokens: list[str]) -> Value:
    for token in tokens:
        value = child_of(value, token)
    return value


def _count(value: Value) -> int:
    return count_of(value.node) if isinstance(value, Ref) else len(value)


def _with(parent: Value, key: Key, value: Value) -> Value:
    """With this member, or this item in place of the one there, or of none after the last."""
    if isinstance(parent, Ref):
        return put(parent.node, key, value)
    if isinstance(parent, list):
        items = [*parent]
        items[cast("int", key) : cast("int", key) + 1] = [value]
        return _array(items)
    members = {**parent, key: value}
    if not isinstance(value, Ref):
        data = canonical_again(members)
        if len(data) <= LEAF:
            return members if len(members) == len(parent) else parsed(data)  # with its keys in order
    return made(in_order(members), is_array=False)


def _array(items: list[Value]) -> Value:
    if not any(isinstance(value, Ref) for value in items) and len(canonical_again(items)) <= LEAF:
        return items
    return made(in_order(dict(enumerate(items))), is_array=True)


def _inserted(parent: Value, token: str, value: Value) -> Value:
    if not _is_array(parent):
        _check_key(token)
        return _with(parent, token, value)
    count = _count(parent)
    index = count if token == "-" else index_in(token, count + 1)
    return _with(parent, count, value) if index == count else _shifted(parent, index, index, value)


def _replaced(parent: Value, token: str, value: Value) -> Value:
    child_of(parent, token)
    return _with(parent, int(token) if _is_array(parent) else token, value)


def _without(parent: Value, token: str, _: Value) -> Value:
    child_of(parent, token)
    if not _is_array(parent):
        if isinstance(parent, Ref):
            return cut(parent.node, token) or {}
        return {key: value for key, value in parent.items() if key != token}
    index = int(token)
    if isinstance(parent, Ref) and index == _count(parent) - 1:
        return cut(parent.node, index) or []
    return _shifted(parent, index, index + 1)


def _shifted(array: Value, first: int, end: int, *values: Value) -> Value:
    """With these values in place of the items from `first` to `end`, so that all later ones move."""
    if _count(array) > MAX_SHIFTED:
        raise Misfit(f"an array of more than {MAX_SHIFTED} items changes only at its end: use an object")
    items = [value for _, value in entries_of(array.node)] if isinstance(array, Ref) else [*array]
    items[first:end] = values
    return _array(items)


# -- operations


def _edited(
    parent: Value, tokens: list[str], edit: Callable[[Value, str, Value], Value], value: Value, at: int = 0
) -> Value:
    """The document with `edit` applied to the parent of the target."""
    if not tokens:
        return value
    token = tokens[at]
    if at == len(tokens) - 1:
        return edit(parent, token, value)
    remade = _edited(child_of(parent, token), tokens, edit, value, at + 1)
    key = int(token) if _is_array(parent) else token
    return _with(parent, key, small_if_small(remade))


def _placed(
    root: Value, path: str, edit: Callable[[Value, str, Value], Value], value: Value, limits: WorldLimits
) -> Value:
    tokens = tokens_of(path)
    if len(tokens) + height_of(value) > limits.max_depth:  # now, because heights are bytes in the nodes
        raise TooLarge(f"The world would nest deeper than the {limits.max_depth} levels it may.")
    return _edited(root, tokens, edit, value)


def _do_add(root: Value, op: PatchOp, limits: WorldLimits) -> Value:
    return _placed(root, op.path, _inserted, _value(op, limits), limits)


def _do_remove(root: Value, op: PatchOp, _: WorldLimits) -> Value:
    return _removed(root, tokens_of(op.path))


def _removed(root: Value, tokens: list[str]) -> Value:
    if not tokens:
        raise Misfit("the whole document cannot be removed")
    return _edited(root, tokens, _without, None)


def _do_replace(root: Value, op: PatchOp, limits: WorldLimits) -> Value:
    return _placed(root, op.path, _replaced, _value(op, limits), limits)


def _do_move(root: Value, op: PatchOp, limits: WorldLimits) -> Value:
    source, target = tokens_of(op.from_), tokens_of(op.path)
    value = _found(root, source)
    if source == target:
        return root
    if target[: len(source)] == source:
        raise Misfit("a value cannot move into itself")
    return _placed(_removed(root, source), op.path, _inserted, small_if_small(value), limits)


def _do_copy(root: Value, op: PatchOp, limits: WorldLimits) -> Value:
    return _placed(root, op.path, _inserted, small_if_small(_found(root, tokens_of(op.from_))), limits)


def _do_test(root: Value, op: PatchOp, _: WorldLimits) -> Value:
    there = root_in(_found(root, tokens_of(op.path)))
    data = canonical(op.value, max_depth=MAX_DEPTH)
    if there.digest != root_in(sealed(orjson.loads(data))).digest:
        raise Misfit("another value is there")
    return root


_OPERATIONS: Mapping[OpName, Callable[[Value, PatchOp, WorldLimits], Value]] = {
    "add": _do_add,
    "remove": _do_remove,
    "replace": _do_replace,
    "move": _do_move,
    "copy": _do_copy,
    "test": _do_test,
}
