"""The K-gent wire protocol: what clients send to `/perturb/{agent}`, and what `/observe/{agent}` sends. Pure.

    → {"action": "message", "version": "1.0.0", "data": {"content": ..., "mode": ..., "correlation_id": ...}}
    ← {"event_type": "chunk", "payload": {...}, "sequence": 1, "timestamp": ...}

`mode` and `correlation_id` may be left out.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl, unquote

from attrs import evolve, frozen

from footlights.errors import InvalidCommand
from footlights.ids import epoch_and_number
from footlights_transports import json_text
from footlights_transports.views.kgent.pure.messages import (
    MAX_CORRELATION_CHARS,
    ChatMessage,
    DialogueMode,
    ErrorCode,
    InvalidMessage,
    is_correlation_id,
)
from footlights_transports.views.kgent.pure.telling import Telling

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from footlights_transports.views.kgent.pure.messages import ChatEvent

PROTOCOL_VERSION = "1.0.0"
AGENTESE_HANDLES: Mapping[str, str] = MappingProxyType(
    {"perturb": "self.soul.perturb", "observe": "time.soul.witness", "stream": "time.chat.stream"}
)
SUBPROTOCOL = "kgent.v1"
"""A client may offer it, and then gets it; it need not."""
MAX_RESUMED = 64
"""Dialogues that an observer may name when it comes back."""

_DIGITS = 15
HEARD_ALL = 10**_DIGITS
"""The last sequence of one who had `done`: it comes before nothing."""
_DONE = "done"
_FLAGS = {"0": False, "1": True}


class Endpoint(StrEnum):
    """The two ends of a dialogue."""

    PERTURB = "perturb"
    """Messages go in."""
    OBSERVE = "observe"
    """Events come out."""


@frozen
class Target:
    """What a client connects to."""

    endpoint: Endpoint
    agent: str


@frozen
class PerturbWish:
    """The parameters of the session that a client wants to talk in. None is: as it is, or as the server has it."""

    session: str | None = None
    """Its name; without one, the session that the server has for this user and agent."""
    remote_models: bool | None = None
    """Whether what is said may be told to models elsewhere."""
    keep_content: bool | None = None
    """Whether what is said may be kept beyond the session."""


@frozen
class ObserveWish:
    """What an observer wants to hear besides what is to come."""

    after: Mapping[str, int]
    """Dialogues to go on with, and the last sequence that it has of each; 0 is none, `HEARD_ALL` is that of `done`."""
    session: str | None = None
    """A session of which it wants to hear also the turns that others began."""


class Unreadable(InvalidMessage):
    """A frame that is no message. `correlation_id` is the one in it, if that could be read."""

    def __init__(self, message: str, correlation_id: str | None = None) -> None:
        super().__init__(message)
        self.correlation_id = correlation_id


# -- where to


def read_path(path: str) -> Target | None:
    """What this path leads to; None if nothing of ours."""
    _, _, rest = path.partition("/")
    name, _, agent = rest.partition("/")
    if name not in list(Endpoint) or not agent or "/" in agent:
        return None
    return Target(Endpoint(name), unquote(agent))


def read_perturb_query(query: str) -> PerturbWish:
    """Raises `InvalidCommand`."""
    pairs = _pairs(query, {"session", "remote_models", "keep_content"})
    given = dict(pairs)
    _check_once(name for name, _ in pairs)
    flags = {name: given[name] for name in ("remote_models", "keep_content") if name in given}
    if not set(flags.values()) <= set(_FLAGS):
        raise InvalidCommand("remote_models and keep_content must be 0 or 1.")
    return PerturbWish(given.get("session"), **{name: _FLAGS[value] for name, value in flags.items()})


def read_observe_query(query: str) -> ObserveWish:
    """`session=…`, and `correlation_id=…&after=…` as often as there are dialogues to go on with.

    Without `after` it is 0; one who had `done` says that. Raises `InvalidCommand`.
    """
    after: dict[str, int] = {}
    named: str | None = None
    session: str | None = None
    pairs = _pairs(query, {"correlation_id", "after", "session"})
    _check_once(name for name, _ in pairs if name == "session")
    for name, value in pairs:
        if name == "session":
            session = value
        elif name == "correlation_id":
            named = _checked(value)
            after[named] = 0
        elif named is None or not _is_place(value):
            raise InvalidCommand("after must be a sequence or done, and stand behind its correlation_id.")
        else:
            after[named] = HEARD_ALL if value == _DONE else int(value)
    if len(after) > MAX_RESUMED:
        raise InvalidCommand(f"An observer goes on with no more than {MAX_RESUMED} dialogues.")
    return ObserveWish(after, session)


def _check_once(names: Iterable[str]) -> None:
    found = list(names)
    if len(set(found)) < len(found):
        raise InvalidCommand("A parameter is there twice.")


def _checked(correlation_id: str) -> str:
    if not is_correlation_id(correlation_id):
        raise InvalidCommand(f"correlation_id must be 1 to {MAX_CORRELATION_CHARS} printable characters.")
    return correlation_id


def _is_place(value: str) -> bool:
    return value == _DONE or (value.isascii() and value.isdigit() and len(value) <= _DIGITS)


def _pairs(query: str, known: set[str]) -> list[tuple[str, str]]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query), max_num_fields=2 * MAX_RESUMED + 2)
    except ValueError:
        raise InvalidCommand("The query cannot be read.") from None
    if not {name for name, _ in pairs} <= known:
        raise InvalidCommand(f"The query may have {', '.join(sorted(known))}.")
    return pairs


# -- in


def read_message(frame: str | bytes, now: float) -> ChatMessage:
    """The message in a frame. Raises `Unreadable`, which quotes nothing of it."""
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
    """The one in a frame that is not looked at otherwise, if there is one."""
    return None if isinstance(frame, bytes) else _correlation_id(_document(frame))


def _document(frame: str) -> object:
    """What JSON says; None if it is none, or null, or has too many values."""
    try:
        return json_text.parse(frame)
    except ValueError:
        return None


def _message(document: object, now: float) -> ChatMessage:
    outer = _object(document, "A message")
    if outer.get("version") != PROTOCOL_VERSION:
        # Before anything else: another version may look different.
        raise InvalidMessage(f"version must be {PROTOCOL_VERSION}.")
    _check_names(outer, "A message", {"action", "version", "data"})
    if outer.get("action") != "message":
        raise InvalidMessage("action must be message.")
    data = _object(outer.get("data"), "data")
    _check_names(data, "data", {"content", "mode", "correlation_id"})
    content, mode = data.get("content"), data.get("mode", DialogueMode.REFLECT)
    if not isinstance(content, str):
        raise InvalidMessage("content must be a string.")
    if mode not in list(DialogueMode):
        raise InvalidMessage(f"mode must be one of {', '.join(DialogueMode)}.")
    message = ChatMessage("user", content, now, DialogueMode(mode))
    if "correlation_id" not in data:
        return message
    correlation_id = data["correlation_id"]
    if not isinstance(correlation_id, str):
        raise InvalidMessage("correlation_id must be a string.")
    if epoch_and_number(correlation_id) is not None:
        # Turns that others began are told under their own ids.
        raise InvalidMessage("correlation_id must not look like the id of a turn.")
    return evolve(message, correlation_id=correlation_id)


def _object(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidMessage(f"{name} must be a JSON object.")
    return cast("dict[str, Any]", value)


def _check_names(found: Mapping[str, Any], name: str, known: set[str]) -> None:
    if not found.keys() <= known:
        raise InvalidMessage(f"{name} may have {', '.join(sorted(known))}.")


def _correlation_id(document: object) -> str | None:
    """The one in a message that is wrong otherwise."""
    outer = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    data = outer.get("data")
    found = cast("dict[str, Any]", data).get("correlation_id") if isinstance(data, dict) else None
    return found if isinstance(found, str) and is_correlation_id(found) else None


# -- out


def write_event(event: ChatEvent) -> bytes:
    """One frame."""
    return event.to_json().encode()


def refusal(
    code: ErrorCode,
    correlation_id: str | None,
    now: float,
    *,
    meaning: str | None = None,
    retry_after: int | None = None,
) -> list[ChatEvent]:
    """What is said of a message that began no dialogue: `error`, then `done`."""
    return Telling(correlation_id, DialogueMode.REFLECT, 1).fail(code, now, retry_after, meaning)


def cut_off(told: Sequence[ChatEvent], code: ErrorCode, correlation_id: str, now: float) -> list[ChatEvent]:
    """How a dialogue ends of which no more will come: `error`, then `done`, unless it has ended."""
    if told and told[-1].event_type == "done":
        return []
    stamp = max([now, *(each.timestamp for each in told[-1:])])
    failed = refusal(code, correlation_id, stamp, meaning="The dialogue broke off.")
    return _behind(failed, len(told), sum(each.event_type == "chunk" for each in told))


def expired(correlation_id: str, after: int, now: float) -> list[ChatEvent]:
    """How a dialogue ends that nobody remembers, for one who has its events up to `after`."""
    # Before its end there are chunks alone, so it has as many of them.
    return _behind(refusal(ErrorCode.SESSION_EXPIRED, correlation_id, now), after, after)


def _behind(failed: Sequence[ChatEvent], after: int, chunks: int) -> list[ChatEvent]:
    error, done = failed
    return [
        evolve(error, sequence=after + 1),
        evolve(done, sequence=after + 2, payload={**done.payload, "total_chunks": chunks}),
    ]
