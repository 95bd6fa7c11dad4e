"""K-gent wire protocol: frames that clients send to `/perturb/{agent}`, and frames that `/observe/{agent}` sends.

    → {"action": "message", "version": "1.0.0", "data": {"content": ..., "mode": ..., "correlation_id": ...}}
    ← {"event_type": "chunk", "payload": {...}, "sequence": 1, "timestamp": ...}

`mode`, `correlation_id` and `approvals` are optional. `approvals` answers what waits: `{"a-000001": true}`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl

from attrs import evolve, frozen

from footlights.errors import InvalidCommand
from footlights.ids import epoch_and_number
from footlights.params import TurnParams
from footlights_transports import json_text
from footlights_transports.views.kgent.pure.messages import (
    MAX_CORRELATION_CHARS,
    ChatMessage,
    DialogueMode,
    ErrorCode,
    InvalidMessage,
    is_correlation_id,
)
from footlights_transports.views.kgent.pure.writer import DialogueWriter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights_transports.views.kgent.pure.messages import ChatEvent

PROTOCOL_VERSION = "1.0.0"
AGENTESE_HANDLES: Mapping[str, str] = MappingProxyType(
    {"perturb": "self.soul.perturb", "observe": "time.soul.witness", "stream": "time.chat.stream"}
)
SUBPROTOCOL = "kgent.v1"
"""Optional: a client that offers it gets it."""
MAX_RESUMED = 64
"""Dialogues that an observer may name when it comes back."""

_DIGITS = 15
AFTER_DONE = 10**_DIGITS
"""The position of an observer that has `done`: no sequence is greater."""
_DONE = "done"
_FLAGS = {"0": False, "1": True}
_CONSENT = ("remote_models", "keep_content")


@frozen
class PerturbQuery:
    """Query of `/perturb/{agent}`: the session, and the consent that it begins with."""

    session: str | None = None
    """Its name; without one, the session that the server keeps for this user and agent."""
    remote_models: bool | None = None
    """Whether models elsewhere may read what is said; None for the server's default."""
    keep_content: bool | None = None
    """Whether what is said may be stored beyond the session."""


@frozen
class ObserveQuery:
    """Query of `/observe/{agent}`: where an observer continues, and a session to tap."""

    after: Mapping[str, int]
    """The last sequence that it has of each dialogue; 0 for none, `AFTER_DONE` for `done`."""
    session: str | None = None
    """A session of which it wants the turns that the gateway did not begin."""
    mirror: bool = False
    """Whether it wants the turns of the record without their content, in place of all that."""


class Unreadable(InvalidMessage):
    """A frame is not a message. `correlation_id` is the one in it, if that could be read."""

    def __init__(self, message: str, correlation_id: str | None = None) -> None:
        super().__init__(message)
        self.correlation_id = correlation_id


# -- queries


def read_perturb_query(query: str) -> PerturbQuery:
    """Raises `InvalidCommand`."""
    given = dict(_pairs(query, {"session", *_CONSENT}, once={"session", *_CONSENT}))
    if not {given[name] for name in _CONSENT if name in given} <= set(_FLAGS):
        raise InvalidCommand("remote_models and keep_content must be 0 or 1.")
    return PerturbQuery(given.get("session"), *(_FLAGS.get(given.get(name, "")) for name in _CONSENT))


def read_observe_query(query: str) -> ObserveQuery:
    """`mirror=1`; or `session=…`, and `correlation_id=…&after=…` for each dialogue to continue; `after` defaults to 0.

    Raises `InvalidCommand`.
    """
    after: dict[str, int] = {}
    named: str | None = None
    session: str | None = None
    pairs = _pairs(query, {"correlation_id", "after", "session", "mirror"}, once={"session", "mirror"})
    if "mirror" in dict(pairs):
        if pairs != [("mirror", "1")]:
            raise InvalidCommand("mirror must be 1, and stand alone.")
        return ObserveQuery(after, mirror=True)
    for name, value in pairs:
        if name == "session":
            session = value
        elif name == "correlation_id":
            if not is_correlation_id(value):
                raise InvalidCommand(f"correlation_id must be 1 to {MAX_CORRELATION_CHARS} printable characters.")
            named = value
            after[named] = 0
        elif named is None or not _is_position(value):
            raise InvalidCommand("after must be a sequence or done, and stand behind its correlation_id.")
        else:
            after[named] = AFTER_DONE if value == _DONE else int(value)
    if len(after) > MAX_RESUMED:
        raise InvalidCommand(f"An observer goes on with no more than {MAX_RESUMED} dialogues.")
    return ObserveQuery(after, session)


def _is_position(value: str) -> bool:
    return value == _DONE or (value.isascii() and value.isdigit() and len(value) <= _DIGITS)


def _pairs(query: str, known: set[str], once: set[str]) -> list[tuple[str, str]]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=2 * MAX_RESUMED + 2)
    except ValueError:
        raise InvalidCommand("The query cannot be read.") from None
    names = [name for name, _ in pairs]
    if not set(names) <= known:
        raise InvalidCommand(f"The query may have {', '.join(sorted(known))}.")
    if any(names.count(name) > 1 for name in once):
        raise InvalidCommand("A parameter is there twice.")
    return pairs


# -- in


def read_message(frame: str | bytes, now: float) -> ChatMessage:
    """The message in a frame. Raises `Unreadable`, whose text quotes nothing of the frame."""
    if isinstance(frame, bytes):
        raise Unreadable("A message is a text frame.")
    document = _document(frame)
    if document is None:
        raise Unreadable("A message is a JSON object.")
    try:
        return _message(document, now)
    except InvalidMessage as error:
        raise Unreadable(str(error), _correlation_id(document)) from None


def correlation_id_in(frame: str | bytes) -> str | None:
    """The correlation id in a frame that was refused unread, if there is one."""
    return None if isinstance(frame, bytes) else _correlation_id(_document(frame))


def _document(frame: str) -> object:
    """The JSON value; None if the frame is not JSON, is null, or has too many values."""
    try:
        return json_text.parse(frame)
    except ValueError:
        return None


def _message(document: object, now: float) -> ChatMessage:
    outer = _object(document, "A message")
    if outer.get("version") != PROTOCOL_VERSION:
        # First: another version may have other fields.
        raise InvalidMessage(f"version must be {PROTOCOL_VERSION}.")
    _check_names(outer, "A message", {"action", "version", "data"})
    if outer.get("action") != "message":
        raise InvalidMessage("action must be message.")
    data = _object(outer.get("data"), "data")
    _check_names(data, "data", {"content", "mode", "correlation_id", "approvals"})
    content = data.get("content")
    if not isinstance(content, str):
        raise InvalidMessage("content must be a string.")
    approvals = _answers(data.get("approvals", {}))
    message = ChatMessage("user", content, now, data.get("mode", DialogueMode.REFLECT), approvals=approvals)
    if "correlation_id" not in data:
        return message
    correlation_id = data["correlation_id"]
    if not isinstance(correlation_id, str):
        raise InvalidMessage("correlation_id must be a string.")
    if epoch_and_number(correlation_id) is not None:
        # A session tap sends turns under their own ids.
        raise InvalidMessage("correlation_id must not look like the id of a turn.")
    return evolve(message, correlation_id=correlation_id)


def _answers(value: object) -> Mapping[str, bool]:
    try:
        return TurnParams(approvals=cast("Mapping[str, bool]", value)).approvals
    except InvalidCommand as error:
        raise InvalidMessage(str(error)) from None


def _object(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidMessage(f"{name} must be a JSON object.")
    return cast("dict[str, Any]", value)


def _check_names(found: Mapping[str, Any], name: str, known: set[str]) -> None:
    if not found.keys() <= known:
        raise InvalidMessage(f"{name} may have {', '.join(sorted(known))}.")


def _correlation_id(document: object) -> str | None:
    """The correlation id in a message that is invalid otherwise."""
    outer = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    data = outer.get("data")
    found = cast("dict[str, Any]", data).get("correlation_id") if isinstance(data, dict) else None
    return found if isinstance(found, str) and is_correlation_id(found) else None


# -- out


def refusal(
    code: ErrorCode,
    correlation_id: str | None,
    now: float,
    *,
    meaning: str | None = None,
    retry_after: int | None = None,
) -> list[ChatEvent]:
    """The answer to a message that began no dialogue: `error`, then `done`."""
    return DialogueWriter(correlation_id, DialogueMode.REFLECT, 1).fail(code, now, retry_after, meaning)


def expired(correlation_id: str, after: int, now: float) -> list[ChatEvent]:
    """The end of a dialogue that the gateway has forgotten, for an observer that has its events up to `after`."""
    error, done = refusal(ErrorCode.SESSION_EXPIRED, correlation_id, now)
    # All events before the end are chunks, so the observer has `after` of them.
    payload = {**done.payload, "total_chunks": after}
    return [evolve(error, sequence=after + 1), evolve(done, sequence=after + 2, payload=payload)]
