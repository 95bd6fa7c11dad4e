"""JSON Schemas of the events of narrated runs, and the check of an event against its schema.

Both come from the event classes, field by field, so that they cannot disagree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, cast, get_args, get_origin, get_type_hints

import attrs

from footlights.errors import InvalidEvent
from footlights.wire import values
from footlights.wire.values import Unfit
from footlights_transports.views.dexi.pure.events import DexiEvent, seconds_of

if TYPE_CHECKING:
    from footlights.wire.values import Reader
    from footlights_transports.views.dexi.pure.events import Json

_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")


def check_event(document: object) -> DexiEvent:
    """The event that this JSON holds. Raises `InvalidEvent`, which says where and why and quotes nothing of it."""
    if not isinstance(document, Mapping):
        raise InvalidEvent("event: must be an object")
    given = dict(cast("Mapping[str, object]", document))
    name = given.get("type")
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise InvalidEvent("type: is not a type of event")
    readers = _READERS[kind]
    for field in readers:
        if field not in given:
            raise InvalidEvent(f"{field}: is missing")
    if len(given) > len(readers):
        raise InvalidEvent("event: has a field that its type does not have")
    for field, read in readers.items():
        try:
            given[field] = read(given[field], None)
        except Unfit as error:
            raise InvalidEvent(f"{field}: {error}") from None
    del given["type"]
    return kind(**cast("dict[str, Any]", given))


def dexi_schema() -> Json:
    """One JSON Schema for every event, with a definition for each type."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Dexi events",
        "description": "One event of a Dexi stream.",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in _KINDS],
        "$defs": {name: _schema(name, kind) for name, kind in _KINDS.items()},
    }


def _schema(name: str, kind: type[DexiEvent]) -> Json:
    properties: Json = {field: _form(field, hint)[0] for field, hint in _hints(kind).items()}
    return {
        "title": name,
        "description": (kind.__doc__ or "").strip(),
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _hints(kind: type[DexiEvent]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in attrs.fields(kind)}


def _form(field: str, hint: Any) -> tuple[Json, Reader]:
    """The schema of a field, and the reader that accepts the same values."""
    if field == "timestamp":
        return {"type": "string", "format": "date-time", "pattern": f"^{_TIMESTAMP.pattern}$"}, _read_timestamp
    if get_origin(hint) is Literal:
        return {"const": get_args(hint)[0]}, values.text
    if issubclass(hint, StrEnum):
        return {"enum": [member.value for member in hint]}, values.member_of(hint)
    return ({"type": "boolean"}, values.flag) if hint is bool else ({"type": "string"}, values.text)


def _read_timestamp(value: object, _: object) -> str:
    stamp = values.text(value)
    try:
        if _TIMESTAMP.fullmatch(stamp):
            seconds_of(stamp)
            return stamp
    except ValueError:
        pass
    raise Unfit("must be an ISO time in UTC, to the millisecond")


_KINDS: Mapping[str, type[DexiEvent]] = MappingProxyType(
    {attrs.fields(kind).type.default: kind for kind in get_args(DexiEvent)}
)
_READERS: Mapping[type[DexiEvent], Mapping[str, Reader]] = {
    kind: {field: _form(field, hint)[1] for field, hint in _hints(kind).items()} for kind in _KINDS.values()
}

EVENT_NAMES: tuple[str, ...] = tuple(_KINDS)
"""Every type of event, in the order of the reference."""
