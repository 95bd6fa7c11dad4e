"""Argument checks of the public API: strings, cursors, and enum members by value."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import TypeVar, cast

from footlights.errors import InvalidCommand

_E = TypeVar("_E", bound=StrEnum)
_MOST_NAMES = 20


def member(kind: type[_E], name: str, value: str) -> _E:
    """The member of `kind` with this value. Raises `InvalidCommand` with the permitted values of `name`."""
    try:
        return kind(value)
    except ValueError:
        raise InvalidCommand(f"{name} must be one of {', '.join(kind)}.") from None


def listed(names: Collection[str]) -> str:
    """Names in a sentence: those that exist, after one that does not. A long list is cut."""
    shown = ", ".join(list(names)[:_MOST_NAMES]) or "none"
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"


def check_text(name: str, value: object) -> None:
    """Raises `InvalidCommand` unless `value` is a string."""
    if not isinstance(value, str):
        raise InvalidCommand(f"{name} must be a string, and not {type(value).__name__}.")


def check_cursor(after: object, terminal_seen: object) -> None:
    """Raises `InvalidCommand` unless `after` is None or maps turn ids to ints, and `terminal_seen` holds turn ids."""
    if after is not None:
        if not isinstance(after, Mapping):
            raise InvalidCommand("after must map turn ids to the last seq that was seen of each.")
        for turn_id, seq in cast("Mapping[object, object]", after).items():
            check_text("A turn id in after", turn_id)
            if type(seq) is not int:
                raise InvalidCommand(f"A seq in after must be a whole number, and not {type(seq).__name__}.")
    if isinstance(terminal_seen, str) or not isinstance(terminal_seen, Collection):
        raise InvalidCommand("terminal_seen must be a collection of turn ids.")
    for turn_id in cast("Collection[object]", terminal_seen):
        check_text("A turn id in terminal_seen", turn_id)
