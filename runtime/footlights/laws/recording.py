"""Recordings as text: one JSON object per line. A line of a trace counts as the event that it was made from.

The standard library parses them here, not orjson, because it can detect duplicate fields.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NoReturn

from footlights.errors import InvalidEvent
from footlights.laws.checker import Checker
from footlights.laws.law_texts import Violation
from footlights.wire.trace import from_trace, is_trace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping


def check_jsonl(
    lines: Iterable[str | bytes],
    *,
    after: Mapping[str, int] | None = None,
    canceled: Collection[str] = (),
    complete: bool = True,
) -> list[Violation]:
    """`check` for a recording or a trace with one event per line. A malformed line is a violation too."""
    checker = _LineChecker(after=after, canceled=canceled)
    for number, line in enumerate(lines, start=1):
        checker.see_line(number, line)
    if complete:
        checker.close()
    return checker.violations


class _LineChecker(Checker):
    def see_line(self, number: int, line: str | bytes) -> None:
        try:
            recorded = parse_line(line)
        except (ValueError, RecursionError) as error:
            self.violations.append(Violation("json", None, None, None, f"line {number}: {parse_fault(error)}"))
        else:
            self._see_parsed(recorded)

    def _see_parsed(self, recorded: object) -> None:
        try:
            event = from_trace(recorded) if is_trace(recorded) else recorded
        except InvalidEvent as error:
            self._see_unfit(recorded, str(error))
        else:
            self.see(event)


class _Unfit(ValueError):
    pass


def parse_line(line: str | bytes) -> object:
    """The JSON value in a line. Raises `ValueError` or `RecursionError`; `parse_fault` words it without a quotation."""
    return json.loads(line, object_pairs_hook=_unique, parse_constant=_no_constant)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise _Unfit("an object names a field twice")
    return fields


def _no_constant(_: str) -> NoReturn:
    raise _Unfit("has a number that JSON does not know")


def parse_fault(error: ValueError | RecursionError) -> str:
    """The reason why a line could not be parsed."""
    # The message of the standard library quotes the line, which may contain a player's text.
    return str(error) if isinstance(error, _Unfit) else "is not valid JSON"
