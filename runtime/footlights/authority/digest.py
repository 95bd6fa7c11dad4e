"""Canonical JSON and its digest: RFC 8785, then BLAKE3.

The same value gives the same bytes in any process, under any hash seed, on any machine. A value that two readers could
interpret differently is refused, with the path to it. The canonical bytes read back as a value with the same digest.
"""

from __future__ import annotations

import re
import sys
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

import orjson
import rfc8785
from blake3 import blake3

from footlights.authority.values import MAX_DEPTH
from footlights.errors import FootlightsError, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights.events import JsonValue

MAX_SAFE_INTEGER = 2**53 - 1

_DIGEST = re.compile(r"[0-9a-f]{64}")
# orjson writes exponents in another way. The pattern begins with a letter, because `re` searches for that 20 times
# faster than for a set of digits.
_EXPONENT = re.compile(rb"e(?<=[0-9]e)[-+0-9]")
_BEYOND_BASIC_PLANE = re.compile(rb"[\xf0-\xf4]")  # the first byte of such a character in UTF-8


class NotCanonical(FootlightsError):
    """A value without a canonical form. `path` is a JSON Pointer to the part that has none."""

    code = "not_canonical"

    def __init__(self, reason: str, path: str) -> None:
        super().__init__(f"At {path!r}: {reason}.")
        self.reason = reason
        self.path = path


def canonical(value: object, *, max_depth: int = MAX_DEPTH, max_bytes: int = sys.maxsize) -> bytes:
    """The RFC 8785 form of `value`, which must consist of the plain JSON types, not of subclasses.

    Raises `NotCanonical`, or `TooLarge` if a limit is exceeded.
    """
    # For most values orjson writes exactly the bytes that RFC 8785 requires, 60 times faster than the rfc8785
    # package. They differ for some floats and for the order of keys beyond the basic plane. Both are lax about
    # types, so the value is inspected first: by a quick glance, which suffices for most values, and otherwise by a
    # survey, which finds the error and its path, or chooses between the two writers.
    data = _plainly_written(value, max_depth, max_bytes)
    if data is None:
        data = _surveyed(value, max_depth, max_bytes)
    if len(data) > max_bytes:
        raise _over(max_bytes)
    return data


def canonical_again(value: object) -> bytes:
    """The RFC 8785 form of what was read from such a form, perhaps with more members: faster, without checks."""
    data = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    if _EXPONENT.search(data) or _may_be_in_other_order(data):
        return canonical(value, max_depth=sys.maxsize)
    return data


def to_keep(data: bytes) -> bytes:
    """The same bytes in no more memory than they need. What orjson returns has 4 KB at least, 30 times a small leaf."""
    return bytes(memoryview(data))


def digest(value: object) -> str:
    """The digest of `value`, 64 hex digits. Raises the same exceptions as `canonical`."""
    return digest_bytes(canonical(value))


def digest_bytes(data: bytes) -> str:
    return blake3(data).hexdigest()


def is_digest(value: object) -> bool:
    """Whether it is a plain string of 64 hex digits."""
    return type(value) is str and _DIGEST.fullmatch(value) is not None


def is_scalar(value: object) -> bool:
    """Whether canonical JSON, if it has a form for this value, reads back as the very same: no float, and no list."""
    kind = type(value)
    if kind is int:
        return -MAX_SAFE_INTEGER <= cast("int", value) <= MAX_SAFE_INTEGER
    return value is None or kind is bool or kind is str


def _plainly_written(value: object, max_depth: int, max_bytes: int) -> bytes | None:
    """The bytes of orjson if they are certainly canonical, otherwise None."""
    try:
        if _glance((value,), max_depth, max_bytes) < 0:
            return None
        data = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # a lone surrogate, or a key that is not a string
        return None
    return None if _may_be_in_other_order(data) else data


def _may_be_in_other_order(data: bytes) -> bool:
    """orjson sorts by code point, RFC 8785 by UTF-16 unit: the same unless a key is beyond the basic plane."""
    return not data.isascii() and _BEYOND_BASIC_PLANE.search(data) is not None


def _glance(values: Iterable[Any], levels: int, bytes_left: int) -> int:
    """The bytes left after `values`; negative if they take too many, or if one of them is not plain.

    A value counts as one byte and a string as its characters, which is a lower bound. The authority plane spends most
    of its time here, so no Python function is called for a value without children.
    """
    for value in values:
        kind = type(value)  # pyright: ignore[reportUnknownVariableType]
        if kind is str:
            bytes_left -= len(value)
        elif value is None or kind is bool:
            continue
        elif kind is int:
            if not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
                return -1
        elif kind is dict or kind is list:
            if levels == 0:
                return -1
            bytes_left -= len(value)
            if kind is dict:
                bytes_left -= len("".join(value))  # faster than summing the lengths
            bytes_left = _glance(value.values() if kind is dict else value, levels - 1, bytes_left)
            if bytes_left < 0:
                return -1
        elif kind is not float or not _is_plain_float(value):
            return -1
    return bytes_left


def _is_plain_float(value: float) -> bool:
    return 1e-4 <= abs(value) <= MAX_SAFE_INTEGER and not value.is_integer()


def _surveyed(value: object, max_depth: int, max_bytes: int) -> bytes:
    survey = _Survey(max_depth, max_bytes)
    try:
        survey.visit(value, max_depth)
    except _Refused as refused:
        raise NotCanonical(refused.reason, _pointer(reversed(refused.trail))) from None
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS) if survey.plain else rfc8785.dumps(cast("JsonValue", value))


class _Survey:
    """Walks a value once: refuses what is not canonical, and decides whether orjson can write it.

    It counts bytes because a patch can copy a document into itself repeatedly: the result takes little memory, but
    writing it would not end.
    """

    __slots__ = ("bytes_left", "max_bytes", "max_depth", "plain")

    def __init__(self, max_depth: int, max_bytes: int) -> None:
        self.plain = True
        self.max_depth = max_depth
        self.max_bytes = max_bytes
        self.bytes_left = max_bytes

    def visit(self, value: object, levels: int) -> None:
        if type(value) is str:
            self._spend(len(value))
            _check_text(value)
        elif value is None or type(value) is bool:
            pass
        elif type(value) is int:
            if not -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
                raise _Refused("an integer beyond 2^53 - 1")
        elif type(value) is float:
            self._visit_float(value)
        elif type(value) is dict:
            members = cast("dict[object, object]", value)
            self._visit_keys(members)
            self._visit_children(members.items(), len(members), levels)
        elif type(value) is list:
            items = cast("list[object]", value)
            self._visit_children(enumerate(items), len(items), levels)
        else:
            raise _Refused(f"a {type(value).__name__} is not a JSON value")

    def _visit_children(self, children: Iterable[tuple[object, object]], count: int, levels: int) -> None:
        if levels == 0:
            raise TooLarge(f"A value nests deeper than the {self.max_depth} levels it may.")
        self._spend(count)
        for token, child in children:
            try:
                self.visit(child, levels - 1)
            except _Refused as refused:
                refused.trail.append(token)
                raise

    def _spend(self, size: int) -> None:
        """Count a lower bound of the written bytes: one for a value, and one for each character."""
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise _over(self.max_bytes)

    def _visit_keys(self, members: dict[object, object]) -> None:
        for key in members:
            if type(key) is not str:
                raise _Refused("a key that is not a string")
            self._spend(len(key))
            if not key.isascii():
                _check_text(key)
                # orjson sorts by code point, RFC 8785 by UTF-16 unit.
                self.plain = self.plain and max(key) <= "\uffff"

    def _visit_float(self, value: float) -> None:
        if not isfinite(value):
            raise _Refused("a number that is not finite")
        size = abs(value)
        # RFC 8785 writes these without an exponent, so they would read back as integers that are refused.
        if MAX_SAFE_INTEGER < size < 1e21:
            raise _Refused("an integer beyond 2^53 - 1")
        if size < 1e-4 or value.is_integer():
            self.plain = False


class _Refused(Exception):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.trail: list[object] = []


def _check_text(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _Refused("text with a lone surrogate") from None


def _pointer(tokens: Iterable[object]) -> str:
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in tokens)


def _over(max_bytes: int) -> TooLarge:
    return TooLarge(f"A value takes more than the {max_bytes} bytes it may.")
