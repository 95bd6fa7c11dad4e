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
    hashed,
    height_of,
    ref_to,
    weight_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
        self._path: list[tuple[Branch | Mixed, int, list[int], Iterator[int]]] = []
        """The nodes on the way to the next: each with its place, the rows of its kids, and the places that lack one."""
        self._taken: list[tuple[list[int], int, int]] = []
        self._top = world.root.node

    def take(self, limit: int) -> list[NodeRow]:
        """The next rows. Once they are durable, call `settle`."""
        rows: list[NodeRow] = []
        while not self.root and len(rows) < limit:
            node, at = self._top, 0
            if self._path:
                parent, place, kids, lacking = self._path[-1]
                at = next(lacking, -1)
                if at < 0:
                    self._path.pop()
                    rows.append((self.next_id, parent.body, _packed(kids)))
                    self._note(place)
                    continue
                node = parent.kids[at]
            if isinstance(node, bytes):
                rows.append((self.next_id, node, b""))
                self._note(at)
            else:
                kids = list(map(self._space.row_of, node.rows))
                lacking = iter([place for place, row in enumerate(kids) if row < self.first])
                self._path.append((node, at, kids, lacking))
        return rows

    def _note(self, place: int) -> None:
        """Give the number of the row that was taken to the node above it."""
        if self._path:
            parent, _, kids, _ = self._path[-1]
            kids[place] = self.next_id
            self._taken.append((parent.rows, place, self.next_id))
        else:
            self.root = self.next_id
        self.next_id += 1

    def settle(self) -> None:
        """Let the nodes know the rows that were taken: now no other checkpoint writes them again."""
        for rows, place, row in self._taken:
            rows[place] = self._space.remembered(row)
        self._taken.clear()


class Nodes:
    """Nodes that were read, by their rows. Take the rows in their order, from the first of a generation on."""

    def __init__(self, space: RowSpace) -> None:
        self._space = space
        # Two dicts instead of one with pairs, which the garbage collector would visit.
        self._nodes: dict[int, Node] = {}
        self._digests: dict[int, bytes] = {}

    def take(self, row: NodeRow) -> None:
        """Raises `ValueError` for a row that does not fit those below it, or is no node."""
        number, body, kids = row
        try:
            if body[0] > 4 and kids == b"":
                self._nodes[number], self._digests[number] = body, hashed(body)
                return
            rows = _unpacked(kids)
            nodes, digests = [self._nodes[kid] for kid in rows], [self._digests[kid] for kid in rows]
            make = _mixed if body[0] % 2 else _branch
            node = make(body, nodes, digests, [*map(self._space.remembered, rows)])
        except (LookupError, TypeError, AttributeError, UnicodeDecodeError, struct.error, OverflowError) as error:
            raise ValueError("it is no node") from error
        if node.body != body:
            raise ValueError("it is not what was written, or its kids are others")
        self._nodes[number], self._digests[number] = node, node.digest

    def world(self, root: int) -> JsonWorld:
        """Raises `LookupError` if there is no such row, and `ValueError` if it is no whole world."""
        return JsonWorld.without_limits(ref_to(self._nodes[root])._replace(row=self._space.remembered(root)))


def _mixed(body: bytes, kids: Sequence[Node], _: Sequence[bytes], rows: Sequence[int]) -> Mixed:
    inline, digests = orjson.loads(body[1:])
    names: list[Any] = sorted(map(int, digests)) if isinstance(inline, list) else list(digests)
    # Heights of leaves are not in this node, so they are counted.
    refs = [ref_to(node)._replace(row=row) for node, row in zip(kids, rows, strict=True)]
    entries = len(inline) if isinstance(inline, list) else len(inline) + len(refs)
    return Mixed(canonical_again(inline), tuple(names), refs, floor=height_of(inline), count=entries)


def _branch(body: bytes, kids: Sequence[Node], digests: Sequence[bytes], rows: list[int]) -> Branch:
    _, size, count = HEAD.unpack_from(body)
    skip, end = _text(body, HEAD.size)
    slots, end = _text(body, end)
    return Branch(
        skip,
        slots,
        tuple(kids),
        b"".join(digests),
        body[end : end + len(slots)],
        rows,
        is_array=body[0] == 4,
        size=size,
        count=count,
        weight=1 - len(kids) + sum(map(weight_of, kids)),
    )


def _text(body: bytes, at: int) -> tuple[str, int]:
    colon = body.index(b":", at)
    end = colon + 1 + int(body[at:colon])
    return body[colon + 1 : end].decode("ascii"), end + 1


def _packed(rows: Sequence[int]) -> bytes:
    return struct.pack(f">{len(rows)}q", *rows)


def _unpacked(kids: bytes) -> tuple[int, ...]:
    return struct.unpack(f">{len(kids) // 8}q", kids)
