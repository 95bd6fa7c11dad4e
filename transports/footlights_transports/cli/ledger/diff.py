"""What is different between two JSON documents, in lines that a person reads.

A line names the place by its JSON Pointer, so a document of any size is as long to read as its changes are many.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from attrs import frozen

from footlights.authority.values import same

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights.events import JsonValue


@frozen
class Gone:
    """A value that is no longer there."""

    path: str
    value: JsonValue

    def __str__(self) -> str:
        return f"- {self.path or '(all)'}: {in_short(self.value)}"


@frozen
class Come:
    """A value that was not there before."""

    path: str
    value: JsonValue

    def __str__(self) -> str:
        return f"+ {self.path or '(all)'}: {in_short(self.value)}"


def difference(before: JsonValue, after: JsonValue, path: str = "") -> Iterator[Gone | Come]:
    """What is gone and what has come, from the top down. A value that was replaced is both."""
    if same(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _in_object(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _in_array(before, after, path)
    else:
        yield Gone(path, before)
        yield Come(path, after)


def _in_object(before: dict[str, JsonValue], after: dict[str, JsonValue], path: str) -> Iterator[Gone | Come]:
    for key in sorted(before.keys() | after.keys()):
        place = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in after:
            yield Gone(place, before[key])
        elif key not in before:
            yield Come(place, after[key])
        else:
            yield from difference(before[key], after[key], place)


def _in_array(before: list[JsonValue], after: list[JsonValue], path: str) -> Iterator[Gone | Come]:
    if len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from difference(old, new, f"{path}/{index}")
        return
    # One element put in front is one line, and not as many as there are elements behind it.
    start = _common(before, after)
    end = min(_common(before[::-1], after[::-1]), min(len(before), len(after)) - start)
    for index in range(start, len(before) - end):
        yield Gone(f"{path}/{index}", before[index])
    for index in range(start, len(after) - end):
        yield Come(f"{path}/{index}", after[index])


def _common(left: list[JsonValue], right: list[JsonValue]) -> int:
    pairs = zip(left, right, strict=False)
    return next((index for index, (one, other) in enumerate(pairs) if not same(one, other)), min(len(left), len(right)))


def in_short(value: JsonValue, limit: int = 200) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
