"""Trace lines: events in which lengths replace the text.

A line is the event's envelope, marked `"authoritative": false`, without any text of a player, a model or a tool.
Reading puts filler of the same length in place of the text, so that the laws about positions and order can still be
checked. Reading validates everything: a line that holds text, or lacks a length, is refused with an `InvalidEvent` that
never quotes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

import orjson

from footlights.errors import InvalidEvent
from footlights.events import EventType, Ext
from footlights.notebooks.note_ids import RECALLED, is_note_id
from footlights.wire.values import Unfit, natural
from footlights.wire.writing import to_wire

if TYPE_CHECKING:
    from footlights.events import StreamEvent

MAX_TRACED_LENGTH = 10_000_000
"""The greatest length that a line may state; far more than the text of any turn."""

_Fields: TypeAlias = dict[str, Any]
_Change: TypeAlias = Callable[[_Fields, str], None]
"""Changes the fields of an object in place; the string is the object's path, for refusals."""


def to_trace(event: StreamEvent) -> dict[str, Any]:
    """The event as plain JSON values, with lengths in place of text."""
    traced = to_wire(event)
    payload = traced["payload"]
    if event.payload.ext is not None:
        ext = event.payload.ext
        payload["ext"] = {"namespace": ext.namespace, "bytes": len(orjson.dumps(ext.data))}
        if _are_note_ids(ext):
            payload["ext"]["note_ids"] = ext.data
    hide = _HIDE.get(event.event_type)
    if hide is not None:
        hide(payload)
    traced["authoritative"] = False
    return traced


def encode_trace(event: StreamEvent) -> bytes:
    """The event as one line of a trace, its line break included."""
    return orjson.dumps(to_trace(event), option=orjson.OPT_APPEND_NEWLINE)


def is_trace(recorded: object) -> TypeGuard[Mapping[str, object]]:
    """Whether this is marked as a line of a trace."""
    return isinstance(recorded, Mapping) and cast(Mapping[str, object], recorded).get("authoritative") is False


def from_trace(traced: Mapping[str, object]) -> dict[str, object]:
    """The event's envelope with filler for text, to be read by `from_wire`. Raises InvalidEvent."""
    wire = dict(traced)
    wire.pop("authoritative", None)
    payload = wire.get("payload")
    if isinstance(payload, Mapping):
        filled: _Fields = dict(cast(Mapping[str, Any], payload))
        _fill_part(filled, "ext", "payload", _fill_ext)
        fill = _FILL.get(str(wire.get("event_type")))
        if fill is not None:
            fill(filled, "payload")
        wire["payload"] = filled
    return wire


# -- writing


def _are_note_ids(ext: Ext) -> bool:
    """Whether this is the list of the notes of a prompt: ids are no text of anybody."""
    return ext.namespace == RECALLED and isinstance(ext.data, list) and all(map(is_note_id, ext.data))


def _hide_delta(payload: _Fields) -> None:
    payload["chars"] = len(payload.pop("delta"))


def _hide_text(payload: _Fields) -> None:
    payload["chars"] = len(payload.pop("text"))


def _hide_interrupted(payload: _Fields) -> None:
    if "heard" in payload:
        _hide_text(payload["heard"])
    _hide_error(payload)


def _hide_result(payload: _Fields) -> None:
    if "summary" in payload:
        payload["summary_chars"] = len(payload.pop("summary"))
    _hide_error(payload)


def _hide_error(payload: _Fields) -> None:
    if "error" in payload:
        payload["error"]["message_chars"] = len(payload["error"].pop("message"))


_HIDE: Mapping[EventType, Callable[[_Fields], None]] = {
    EventType.TOKEN_DELTA: _hide_delta,
    EventType.TOOL_CALL_RESULT: _hide_result,
    EventType.MODEL_SELECTED: _hide_error,
    EventType.TURN_INTERRUPTED: _hide_interrupted,
    EventType.TURN_FINAL: _hide_text,
}


# -- reading


def _fill(fields: _Fields, path: str, words: str, length: str) -> None:
    """Put filler into the field `words`, as long as the field `length` states."""
    _refuse_words(fields, path, words)
    if length not in fields:
        raise InvalidEvent(f"{path}.{length}: is missing")
    fields[words] = "x" * _length(fields.pop(length), f"{path}.{length}")


def _refuse_words(fields: _Fields, path: str, words: str) -> None:
    if words in fields:
        raise InvalidEvent(f"{path}.{words}: must not stand in a trace, which holds lengths only")


def _length(value: object, path: str) -> int:
    try:
        length = natural(value)
    except Unfit as unfit:
        raise InvalidEvent(f"{path}: {unfit}") from None
    if length > MAX_TRACED_LENGTH:
        raise InvalidEvent(f"{path}: must not be greater than {MAX_TRACED_LENGTH}")
    return length


def _fill_part(fields: _Fields, name: str, path: str, fill: _Change) -> None:
    """Fill a nested object. Any other value is left for `from_wire` to refuse."""
    part = fields.get(name)
    if isinstance(part, Mapping):
        fields[name] = filled = dict(cast(Mapping[str, Any], part))
        fill(filled, f"{path}.{name}")


def _fill_ext(ext: _Fields, path: str) -> None:
    _refuse_words(ext, path, "data")
    if "bytes" not in ext:
        raise InvalidEvent(f"{path}.bytes: is missing")
    _length(ext.pop("bytes"), f"{path}.bytes")
    ext["data"] = ext.pop("note_ids", None)
    if ext["data"] is not None and not _are_note_ids(Ext(ext.get("namespace", ""), ext["data"])):
        raise InvalidEvent(f"{path}.note_ids: must be ids of notes")


def _fill_delta(payload: _Fields, path: str) -> None:
    _fill(payload, path, "delta", "chars")
    if not payload["delta"]:
        raise InvalidEvent(f"{path}.chars: must be at least 1")


def _fill_text(fields: _Fields, path: str) -> None:
    _fill(fields, path, "text", "chars")


def _fill_interrupted(payload: _Fields, path: str) -> None:
    _fill_part(payload, "heard", path, _fill_text)
    _fill_failure(payload, path)


def _fill_failure(payload: _Fields, path: str) -> None:
    _fill_part(payload, "error", path, _fill_error)


def _fill_result(payload: _Fields, path: str) -> None:
    _refuse_words(payload, path, "summary")
    if "summary_chars" in payload:
        _fill(payload, path, "summary", "summary_chars")
    _fill_failure(payload, path)


def _fill_error(error: _Fields, path: str) -> None:
    _fill(error, path, "message", "message_chars")


_FILL: Mapping[str, _Change] = {
    EventType.TOKEN_DELTA: _fill_delta,
    EventType.TOOL_CALL_RESULT: _fill_result,
    EventType.MODEL_SELECTED: _fill_failure,
    EventType.TURN_INTERRUPTED: _fill_interrupted,
    EventType.TURN_FINAL: _fill_text,
}
