"""Readers from JSON to events: the fields of each object, their domains, and the wording of refusals.

cattrs builds one reader for each class from the tables here. It reports errors as a tree with notes of their places;
`_refusal` follows the first branch and turns it into one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import attrs
import orjson
from cattrs import BaseValidationError, Converter, ForbiddenExtraKeysError, override
from cattrs.cols import homogenous_tuple_structure_factory
from cattrs.errors import AttributeValidationNote, IterableValidationNote

# cattrs leaves the type argument of attrs.Attribute open.
from cattrs.gen import make_dict_structure_fn_from_attrs  # pyright: ignore[reportUnknownVariableType]

from footlights.errors import InvalidEvent
from footlights.events import (
    PAYLOAD_TYPES,
    SCHEMA_V,
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    EventType,
    Ext,
    Heard,
    InterruptReason,
    Issue,
    ModelLoading,
    ModelReady,
    ModelSelected,
    Payload,
    SeqRange,
    StreamEvent,
    TokenDelta,
    ToolCallResult,
    ToolCallStarted,
    TurnFinal,
    WarmState,
)
from footlights.wire import values
from footlights.wire.values import Reader, Unfit

_FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")

_T = TypeVar("_T")


def from_wire(wire: Mapping[str, object]) -> StreamEvent:
    """The event that `wire` describes. Raises InvalidEvent if it is not a valid event."""
    return cast(StreamEvent, _read(_event, wire, ""))


def decode(frame: bytes | str) -> StreamEvent:
    """The event in one JSON object. Raises InvalidEvent if it is not a valid event."""
    try:
        wire = orjson.loads(frame)
    except orjson.JSONDecodeError:
        raise InvalidEvent("event: must be valid JSON") from None
    return from_wire(wire)


def payload_from_wire(event_type: EventType, wire: Mapping[str, object]) -> Payload:
    """The payload of an event of this type that `wire` describes. Raises InvalidEvent if it is not valid."""
    return cast(Payload, _read(_PAYLOAD_READERS[event_type], wire, "payload"))


def _read(reader: Reader, wire: object, path: str) -> object:
    try:
        return reader(wire, None)
    except (Unfit, BaseValidationError) as error:
        raise InvalidEvent(_refusal(error, path)) from None


def _refusal(error: BaseException, path: str) -> str:
    while isinstance(error, BaseValidationError):
        error = error.exceptions[0]
        path += _step(error)
    match error:
        case Unfit():
            sentence = str(error)
            path += f".{error.field}" if error.field else ""
        case ForbiddenExtraKeysError():
            sentence = _unknown_field(error.extra_fields)
        case _:  # the KeyError of a field that is not there
            sentence = "is missing"
    return f"{path.removeprefix('.') or 'event'}: {sentence}"


def _step(error: BaseException) -> str:
    # cattrs adds the note of the outermost place last.
    for note in reversed(getattr(error, "__notes__", [])):
        if isinstance(note, AttributeValidationNote):
            return f".{note.name}"
        if isinstance(note, IterableValidationNote):
            return f"[{note.index}]"
    return ""


def _unknown_field(names: set[Any]) -> str:
    # Field names come from outside too: one that does not look like an identifier may be a player's text.
    fit = sorted(name for name in names if isinstance(name, str) and _FIELD_NAME.fullmatch(name))
    return f"has an unknown field '{fit[0]}'" if fit else "has an unknown field"


def _object(
    kind: type[_T],
    fields: Mapping[str, Reader],
    required: frozenset[str] = frozenset(),
    check: Callable[[_T], None] | None = None,
) -> Reader:
    attributes = [
        # cattrs requires a field exactly when its attribute has no default.
        field.evolve(default=attrs.NOTHING) if field.name in required else field
        for field in attrs.fields(attrs.resolve_types(cast(Any, kind)))
    ]
    overrides: dict[str, Any] = {name: override(struct_hook=reader) for name, reader in fields.items()}
    structure = make_dict_structure_fn_from_attrs(
        attributes, kind, _converter, _cattrs_forbid_extra_keys=True, **overrides
    )

    def read(value: object, _: object = None) -> _T:
        if not isinstance(value, Mapping):
            raise Unfit("must be an object")
        made = structure(cast(Mapping[str, Any], value), kind)
        if check is not None:
            check(made)
        return made

    return read


def _is_tuple(kind: object) -> bool:
    return getattr(kind, "__origin__", None) is tuple


def _list_of(kind: Any, converter: Converter) -> Reader:
    read_items = homogenous_tuple_structure_factory(kind, converter)

    def read(value: object, kind: Any) -> object:
        if not isinstance(value, list | tuple):
            raise Unfit("must be a list")
        return read_items(value, kind)

    return read


def _ranges(value: object, _: object = None) -> tuple[SeqRange, ...]:
    ranges = _converter.structure(value, tuple[SeqRange, ...])
    end = -1
    for each in ranges:
        if each.start_seq > each.end_seq:
            raise Unfit("must hold ranges that start no later than they end")
        if each.start_seq <= end:
            raise Unfit("must be sorted and must not overlap")
        end = each.end_seq
    return ranges


def _cancel_is_explained(result: Any) -> None:
    if result.canceled and result.side_effects_may_have_occurred is None:
        raise Unfit("is required when canceled is true", "side_effects_may_have_occurred")


def _event(wire: object, _: object = None) -> object:
    # The event type selects the reader of the payload, so it is read first.
    if not isinstance(wire, Mapping):
        raise Unfit("must be an object")
    fields = cast(Mapping[str, object], wire)
    if "event_type" not in fields:
        raise Unfit("is missing", "event_type")
    try:
        event_type = _read_event_type(fields["event_type"], EventType)
    except Unfit as unfit:
        raise Unfit(str(unfit), "event_type") from None
    return _EVENT_READERS[event_type](fields, StreamEvent)


_read_event_type = values.member_of(EventType)

_BY_TYPE: Mapping[type[Any], Reader] = {
    str: values.text,
    int: values.natural,
    float: values.number,
    bool: values.flag,
    EventType: _read_event_type,
    WarmState: values.member_of(WarmState),
    InterruptReason: values.member_of(InterruptReason),
    CommitOutcome: values.member_of(CommitOutcome),
}

_PARTS: Mapping[type[Any], Mapping[str, Reader]] = {
    SeqRange: {},
    Ext: {"namespace": values.namespace, "data": values.json_value},
    ErrorInfo: {"code": values.name},
    Issue: {"code": values.name},
    Heard: {},
}

_PAYLOAD_FIELDS: Mapping[type[Payload], Mapping[str, Reader]] = {
    ModelSelected: {"model_id": values.name},
    ModelLoading: {"model_id": values.name, "progress": values.optional_fraction},
    ModelReady: {"model_id": values.name},
    TokenDelta: {"delta": values.name},
    ToolCallStarted: {"tool_call_id": values.name, "tool_name": values.name},
    ToolCallResult: {"tool_call_id": values.name, "tool_name": values.name},
    TurnFinal: {"authoritative": values.constant(False)},
    CommitFinal: {"commit_digest": values.name, "authoritative": values.constant(True)},
}
"""Readers for fields whose domain is narrower than their type."""

_REQUIRED: Mapping[type[Payload], frozenset[str]] = {
    TurnFinal: frozenset({"authoritative"}),
    CommitFinal: frozenset({"authoritative", "issues", "artifact_refs"}),
}
"""Fields that are required on the wire although they have a default in code."""

_CHECKS: Mapping[type[Payload], Callable[[Payload], None]] = {ToolCallResult: _cancel_is_explained}

_converter = Converter(detailed_validation=True)
for _kind, _reader in _BY_TYPE.items():
    _converter.register_structure_hook(_kind, _reader)
_converter.register_structure_hook_factory(_is_tuple, _list_of)
for _kind, _fields in _PARTS.items():
    _converter.register_structure_hook(_kind, _object(_kind, _fields))

_PAYLOAD_READERS: Mapping[EventType, Reader] = {
    event_type: _object(
        kind,
        {"dropped_seq_ranges": _ranges, **_PAYLOAD_FIELDS.get(kind, {})},
        _REQUIRED.get(kind, frozenset()),
        _CHECKS.get(kind),
    )
    for event_type, kind in PAYLOAD_TYPES.items()
}
_ENVELOPE_FIELDS: Mapping[str, Reader] = {
    "schema_v": values.constant(SCHEMA_V),
    "session_id": values.name,
    "turn_id": values.name,
}
_EVENT_READERS: Mapping[EventType, Reader] = {
    event_type: _object(StreamEvent, {**_ENVELOPE_FIELDS, "payload": read_payload})
    for event_type, read_payload in _PAYLOAD_READERS.items()
}
