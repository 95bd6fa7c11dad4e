"""Errors of the servers, and errors as clients read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from footlights.errors import FootlightsError, InvalidCommand, TooLarge

if TYPE_CHECKING:
    from footlights.events import JsonValue

CommandId: TypeAlias = str | int | None
"""The client's own id of a command; None for a command whose id could not be read."""

WIRE_CODES = frozenset(
    {
        "invalid_command",
        "session_in_use",
        "unknown_session",
        "unknown_turn",
        "session_closed",
        "busy",
        "commit_pending",
        "too_large",
        "rate_limited",
        "unauthorized",
        "unsupported_version",
        "invalid_world",
        "unknown_world",
        "internal",
    }
)
"""The codes of error replies. Every other failure is `internal`."""


class RateLimited(FootlightsError):
    """Too many commands in too short a time. The command was not performed.

    `retry_after` is the number of seconds until one more is allowed, as far as that is known.
    """

    code = "rate_limited"

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Unauthorized(FootlightsError):
    """The token is missing, unknown, or does not allow this."""

    code = "unauthorized"


class UnsupportedVersion(FootlightsError):
    """The client wants a version of the protocol that the server does not have."""

    code = "unsupported_version"


class InvalidWorld(InvalidCommand):
    """The address names a world, and the name cannot be one."""

    code = "invalid_world"


class UnknownWorld(FootlightsError):
    """There is no world of that name, and the request may not create it."""

    code = "unknown_world"


class BadFrame(InvalidCommand):
    """A frame or body that is not a command. `command_id` is its id, if that could be read."""

    def __init__(self, message: str, command_id: CommandId = None) -> None:
        super().__init__(message)
        self.command_id = command_id


def error_json(error: FootlightsError) -> dict[str, JsonValue]:
    """Code and message of an error as clients read it. An internal error shows only its code."""
    if error.code in WIRE_CODES and error.code != "internal":
        return {"code": error.code, "message": str(error)}
    return {"code": "internal", "message": f"Something failed here: {error.code}."}


def too_large(limit: int) -> TooLarge:
    """The error that closes a connection after a frame that is too large."""
    return TooLarge(f"A frame may have no more than {limit} bytes.")
