"""Checkpoints: the nodes of a world as numbered rows, and a world made of such rows.

A row has a number, the bytes that are hashed, and the numbers of the nodes below it, which are lower. A node that has a
row is not written again. `Checkpoint` gives the rows that a world lacks, kids first, in as many portions as its caller
likes. `Nodes` reads rows, computes every digest anew, and compares it with what the row above says.
"""

# JSON values are Any here: a narrowed one would be partially unknown.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import struct
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson

from footlights.authority.digest import canonical_again
from footlights.authority.world import JsonWorld
from footlights.authority.world.nodes import (
    HEAD,
    Branch,
    Mixed,
    Node,
    Ref,
    hashed,
    height_of,
    ref_to,
    weight_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

NodeRow: TypeAlias = tuple[int, bytes, bytes]
"""Number, hashed bytes, and the numbers of the kids, 8 bytes each."""


_ledgers = count(1)


class RowSpace:
    """The numbers of the rows of one open ledger. Nodes remember them so that no other ledger takes them for its own.

    Nodes may be shared by worlds in several ledgers, or in one that was opened again and has lost rows.
    """

    def __init__(self) -> None:
        self._base = next(_ledgers) << 48

    def remembered(self, row: int) -> int:
        return self._base + row

    def row_of(self, remembered: int) -> int:
        """The row in this ledger; 0 if it is none."""
        row = remembered - self._base
        return row if 0 < row < 1 << 48 else 0


class Checkpoint:
    """The rows that a world lacks. Rows below `first` count as lacking; new ones have the numbers from `next_id` on."""

    def __init__(self, world: JsonWorld, position: int, space: RowSpace, first: int, next_id: int) -> None:
        self.position = position
        self.digest = world.digest()
        self.first = first
        self.next_id = next_id
        self.is_first = first == next_id
        """Whether it writes all nodes, and begins a generation of rows."""
        self.root = 0
        """The row of the root; 0 until all rows were taken."""
        self._space = space
        self._path: list[tuple[Branch | Mixed | bytes, list[int]]] = []
        """The nodes on the way to the next one, each with the rows of its kids."""
        self._taken: list[tuple[list[int], int, int]] = []
        self._enter(world.root.node)

    def _enter(self, node: Node) -> None:
        self._path.append((node, [] if isinstance(node, bytes) else list(map(self._space.row_of, node.rows))))

    def take(self, limit: int) -> list[NodeRow]:
        """The next rows. Once they are durable, call `settle`."""
        rows: list[NodeRow] = []
        while not self.root and len(rows) < limit:
            node, kids = self._path[-1]
            lacking = next((place for place, row in enumerate(kids) if row < self.first), None)
            if lacking is not None:
                assert not isinstance(node, bytes)
                self._enter(node.kids[lacking])
                continue
            body = node if isinstance(node, bytes) else node.body
            rows.append((self.next_id, body, _packed(kids)))
            self._path.pop()
            self._note(self.next_id)
            self.next_id += 1
        return rows

    def _note(self, row: int) -> None:
        if not self._path:
            self.root = row
            return
        parent, kids = self._path[-1]
        place = next(place for place, each in enumerate(kids) if each < self.first)
        kids[place] = row
        assert not isinstance(parent, bytes)
        self._taken.append((parent.rows, place, row))

    def settle(self) -> None:
        """Let the nodes know the rows that were taken: now no other checkpoint writes them again."""
        for rows, place, row in self._taken:
            rows[place] = self._space.remembered(row)
        self._taken.clear()


class Nodes:
    """Nodes that were read, by their rows. Take the rows in their order, from the first of a generation on."""

    def __init__(self, space: RowSpace) -> None:
        self._space = space
        self._nodes: dict[int, tuple[Node, bytes]] = {}

    def take(self, row: NodeRow) -> None:
        """Raises `ValueError` for a row that does not fit those below it, or is no node."""
        number, body, kids = row
        try:
            refs = [self._ref(kid) for kid in _unpacked(kids)]
            node = _node(body, refs)
        except (LookupError, TypeError, AttributeError, UnicodeDecodeError, struct.error, OverflowError) as error:
            raise ValueError("it is no node") from error
        self._nodes[number] = (node, hashed(body))

    def world(self, root: int) -> JsonWorld:
        """Raises `LookupError` if there is no such row, and `ValueError` if it is no whole world."""
        ref = self._ref(root)
        node = ref.node
        if isinstance(node, bytes):
            ref = ref_to(node)
        return JsonWorld.without_limits(ref)

    def _ref(self, row: int) -> Ref:
        node, digest = self._nodes[row]
        return Ref(node, digest, 0 if isinstance(node, bytes) else node.height, self._space.remembered(row))


def _node(body: bytes, refs: Sequence[Ref]) -> Node:
    """The node of hashed bytes. Raises `ValueError` if its kids are not those that it names."""
    if body[0] > 4:
        return body
    if body[0] % 2:
        node: Branch | Mixed = _mixed(body, refs)
    else:
        node = _branch(body, refs)
    if node.body != body:
        raise ValueError("it is not what was written, or its kids are others")
    return node


def _mixed(body: bytes, refs: Sequence[Ref]) -> Mixed:
    inline, digests = orjson.loads(body[1:])
    names: list[Any] = sorted(map(int, digests)) if isinstance(inline, list) else list(digests)
    # Heights of leaves are not in this node, so they are counted.
    kids = [ref_to(ref.node)._replace(row=ref.row) for ref in refs]
    entries = len(inline) if isinstance(inline, list) else len(inline) + len(kids)
    return Mixed(canonical_again(inline), tuple(names), kids, floor=height_of(inline), count=entries)


def _branch(body: bytes, refs: Sequence[Ref]) -> Branch:
    _, size, count = HEAD.unpack_from(body)
    skip, end = _text(body, HEAD.size)
    slots, end = _text(body, end)
    digests = end + len(slots)
    return Branch(
        skip,
        slots,
        tuple(ref.node for ref in refs),
        b"".join(ref.digest for ref in refs),
        body[end:digests],
        [ref.row for ref in refs],
        is_array=body[0] == 4,
        size=size,
        count=count,
        weight=1 + sum(weight_of(ref.node) - 1 for ref in refs),
    )


def _text(body: bytes, at: int) -> tuple[str, int]:
    colon = body.index(b":", at)
    end = colon + 1 + int(body[at:colon])
    return body[colon + 1 : end].decode("ascii"), end + 1


def _packed(rows: Sequence[int]) -> bytes:
    return struct.pack(f">{len(rows)}q", *rows)


def _unpacked(kids: bytes) -> tuple[int, ...]:
    return struct.unpack(f">{len(kids) // 8}q", kids)
