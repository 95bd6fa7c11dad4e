"""Bounds of the counts: one table, in `bounds.toml`, with the counts of the last accepted version.

A count may fall at any time. A count that grows fails a test until the new bound is written and explained.
"""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from suites.counts.meter import BY_PYTHON, Count

if TYPE_CHECKING:
    from collections.abc import Iterator

Counted: TypeAlias = dict[str, dict[Count, int]]
"""By the name of the workload."""
Bound: TypeAlias = int | dict[str, int]
"""A dict by version of Python where the count depends on it."""
Bounds: TypeAlias = dict[str, dict[Count, Bound]]

FILE = Path(__file__).with_name("bounds.toml")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"

_HEAD = """\
# What each of these may cost at most: what it cost when this file was last written. A count that grows fails a test.
# If that is worth it, write the new bounds and say why in the commit:
#     python -m suites.counts --write-bounds
# Bounds by the version of Python are those of the one that runs this; run it with each.
"""


def read_bounds(file: Path = FILE) -> Bounds:
    read = tomllib.loads(file.read_text(encoding="utf-8"))
    return {subject: {Count(name): bound for name, bound in table.items()} for subject, table in read.items()}


def bound_of(bounds: Bounds, subject: str, count: Count, python: str | None = None) -> int | None:
    """None if there is no bound for this version of Python."""
    bound = bounds.get(subject, {}).get(count)
    return bound.get(python or HERE) if isinstance(bound, dict) else bound


def grown(counted: Counted, bounds: Bounds) -> list[str]:
    """A sentence for each count that exceeds its bound."""
    return list(_grown(counted, bounds))


def _grown(counted: Counted, bounds: Bounds) -> Iterator[str]:
    for subject, counts in counted.items():
        for count, now in counts.items():
            bound = bound_of(bounds, subject, count)
            if bound is not None and now > bound:
                yield f"{subject}: {count} grew from {bound:,} to {now:,}."


def advice(file: Path = FILE) -> str:
    """The advice for a count that has grown."""
    return f"If this is worth it, raise the bound in {file.parent.name}/{file.name} and say why in the commit."


def write_bounds(counted: Counted, file: Path = FILE) -> None:
    """Write the counts as the new bounds. Bounds of other versions of Python stay."""
    before = read_bounds(file) if file.exists() else {}
    lines = [_HEAD]
    for subject, counts in counted.items():
        lines.append(f"\n[{json.dumps(subject)}]\n")
        for count, now in counts.items():
            old = before.get(subject, {}).get(count)
            lines.append(f"{json.dumps(count)} = {_written(count, now, old)}\n")
    file.write_text("".join(lines), encoding="utf-8")


def _written(count: Count, now: int, old: Bound | None) -> str:
    if count not in BY_PYTHON:
        return str(now)
    by_python = {**(old if isinstance(old, dict) else {}), HERE: now}
    return "{ " + ", ".join(f'"{python}" = {bound}' for python, bound in sorted(by_python.items())) + " }"
