"""The JSON Schemas of Dexi events, and the check that an event is what its schema says.

Both are made from the classes in `dexi_events`, so they cannot say different things: all properties are required, and
there are no others.
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
    from footlights_transports.views.dexi.pure.events import Json

_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
_SCHEMAS: Mapping[object, Json] = {str: {"type": "string"}, bool: {"type": "boolean"}}


def check_event(document: object) -> DexiEvent:
    """The event that this JSON is. Raises `InvalidEvent`, which says where and why and quotes nothing of it."""
    if not isinstance(document, Mapping):
        raise InvalidEvent("event: must be an object")
    fields = dict(cast("Mapping[str, object]", document))
    kind = fields.get("type")
    form = _FORMS.get(kind) if isinstance(kind, str) else None
    if form is None:
        raise InvalidEvent("type: is not a type of event")
    return form.read(fields)


class _Form:
    """What JSON must look like to be an event of one class."""

    def __init__(self, kind: type[DexiEvent]) -> None:
        self.kind = kind
        hints = get_type_hints(kind, include_extras=True)
        self.hints: dict[str, Any] = {each.name: hints[each.name] for each in attrs.fields(kind)}
        self.name: str = get_args(self.hints["type"])[0]

    def schema(self) -> Json:
        return {
            "title": self.name,
            "description": (self.kind.__doc__ or "").strip(),
            "type": "object",
            "properties": {name: self._property(name, hint) for name, hint in self.hints.items()},
            "required": list(self.hints),
            "additionalProperties": False,
        }

    def read(self, fields: dict[str, object]) -> DexiEvent:
        for name in self.hints:
            if name not in fields:
                raise InvalidEvent(f"{name}: is missing")
        if len(fields) > len(self.hints):
            raise InvalidEvent("event: has a field that its type does not have")
        given = {name: self._value(name, hint, fields[name]) for name, hint in self.hints.items() if name != "type"}
        return self.kind(**given)

    def _property(self, name: str, hint: Any) -> Json:
        if name == "timestamp":
            return {"type": "string", "format": "date-time", "pattern": f"^{_TIMESTAMP.pattern}$"}
        if get_origin(hint) is Literal:
            return {"const": get_args(hint)[0]}
        if issubclass(hint, StrEnum):
            return {"enum": [member.value for member in hint]}
        return dict(_SCHEMAS[hint])

    def _value(self, name: str, hint: Any, value: object) -> Any:
        try:
            if name == "timestamp":
                return _read_timestamp(value)
            if hint is bool:
                return values.flag(value)
            return values.text(value) if hint is str else values.member_of(hint)(value, None)
        except Unfit as error:
            raise InvalidEvent(f"{name}: {error}") from None


def _read_timestamp(value: object) -> str:
    stamp = values.text(value)
    try:
        if _TIMESTAMP.fullmatch(stamp):
            seconds_of(stamp)
            return stamp
    except ValueError:
        pass
    raise Unfit("must be an ISO time in UTC, to the millisecond")


_FORMS: Mapping[str, _Form] = MappingProxyType({form.name: form for form in map(_Form, get_args(DexiEvent))})

EVENT_NAMES: tuple[str, ...] = tuple(_FORMS)
"""Every type of event, in the order of the reference."""


def dexi_schema() -> Json:
    """One JSON Schema for every event: each type is a definition of its own."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Dexi events",
        "description": "One event of a Dexi stream.",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in _FORMS],
        "$defs": {name: form.schema() for name, form in _FORMS.items()},
    }
