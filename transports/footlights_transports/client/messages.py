"""What a client writes to a server, and reads from it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, cast

import orjson

from footlights.errors import InvalidCommand
from footlights.wire.values import MAX_INTEGER
from footlights_transports.client.errors import ConnectionLost, refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights.errors import FootlightsError

Message: TypeAlias = dict[str, Any] | list[dict[str, Any]]

TOO_BIG = 1009
"""The code with which a connection is closed because a message was too large."""


def write_command(op: str, command_id: int, fields: dict[str, Any]) -> str:
    """Raises `InvalidCommand` for what JSON cannot say."""
    try:
        return orjson.dumps({"op": op, "id": command_id, **fields}, option=orjson.OPT_STRICT_INTEGER).decode()
    except orjson.JSONEncodeError:
        for name, value in fields.items():
            if _holds_a_huge_number(value):
                raise InvalidCommand(f"{name}: must not hold integers beyond {MAX_INTEGER}") from None
        raise InvalidCommand("The command holds what JSON cannot say, such as half of a surrogate pair.") from None


def read_message(message: str) -> Message:
    """What a server sent. Raises `ConnectionLost` for what none of ours would send."""
    try:
        value = orjson.loads(message)
    except orjson.JSONDecodeError:
        raise nonsense() from None
    if not isinstance(value, dict | list):
        raise nonsense()
    return cast("Message", value)


def result_of(reply: dict[str, Any]) -> dict[str, Any]:
    """What a command came to. Raises what it was refused with."""
    if reply.get("ok") is not True:
        raise refusal_in(reply)
    result = reply.get("result")
    if not isinstance(result, dict):
        raise nonsense(maybe_done=True)
    return cast("dict[str, Any]", result)


def refusal_in(reply: dict[str, Any]) -> FootlightsError:
    """What a command was refused with."""
    error = reply.get("error")
    told = cast("dict[str, object]", error) if isinstance(error, dict) else {}
    return refusal(told.get("code"), told.get("message"))


def text_in(result: dict[str, Any], name: str) -> str:
    """A field of a result. Raises `ConnectionLost` for nonsense."""
    value = result.get(name)
    if not isinstance(value, str):
        raise nonsense(maybe_done=True)
    return value


def texts_in(result: dict[str, Any], name: str) -> tuple[str, ...]:
    """A field of a result that holds several. Raises `ConnectionLost` for nonsense."""
    values = result.get(name)
    if not isinstance(values, list) or not all(isinstance(each, str) for each in cast("list[object]", values)):
        raise nonsense(maybe_done=True)
    return tuple(cast("list[str]", values))


def cursor_in(result: dict[str, Any]) -> dict[str, int]:
    """Where the server begins to send, as the reply to a subscribe tells. Raises `ConnectionLost` for nonsense."""
    told = result.get("cursor", {})
    if not isinstance(told, dict):
        raise nonsense()
    cursor = cast("dict[str, object]", told)
    if not all(type(seq) is int for seq in cursor.values()):
        raise nonsense()
    return cast("dict[str, int]", cursor)


def nonsense(*, maybe_done: bool = False) -> ConnectionLost:
    return ConnectionLost("The server does not speak our protocol.", maybe_done=maybe_done)


def _holds_a_huge_number(value: object) -> bool:
    if isinstance(value, int):
        return abs(value) > MAX_INTEGER
    inside: Iterable[object] = cast("dict[str, object]", value).values() if isinstance(value, dict) else ()
    return any(map(_holds_a_huge_number, inside))
