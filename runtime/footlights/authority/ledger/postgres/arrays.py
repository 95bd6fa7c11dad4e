"""Arrays as PostgreSQL reads them in binary, packed by hand: a batch of 256 rows is five values.

The adapters of psycopg would look at each value.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from psycopg.adapt import Dumper
from psycopg.pq import Format

if TYPE_CHECKING:
    from collections.abc import Iterable


_HEAD = struct.Struct("!iiIii")
_SIZE = struct.Struct("!i")
_INT8 = struct.Struct("!q")
_NULL = _SIZE.pack(-1)


class _Array:
    """A packed array of one dimension."""

    __slots__ = ("packed",)
    element = 0
    """The type of the values."""

    def __init__(self, values: Iterable[bytes | None]) -> None:
        parts = [_NULL if each is None else _SIZE.pack(len(each)) + each for each in values]
        self.packed = _HEAD.pack(1 if parts else 0, 1, self.element, len(parts), 1) + b"".join(parts)
        if not parts:
            self.packed = self.packed[:12]


class Texts(_Array):
    element = 25

    def __init__(self, values: Iterable[str]) -> None:
        super().__init__(each.encode() for each in values)


class Bodies(_Array):
    element = 17


class Numbers(_Array):
    element = 20

    def __init__(self, values: Iterable[int | None]) -> None:
        super().__init__(None if each is None else _INT8.pack(each) for each in values)


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: _Array) -> bytes:
        return obj.packed


class _TextsDumper(_ArrayDumper):
    oid = 1009


class _BodiesDumper(_ArrayDumper):
    oid = 1001


class _NumbersDumper(_ArrayDumper):
    oid = 1016


DUMPERS = ((Texts, _TextsDumper), (Bodies, _BodiesDumper), (Numbers, _NumbersDumper))
