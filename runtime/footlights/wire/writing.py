"""Writers from events to JSON.

Most events are token deltas, so nothing here validates, and cattrs builds one flat function for each payload class
when this module is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs
import orjson
from cattrs import Converter, override

# cattrs leaves the type argument of attrs.Attribute open.
from cattrs.gen import make_dict_unstructure_fn_from_attrs  # pyright: ignore[reportUnknownVariableType]

from footlights.errors import InvalidEvent
from footlights.events import PAYLOAD_TYPES, Ext, Issue, Payload, StreamEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def to_wire(event: StreamEvent) -> dict[str, Any]:
    """The event as plain JSON values, in the order of the envelope. The data of `ext` is shared, not copied."""
    payload = event.payload
    wire: dict[str, Any] = {
        "schema_v": event.schema_v,
        "session_id": event.session_id,
        "turn_id": event.turn_id,
        "seq": event.seq,
        "mono_ts_ms": event.mono_ts_ms,
        "event_type": event.event_type.value,
        "payload": _PAYLOAD_WRITERS[type(payload)](payload),
    }
    if event.wall_ts is not None:
        wire["wall_ts"] = event.wall_ts
    return wire


def encode(event: StreamEvent) -> bytes:
    """The event as one JSON object on one line. Raises InvalidEvent for a value that JSON cannot represent."""
    try:
        return orjson.dumps(to_wire(event))
    except orjson.JSONEncodeError:
        raise InvalidEvent("event: must hold nothing that JSON cannot say") from None


def payload_to_wire(payload: Payload) -> dict[str, Any]:
    """The payload as plain JSON values. Raises InvalidEvent if its class is not part of v1."""
    writer = _PAYLOAD_WRITERS.get(type(payload))
    if writer is None:
        raise InvalidEvent("payload: must be one of the payloads of v1")
    return writer(payload)


def payload_size(payload: Payload) -> int:
    """Size of a payload as JSON, in bytes."""
    try:
        return len(orjson.dumps(payload_to_wire(payload)))
    except orjson.JSONEncodeError:
        raise InvalidEvent("payload: must hold nothing that JSON cannot say") from None


def _writer(kind: type[Any]) -> Callable[[Any], dict[str, Any]]:
    """A writer that puts the fields of the class first and the common fields last, and omits absent values."""
    attributes: list[attrs.Attribute[Any]] = list(attrs.fields(attrs.resolve_types(kind)))
    unsaid: dict[str, Any] = {
        each.name: override(omit_if_default=True)
        for each in attributes
        if each.default is None or each.name in _COMMON | ONLY_IF_TRUE
    }
    return make_dict_unstructure_fn_from_attrs(
        [each for each in attributes if each.name not in _COMMON]
        + [each for each in attributes if each.name in _COMMON],
        kind,
        _converter,
        **unsaid,
    )


def _write_ext(ext: Ext) -> dict[str, Any]:
    return {"namespace": ext.namespace, "data": ext.data}


_COMMON = frozenset(each.name for each in attrs.fields(Payload))
ONLY_IF_TRUE = frozenset({"cut", "text_forgotten", "awaits_approval"})
"""Flags that are written only when they are true."""

_converter = Converter()
_converter.register_unstructure_hook(Ext, _write_ext)
_converter.register_unstructure_hook(Issue, _writer(Issue))

_PAYLOAD_WRITERS: Mapping[type[Payload], Callable[[Any], dict[str, Any]]] = {
    kind: _writer(kind) for kind in PAYLOAD_TYPES.values()
}
