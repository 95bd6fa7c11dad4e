"""Difference between two JSON documents, one line for each change.

A line names its place by a JSON Pointer. A value that was replaced is a line that begins with - and one with +.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from footlights.authority.values import same

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights.events import JsonValue


def difference(before: JsonValue, after: JsonValue, path: str = "") -> Iterator[str]:
    """The changes from the top down."""
    if same(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _in_object(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _in_array(before, after, path)
    else:
        yield _line("-", path, before)
        yield _line("+", path, after)


def _in_object(before: dict[str, JsonValue], after: dict[str, JsonValue], path: str) -> Iterator[str]:
    for key in sorted(before.keys() | after.keys()):
        place = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in after:
            yield _line("-", place, before[key])
        elif key not in before:
            yield _line("+", place, after[key])
        else:
            yield from difference(before[key], after[key], place)


def _in_array(before: list[JsonValue], after: list[JsonValue], path: str) -> Iterator[str]:
    if len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from difference(old, new, f"{path}/{index}")
        return
    # An element inserted at the front is one line, not one for each element behind it.
    start = _common(before, after)
    end = min(_common(before[::-1], after[::-1]), min(len(before), len(after)) - start)
    for index in range(start, len(before) - end):
        yield _line("-", f"{path}/{index}", before[index])
    for index in range(start, len(after) - end):
        yield _line("+", f"{path}/{index}", after[index])


def _line(sign: str, path: str, value: JsonValue) -> str:
    return f"{sign} {path or '(all)'}: {in_short(value)}"


def _common(left: list[JsonValue], right: list[JsonValue]) -> int:
    pairs = zip(left, right, strict=False)
    return next((index for index, (one, other) in enumerate(pairs) if not same(one, other)), min(len(left), len(right)))


def in_short(value: JsonValue, limit: int = 200) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
