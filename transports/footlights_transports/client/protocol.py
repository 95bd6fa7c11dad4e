"""Client side of the native protocol: commands are written, replies are checked, refusals become errors. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

import orjson

import footlights.errors as known
from footlights.errors import FootlightsError, InvalidCommand
from footlights.wire.values import MAX_INTEGER
from footlights_transports.errors import RateLimited, Unauthorized, UnsupportedVersion

if TYPE_CHECKING:
    from footlights.laws import Violation

Message: TypeAlias = dict[str, Any] | list[dict[str, Any]]

TOO_BIG = 1009
"""The WebSocket close code for a message that was too large."""
MAX_REASON_CHARS = 500
"""The most of a server's reason that an error holds, in one line."""


class ConnectionLost(FootlightsError):
    """The server cannot be reached. `maybe_done` tells whether the server may have executed the command."""

    code = "connection_lost"

    def __init__(self, message: str, *, maybe_done: bool = False) -> None:
        super().__init__(message)
        self.maybe_done = maybe_done


class LawBroken(FootlightsError):
    """The server sent an unlawful stream, which cannot be read any further; `violation` says why."""

    code = "law_broken"

    def __init__(self, violation: Violation) -> None:
        super().__init__(str(violation))
        self.violation = violation


_ERRORS = {
    kind.code: kind
    for kind in (
        known.InvalidCommand,
        known.SessionInUse,
        known.UnknownSession,
        known.UnknownTurn,
        known.SessionClosed,
        known.Busy,
        known.TooLarge,
        RateLimited,
        Unauthorized,
        UnsupportedVersion,
    )
}


def refusal(error: object) -> FootlightsError:
    """The exception for the `error` of a reply: the class that a local stage raises, or a plain `FootlightsError`."""
    told = cast("dict[str, object]", error) if isinstance(error, dict) else {}
    code, message = told.get("code"), told.get("message")
    kind = _ERRORS.get(code, FootlightsError) if isinstance(code, str) else FootlightsError
    if not isinstance(message, str):
        return kind("The server refused, and did not say why.")
    return kind(message[:MAX_REASON_CHARS].replace("\n", " "))


def protocol_error(*, maybe_done: bool = False) -> ConnectionLost:
    return ConnectionLost("The server does not speak our protocol.", maybe_done=maybe_done)


def write_command(op: str, command_id: int, fields: dict[str, Any]) -> str:
    """Raises `InvalidCommand` for what JSON cannot express."""
    try:
        return orjson.dumps({"op": op, "id": command_id, **fields}, option=orjson.OPT_STRICT_INTEGER).decode()
    except orjson.JSONEncodeError:
        for name, value in fields.items():
            if _has_huge_integer(value):
                raise InvalidCommand(f"{name}: must not hold integers beyond {MAX_INTEGER}") from None
        raise InvalidCommand("The command holds what JSON cannot say, such as half of a surrogate pair.") from None


def _has_huge_integer(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_huge_integer, cast("dict[str, object]", value).values()))
    return isinstance(value, int) and abs(value) > MAX_INTEGER


def read_message(message: str) -> Message:
    """Raises `ConnectionLost` for a message that no Footlights server sends."""
    try:
        value = orjson.loads(message)
    except orjson.JSONDecodeError:
        raise protocol_error() from None
    if not isinstance(value, dict | list):
        raise protocol_error()
    return cast("Message", value)


def result_of(reply: dict[str, Any]) -> dict[str, Any]:
    """The result of a command. Raises the refusal if the server refused it."""
    if reply.get("ok") is not True:
        raise refusal(reply.get("error"))
    result = reply.get("result")
    if not isinstance(result, dict):
        raise protocol_error(maybe_done=True)
    return cast("dict[str, Any]", result)


def text_in(result: dict[str, Any], name: str) -> str:
    """A field that holds a string. Raises `ConnectionLost` if it does not."""
    value = result.get(name)
    if not isinstance(value, str):
        raise protocol_error(maybe_done=True)
    return value


def texts_in(result: dict[str, Any], name: str) -> tuple[str, ...]:
    """A field that holds a list of strings. Raises `ConnectionLost` if it does not."""
    values = result.get(name)
    if not isinstance(values, list) or not all(isinstance(each, str) for each in cast("list[object]", values)):
        raise protocol_error(maybe_done=True)
    return tuple(cast("list[str]", values))


def cursor_in(result: dict[str, Any]) -> dict[str, int]:
    """The position from which the server sends, in the reply to a subscribe. Raises `ConnectionLost`."""
    cursor = result.get("cursor", {})
    if not isinstance(cursor, dict) or any(type(seq) is not int for seq in cast("dict[str, object]", cursor).values()):
        raise protocol_error()
    return cast("dict[str, int]", cursor)
