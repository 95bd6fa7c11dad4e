"""Tree: a large object or array as nodes, found and changed along one path.

An entry has digits, a key or index, and a value. The shape of a tree depends only on its entries: `put` and `cut` edit
one leaf and splice each branch above it, and leave what `made` makes of the same entries.
"""

# JSON values are Any here: a narrowed one would be partially unknown.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from footlights.authority.digest import canonical_again
from footlights.authority.world.nodes import (
    LEAF,
    Branch,
    Mixed,
    Node,
    Ref,
    Value,
    branch,
    height_of,
    parsed,
    ref_to,
    ref_to_json,
    small_size,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Key: TypeAlias = "str | int"
Entry: TypeAlias = "tuple[str, Key, Value]"

_INDEX_DIGITS = 8
_END = "."
"""The digit after the last one of a key. It sorts before all others."""
ABSENT: Final = object()


def digits_of(key: Key) -> str:
    return f"{key:08x}" if isinstance(key, int) else key.encode("utf-16-be", "surrogatepass").hex()


# -- making


def sealed(value: Any) -> Value:
    """A value that was read from canonical JSON, with nodes for what is large."""
    if type(value) is str:
        if len(value) * 6 + 2 > LEAF and len(data := canonical_again(value)) > LEAF:
            return ref_to(data)
        return value
    if type(value) is dict:
        members = cast("dict[str, Any]", value)
        pairs: Iterator[tuple[Key, Any]] = iter(members.items())
    elif type(value) is list:
        pairs = enumerate(value)
    else:
        return value
    if _may_be_small(value, LEAF) >= 0 and len(canonical_again(value)) <= LEAF:
        return value
    entries: list[Entry] = []
    for key, child in pairs:
        entries.append((digits_of(key), key, sealed(child)))
    return made(entries, is_array=type(value) is list)


def _may_be_small(value: Any, left: int) -> int:
    """The bytes left of `left`, at most; negative if it is certainly larger. It stops when it knows."""
    if type(value) is str:
        return left - len(value)
    if type(value) is dict:
        left -= len("".join(value)) + 4 * len(value)
        children: Iterable[Any] = value.values()
    elif type(value) is list:
        left -= len(value)
        children = value
    else:
        return left - 1
    for child in children:
        if left < 0:
            break
        left = _may_be_small(child, left)
    return left


def made(entries: Sequence[Entry], *, is_array: bool, pos: int = 0) -> Ref:
    """The node of these entries, which are in order and share their digits before `pos`."""
    weights = [small_size(value) + _beside(key) for _, key, value in entries]
    sums = [0, *accumulate(weights)]

    def part(first: int, end: int, pos: int) -> Ref:
        if end - first == 1 or 1 + sums[end] - sums[first] <= LEAF:
            return _leaf(entries[first:end], is_array=is_array)
        lowest, highest = entries[first][0], entries[end - 1][0]
        at = pos
        while lowest[at : at + 1] == highest[at : at + 1]:
            at += 1
        slots, refs, begin = "", list[Ref](), first
        while begin < end:
            digit = entries[begin][0][at : at + 1]
            after = begin + 1
            while after < end and entries[after][0][at : at + 1] == digit:
                after += 1
            slots += digit or _END
            refs.append(part(begin, after, at + 1))
            begin = after
        return ref_to(branch(lowest[pos:at], slots, refs, is_array=is_array, count=end - first))

    return part(0, len(entries), pos)


def _beside(key: Key) -> int:
    return 1 if isinstance(key, int) else len(canonical_again(key)) + 2


def _leaf(entries: Sequence[Entry], *, is_array: bool) -> Ref:
    if is_array:
        large = {place: value for place, (_, _, value) in enumerate(entries) if isinstance(value, Ref)}
        inline: Any = [None if isinstance(value, Ref) else value for _, _, value in entries]
    else:
        large = {cast("Any", key): value for _, key, value in entries if isinstance(value, Ref)}
        inline = {key: value for _, key, value in entries if not isinstance(value, Ref)}
    data = canonical_again(inline)
    if not large:
        return ref_to_json(data, inline)
    return ref_to(Mixed(data, tuple(large), list(large.values()), floor=height_of(inline), count=len(entries)))


# -- reading


def entries_of(node: Node) -> Iterator[tuple[Key, Value]]:
    """Keys and values in order. The index of an item counts from the beginning of this node."""
    if not isinstance(node, Branch):
        yield from _leaf_entries(node)
        return
    before = 0
    below = [iter(range(len(node.kids)))]
    branches = [node]
    while below:
        place = next(below[-1], None)
        if place is None:
            below.pop()
            branches.pop()
            continue
        kid = branches[-1].kids[place]
        if isinstance(kid, Branch):
            branches.append(kid)
            below.append(iter(range(len(kid.kids))))
            continue
        for key, value in _leaf_entries(kid):
            yield (before if isinstance(key, int) else key), value
            before += 1


def _leaf_entries(leaf: bytes | Mixed) -> Iterator[tuple[Key, Value]]:
    inline = parsed(leaf if isinstance(leaf, bytes) else leaf.inline)
    if isinstance(leaf, bytes):
        yield from inline.items() if type(inline) is dict else enumerate(inline)
        return
    large = {name: leaf.ref(place) for place, name in enumerate(leaf.names)}
    if leaf.is_array:
        yield from ((place, large.get(place, value)) for place, value in enumerate(inline))
    else:
        both: dict[str, Value] = {**inline, **cast("Any", large)}
        yield from sorted(both.items(), key=_digits_of_entry)


def _digits_of_entry(entry: tuple[str, Value]) -> str:
    return digits_of(entry[0])


def count_of(node: Node) -> int:
    return len(parsed(node)) if isinstance(node, bytes) else node.count


def found(node: Node, key: Key) -> Value:
    """The value of this entry, or `ABSENT`."""
    digits, pos = digits_of(key), 0
    while isinstance(node, Branch):
        at = pos + len(node.skip)
        place = node.slots.find(digits[at : at + 1] or _END)
        if place < 0 or digits[pos:at] != node.skip:
            return ABSENT
        node, pos = node.kids[place], at + 1
    return _in_leaf(node, _name(key, pos))


def _name(key: Key, pos: int) -> Key:
    """The name of an entry in a leaf below `pos` digits: its key, or the offset of its index."""
    return key & ((1 << 4 * (_INDEX_DIGITS - pos)) - 1) if isinstance(key, int) else key


def _in_leaf(leaf: bytes | Mixed, name: Key) -> Value:
    if isinstance(leaf, Mixed):
        if name in leaf.names:
            return leaf.ref(leaf.names.index(cast("Any", name)))
        leaf = leaf.inline
    inline = parsed(leaf)
    if type(inline) is list:
        return inline[cast("int", name)] if cast("int", name) < len(inline) else ABSENT
    return inline.get(name, ABSENT)


# -- changing


def put(node: Node, key: Key, value: Value) -> Ref:
    """With this entry. An index is one of the array or the one after its last."""
    digits, pos = digits_of(key), 0
    path: list[tuple[Branch, int, int, str]] = []
    while isinstance(node, Branch):
        at = pos + len(node.skip)
        if digits[pos:at] != node.skip:
            ref, grown = _forked(node, digits[pos:], (digits, key, value)), 1
            break
        digit = digits[at : at + 1] or _END
        place, pos = node.slots.find(digit), at + 1
        if place < 0:
            place = sum(slot < digit for slot in node.slots)
            path.append((node, place, place, digit))
            ref, grown = _leaf([(digits, key, value)], is_array=node.is_array), 1
            break
        path.append((node, place, place + 1, digit))
        node = node.kids[place]
    else:
        ref, grown = _leaf_with(node, pos, key, value)
    for parent, first, end, digit in reversed(path):
        ref = _fitted(parent.spliced(first, end, digit, ref, grown))
    return ref


def _forked(node: Branch, digits: str, entry: Entry) -> Ref:
    at = 0
    while digits[at : at + 1] == node.skip[at]:
        at += 1
    old = ref_to(node.with_skip(node.skip[at + 1 :]))
    new = _leaf([entry], is_array=node.is_array)
    kids = sorted([(node.skip[at], old), (digits[at : at + 1] or _END, new)], key=lambda kid: kid[0])
    slots, refs = "".join(slot for slot, _ in kids), [ref for _, ref in kids]
    return ref_to(branch(node.skip[:at], slots, refs, is_array=node.is_array, count=node.count + 1))


def _leaf_with(leaf: bytes | Mixed, pos: int, key: Key, value: Value) -> tuple[Ref, int]:
    """The leaf with this entry, and by how many it grew."""
    name = _name(key, pos)
    if isinstance(leaf, Mixed):
        if isinstance(value, Ref) and name in leaf.names:
            return ref_to(leaf.with_ref(leaf.names.index(cast("Any", name)), value)), 0
    elif not isinstance(value, Ref):
        inline = parsed(leaf)
        if type(inline) is list:
            at = cast("int", name)
            inline = [*inline[:at], value, *inline[at + 1 :]]
        else:
            inline = {**inline, name: value}
        data = canonical_again(inline)
        if len(data) <= LEAF:
            return ref_to_json(data, inline), len(inline) - len(parsed(leaf))
    members = dict(_leaf_entries(leaf))
    grown = name not in members
    members[name] = value
    return made(in_order(members), is_array=isinstance(name, int), pos=pos), int(grown)


def in_order(members: dict[Any, Value]) -> list[Entry]:
    return sorted(((digits_of(key), key, value) for key, value in members.items()), key=_first)


def _first(entry: Entry) -> str:
    return entry[0]


def cut(node: Node, key: Key) -> Ref | None:
    """Without this entry, which exists: any member, or the last item. None if no other is left."""
    digits, pos = digits_of(key), 0
    path: list[tuple[Branch, int]] = []
    while isinstance(node, Branch):
        at = pos + len(node.skip)
        place = node.slots.index(digits[at : at + 1] or _END)
        path.append((node, place))
        node, pos = node.kids[place], at + 1
    members = dict(_leaf_entries(node))
    del members[_name(key, pos)]
    ref = made(in_order(members), is_array=isinstance(key, int), pos=pos) if members else None
    for parent, place in reversed(path):
        ref = _fitted(parent.spliced(place, place + 1, parent.slots[place], ref, -1))
    return ref


def _fitted(node: Branch) -> Ref:
    """In the one shape that its entries have, after a change of one kid."""
    if node.weight <= LEAF:
        return _leaf([("", key, value) for key, value in entries_of(node)], is_array=node.is_array)
    if len(node.kids) > 1:
        return ref_to(node)
    kid = next(iter(node.kids))
    return ref_to(kid.with_skip(node.skip + node.slots + kid.skip)) if isinstance(kid, Branch) else node.ref(0)
