"""Nodes: the immutable parts of which a large JSON value is made, each with its digest from birth.

docs/design/world.md defines the digest. A value whose canonical JSON has at most `LEAF` bytes is plain Python. A larger
one is a `Ref` to a node:

- `bytes`, the canonical JSON of a long string, or of a few members or items that are all small;
- `Mixed`, a few members or items of which some are large;
- `Branch`, many, divided by a digit of their keys or indexes.

Nodes never change, so worlds and threads share them. Nothing may change a plain value that came out of a node.
"""

# JSON values are Any here: a narrowed one would be partially unknown.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

import orjson
from blake3 import blake3

from footlights.authority.digest import canonical_again, to_keep

if TYPE_CHECKING:
    from collections.abc import Sequence

LEAF = 1024
"""The most bytes of a small value, and of a node that is not divided further."""
DIGEST = 32
"""Bytes of a digest."""
_LARGE = 66
"""Weight of a large value: its digest as JSON."""

Node: TypeAlias = "bytes | Mixed | Branch"
Value: TypeAlias = Any
"""A small JSON value, or the `Ref` of a large one."""


class Ref(NamedTuple):
    """A node with what its parent keeps of it."""

    node: Node
    digest: bytes
    height: int
    """The levels of objects and arrays."""
    row: int = 0
    """Its row in a ledger; 0 if it has none that is known here."""

    @property
    def size(self) -> int:
        """Bytes of its canonical JSON."""
        return size_of(self.node)

    @property
    def is_array(self) -> bool:
        return self.node[:1] == b"[" if isinstance(self.node, bytes) else self.node.is_array

    @property
    def is_text(self) -> bool:
        return isinstance(self.node, bytes) and self.node[:1] == b'"'


class Mixed:
    """A few members or items of which some are large."""

    __slots__ = (
        "count", "digest", "digests", "floor", "heights", "inline", "is_array", "kids", "names", "rows", "size",
        "weight",
    )  # fmt: skip

    def __init__(
        self, inline: bytes, names: tuple[str | int, ...], refs: Sequence[Ref], *, floor: int, count: int
    ) -> None:
        self.inline: Final = to_keep(inline)
        """The small ones in canonical JSON; null in an array where a large one is."""
        self.is_array: Final = inline[:1] == b"["
        self.names: Final = names
        """The keys or offsets of the large ones, in order."""
        self.kids: Final[tuple[Node, ...]] = tuple(ref.node for ref in refs)
        self.digests: Final = b"".join(ref.digest for ref in refs)
        self.heights: Final = bytes(ref.height for ref in refs)
        self.rows: Final = [ref.row for ref in refs]
        self.floor: Final = floor
        """The height if there were no large ones."""
        self.count: Final = count
        # Of the members or items without the values of the large ones, which are null in an array.
        own = 1 if inline == b"{}" else len(inline)
        own += sum(len(canonical_again(name)) + 2 if isinstance(name, str) else -len("null") for name in names)
        self.size: Final = own + sum(map(size_of, self.kids))
        self.weight: Final = own + _LARGE * len(refs)
        self.digest: Final = hashed(self.body)

    @property
    def height(self) -> int:
        return max(self.floor, 1 + max(self.heights))

    @property
    def body(self) -> bytes:
        """The bytes that are hashed."""
        digests = {str(name): self.ref(place).digest.hex() for place, name in enumerate(self.names)}
        return b"%c[%b,%b]" % (3 if self.is_array else 1, self.inline, canonical_again(digests))

    def ref(self, place: int) -> Ref:
        digest = self.digests[place * DIGEST : (place + 1) * DIGEST]
        return Ref(self.kids[place], digest, self.heights[place], self.rows[place])

    def with_ref(self, place: int, ref: Ref) -> Mixed:
        refs = [ref if each == place else self.ref(each) for each in range(len(self.kids))]
        return Mixed(self.inline, self.names, refs, floor=self.floor, count=self.count)


class Branch:
    """Many members or items, divided by a digit of their keys or indexes."""

    __slots__ = (
        "count", "digest", "digests", "heights", "is_array", "kids", "rows", "size", "skip", "slots", "weight",
    )  # fmt: skip

    def __init__(
        self,
        skip: str,
        slots: str,
        kids: tuple[Node, ...],
        digests: bytes,
        heights: bytes,
        rows: list[int],
        *,
        is_array: bool,
        size: int,
        count: int,
        weight: int,
    ) -> None:
        self.skip: Final = skip
        self.slots: Final = slots
        self.kids: Final = kids
        self.digests: Final = digests
        self.heights: Final = heights
        self.rows: Final = rows
        """The rows of the kids in a ledger: the one thing that changes, when they are written."""
        self.is_array: Final = is_array
        self.size: Final = size
        self.count: Final = count
        self.weight: Final = weight
        self.digest: Final = hashed(self.body)

    @property
    def height(self) -> int:
        return max(self.heights)

    @property
    def body(self) -> bytes:
        """The bytes that are hashed."""
        names = f"{len(self.skip)}:{self.skip},{len(self.slots)}:{self.slots},".encode()
        head = HEAD.pack(4 if self.is_array else 2, self.size, self.count)
        return b"".join((head, names, self.heights, self.digests))

    def ref(self, place: int) -> Ref:
        digest = self.digests[place * DIGEST : (place + 1) * DIGEST]
        return Ref(self.kids[place], digest, self.heights[place], self.rows[place])

    def with_skip(self, skip: str) -> Branch:
        """The same kids under other leading digits."""
        return Branch(
            skip,
            self.slots,
            self.kids,
            self.digests,
            self.heights,
            self.rows,
            is_array=self.is_array,
            size=self.size,
            count=self.count,
            weight=self.weight,
        )

    def spliced(self, first: int, end: int, slot: str, ref: Ref | None, count: int) -> Branch:
        """With this kid, or none, in place of those from `first` to `end`, and `count` more entries."""
        size, weight = self.size, self.weight
        for gone in self.kids[first:end]:
            size -= size_of(gone) - 1
            weight -= weight_of(gone) - 1
        kids: tuple[Node, ...] = ()
        digest, height, rows = b"", b"", list[int]()
        if ref is None:
            slot = ""
        else:
            size += size_of(ref.node) - 1
            weight += weight_of(ref.node) - 1
            kids, digest, height, rows = (ref.node,), ref.digest, bytes((ref.height,)), [ref.row]
        return Branch(
            self.skip,
            self.slots[:first] + slot + self.slots[end:],
            self.kids[:first] + kids + self.kids[end:],
            self.digests[: first * DIGEST] + digest + self.digests[end * DIGEST :],
            self.heights[:first] + height + self.heights[end:],
            self.rows[:first] + rows + self.rows[end:],
            is_array=self.is_array,
            size=size,
            count=self.count + count,
            weight=weight,
        )


HEAD = struct.Struct(">BQQ")


def branch(skip: str, slots: str, refs: Sequence[Ref], *, is_array: bool, count: int) -> Branch:
    return Branch(
        skip,
        slots,
        tuple(ref.node for ref in refs),
        b"".join(ref.digest for ref in refs),
        bytes(ref.height for ref in refs),
        [ref.row for ref in refs],
        is_array=is_array,
        size=1 + sum(size_of(ref.node) - 1 for ref in refs),
        count=count,
        weight=1 + sum(weight_of(ref.node) - 1 for ref in refs),
    )


def ref_to(node: Node) -> Ref:
    """A node that was just made, with its digest and height."""
    if isinstance(node, bytes):
        return ref_to_json(node, None)
    return Ref(node, node.digest, node.height)


def ref_to_json(data: bytes, value: Value) -> Ref:
    """The same for canonical JSON and the value that it was made of, if there is one."""
    return Ref(to_keep(data), hashed(data), _levels(data, value))


def hashed(data: bytes) -> bytes:
    return blake3(data).digest()


def size_of(node: Node) -> int:
    return len(node) if isinstance(node, bytes) else node.size


def weight_of(node: Node) -> int:
    return len(node) if isinstance(node, bytes) else node.weight


parsed = cast("Any", lru_cache(2048)(orjson.loads))
"""The value of a leaf in canonical JSON. It is shared: nothing may change it."""


def _levels(data: bytes, value: Value) -> int:
    if data[:1] == b'"':
        return 0
    brackets = data.count(b"{") + data.count(b"[")
    # One bracket is the outermost; a second one may be in a text.
    return brackets if brackets < 2 else height_of(parsed(data) if value is None else value)


def height_of(value: Value) -> int:
    """The levels of objects and arrays in a value."""
    if isinstance(value, Ref):
        return value.height
    kind = type(value)
    if kind is dict:
        value = value.values()
    elif kind is not list:
        return 0
    highest = 0
    for child in value:
        if type(child) in _WITH_LEVELS:
            highest = max(highest, height_of(child))
    return 1 + highest


_WITH_LEVELS = frozenset({dict, list, Ref})


def small_size(value: Value) -> int:
    """Bytes of the canonical JSON of a value; `_LARGE` for a large one, as in a weight."""
    return _LARGE if isinstance(value, Ref) else len(canonical_again(value))
