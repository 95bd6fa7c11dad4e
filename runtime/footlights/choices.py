"""Enum members by their values, as hosts write them."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from footlights.errors import InvalidCommand

_E = TypeVar("_E", bound=StrEnum)


def member(kind: type[_E], name: str, value: str) -> _E:
    """The member of `kind` with this value. Raises `InvalidCommand` that says what `name` may be."""
    try:
        return kind(value)
    except ValueError:
        raise InvalidCommand(f"{name} must be one of {', '.join(kind)}.") from None
