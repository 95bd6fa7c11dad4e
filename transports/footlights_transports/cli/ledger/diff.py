"""Difference between two views of worlds, one line for each change. It does not look at what both share.

A line names its place by a JSON Pointer. A value that was replaced is a line that begins with - and one with +.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from footlights.authority.values import View, same
from footlights.authority.world import plain_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    _Object: TypeAlias = Mapping[str, Any]


def difference(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """The changes from the top down."""
    if same_value(before, after):
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _in_object(cast("_Object", before), cast("_Object", after), path)
    elif isinstance(before, Sequence) and isinstance(after, Sequence) and not isinstance(before, str):
        yield from _in_array(before, after, path)  # pyright: ignore[reportUnknownArgumentType] - narrowed from Any
    else:
        yield _line("-", path, before)
        yield _line("+", path, after)


def _in_object(before: _Object, after: _Object, path: str) -> Iterator[str]:
    for key in sorted({*before, *after}):
        place = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in after:
            yield _line("-", place, before[key])
        elif key not in before:
            yield _line("+", place, after[key])
        else:
            yield from difference(before[key], after[key], place)


def _in_array(before: Sequence[Any], after: Sequence[Any], path: str) -> Iterator[str]:
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


def same_value(before: Any, after: Any) -> bool:
    return before == after if isinstance(before, View) else same(before, after)


def _line(sign: str, path: str, value: Any) -> str:
    return f"{sign} {path or '(all)'}: {in_short(value)}"


def _common(left: Sequence[Any], right: Sequence[Any]) -> int:
    pairs = zip(left, right, strict=False)
    return next(
        (index for index, (one, other) in enumerate(pairs) if not same_value(one, other)), min(len(left), len(right))
    )


def in_short(value: Any, limit: int = 200) -> str:
    text = json.dumps(value, ensure_ascii=False, default=plain_view)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
