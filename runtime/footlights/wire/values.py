"""Readers of single values.

Each reader takes a value (and a type, which cattrs passes and the readers ignore), and returns the value or raises
`Unfit` with a sentence about it. Readers never convert: a string is not a number, and `true` is not 1. The exception is
an integer where a number is expected, because JSON has only one kind of number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    from enum import StrEnum

    from footlights.events import JsonValue

MAX_EXT_DEPTH = 32
"""Maximum nesting of lists and objects in `payload.ext.data`."""

MAX_INTEGER = 2**53 - 1
"""The largest integer that every JSON implementation reads exactly."""

Reader: TypeAlias = Callable[[Any, Any], Any]

_NAMESPACE = re.compile(r"ext\.[a-z0-9][a-z0-9_-]{0,63}\.[a-z0-9][a-z0-9_-]{0,63}")


class Unfit(ValueError):
    """Refusal of a value. `field` is set when an object is refused because of one of its fields."""

    def __init__(self, sentence: str, field: str | None = None) -> None:
        super().__init__(sentence)
        self.field = field


def text(value: object, _: object = None) -> str:
    if type(value) is not str:
        raise Unfit("must be a string")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Unfit("must not contain lone surrogates") from None
    return value


def name(value: object, _: object = None) -> str:
    """A string that is not empty."""
    if value == "":
        raise Unfit("must not be empty")
    return text(value)


def flag(value: object, _: object = None) -> bool:
    if type(value) is not bool:
        raise Unfit("must be true or false")
    return value


def natural(value: object, _: object = None) -> int:
    if type(value) is not int:
        raise Unfit("must be an integer")
    if not 0 <= value <= MAX_INTEGER:
        raise Unfit(f"must be between 0 and {MAX_INTEGER}")
    return value


def number(value: object, _: object = None) -> float:
    if type(value) is int and abs(value) <= MAX_INTEGER:
        return float(value)
    if type(value) is not float:
        raise Unfit("must be a number")
    if not math.isfinite(value):
        raise Unfit("must be a finite number")
    return value


def optional_fraction(value: object, _: object = None) -> float | None:
    if value is None:
        return None
    fraction = number(value)
    if not 0 <= fraction <= 1:
        raise Unfit("must be between 0 and 1")
    return fraction


def namespace(value: object, _: object = None) -> str:
    if _NAMESPACE.fullmatch(text(value)) is None:
        raise Unfit("must read ext.<publisher>.<extension>, in lower-case letters, digits, '-' and '_'")
    return cast(str, value)


def constant(expected: bool | str) -> Reader:
    sentence = f'must be "{expected}"' if isinstance(expected, str) else f"must be {str(expected).lower()}"

    def read(value: object, _: object) -> object:
        # 0 == False, so equality is not enough.
        if type(value) is not type(expected) or value != expected:
            raise Unfit(sentence)
        return expected

    return read


def member_of(kind: type[StrEnum]) -> Reader:
    members = {member.value: member for member in kind}
    sentence = f"must be one of {', '.join(members)}"

    def read(value: object, _: object) -> StrEnum:
        if not isinstance(value, str) or value not in members:
            raise Unfit(sentence)
        return members[value]

    return read


def json_value(value: object, _: object = None, *, depth: int = 0) -> JsonValue:
    """A copy of the value, so that the caller cannot change an event through the original."""
    if value is None or type(value) is bool:
        return value
    if type(value) is str:
        return text(value)
    if type(value) is int:
        if abs(value) > MAX_INTEGER:
            raise Unfit(f"must not hold integers beyond {MAX_INTEGER}")
        return value
    if type(value) is float:
        return number(value)
    if depth == MAX_EXT_DEPTH:
        raise Unfit(f"must not be nested deeper than {MAX_EXT_DEPTH} levels")
    if type(value) is list:
        return [json_value(item, depth=depth + 1) for item in cast(list[object], value)]
    if type(value) is dict:
        items = cast(dict[object, object], value).items()
        return {text(key): json_value(item, depth=depth + 1) for key, item in items}
    raise Unfit("must be plain JSON")
