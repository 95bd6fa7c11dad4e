"""Turn summaries as JSON, and JSON as turn summaries. Reading refuses whatever writing does not make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import attrs

from footlights.turn.summary import TurnSummary
from footlights.turn.timeline import Part, TurnPart
from footlights.wire import values
from footlights.wire.values import Unfit

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights.events import JsonValue

_T = TypeVar("_T")


def summary_to_json(summary: TurnSummary) -> dict[str, JsonValue]:
    """The summary with the names of its fields."""
    return attrs.asdict(summary)


def summary_from_json(value: object) -> TurnSummary:
    """Raises `Unfit`."""
    return _read(TurnSummary, value, _SUMMARY)


def _read(kind: Callable[..., _T], value: object, readers: dict[str, Callable[[object], Any]]) -> _T:
    if not isinstance(value, dict) or cast("dict[str, Any]", value).keys() != readers.keys():
        raise Unfit(f"must have the fields {', '.join(readers)}")
    fields = cast("dict[str, object]", value)
    return kind(**{name: read(fields[name]) for name, read in readers.items()})


def _or_none(read: Callable[[object], Any]) -> Callable[[object], Any]:
    return lambda value: None if value is None else read(value)


def _all(read: Callable[[object], Any]) -> Callable[[object], Any]:
    def read_all(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise Unfit("must be a list")
        return tuple(map(read, cast("list[object]", value)))

    return read_all


def _part(value: object) -> TurnPart:
    return _read(TurnPart, value, _PART)


_member = values.member_of(Part)
_PART: dict[str, Callable[[object], Any]] = {
    "part": lambda value: _member(value, None),
    "took_us": values.natural,
    "tool": _or_none(values.text),
}
_SUMMARY: dict[str, Callable[[object], Any]] = {
    "session_id": values.text,
    "turn_id": values.text,
    "outcome": values.text,
    "accepted_ms": values.natural,
    "first_token_ms": _or_none(values.natural),
    "terminal_ms": values.natural,
    "committed_ms": values.natural,
    "output_tokens": _or_none(values.natural),
    "parts": _all(_part),
    "memory_claims": _all(values.text),
}
