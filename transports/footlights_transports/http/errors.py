"""Error responses of HTTP: a status, and a JSON body with the reason.

    {"error": {"code": "unknown_session", "message": "There is no open session with that id."}}

The codes are those of the native protocol, and the status follows from the code. A request that is not a command at all
(an unknown path, a wrong method, a body of the wrong type) is `invalid_command` with HTTP's own status.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from starlette.responses import Response

from footlights.authority.world import plain_view
from footlights.errors import FootlightsError, InvalidCommand
from footlights_transports.errors import error_json

if TYPE_CHECKING:
    from collections.abc import Mapping

STATUS: Mapping[str, int] = {
    "invalid_command": 400,
    "invalid_world": 400,
    "unsupported_version": 400,
    "unauthorized": 401,
    "unknown_session": 404,
    "unknown_turn": 404,
    "unknown_world": 404,
    "session_in_use": 409,
    "session_closed": 409,
    "busy": 409,
    "commit_pending": 409,
    "too_large": 413,
    "rate_limited": 429,
}
"""The status of each code. Any other code is 500."""

_ADVICE: Mapping[int, dict[str, str]] = {
    401: {"www-authenticate": "Bearer"},
    429: {"retry-after": "1"},
    503: {"connection": "close"},
    505: {"connection": "close"},
}
_SENTENCES: Mapping[int, str] = {
    404: "There is nothing at this address.",
    405: "This address does not know that method.",
}


class Refused(Exception):
    """An error with another status than that of its code."""

    def __init__(self, status: int, error: FootlightsError) -> None:
        super().__init__(str(error))
        self.status = status
        self.error = error


def status_of(error: FootlightsError, statuses: Mapping[type[FootlightsError], int], otherwise: int) -> int:
    """The status of the error's class, or of the nearest class that it inherits from."""
    return next((statuses[kind] for kind in type(error).__mro__ if kind in statuses), otherwise)


def json_response(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(orjson.dumps(value, default=plain_view), status, headers, media_type="application/json")


def error_response(error: FootlightsError, status: int | None = None) -> Response:
    """The response to an error. An internal error shows only its code."""
    told = error_json(error)
    if status is None:
        status = STATUS.get(str(told["code"]), 500)
    return json_response({"error": told}, status, _ADVICE.get(status))


def http_refusal(status: int, headers: Mapping[str, str] | None = None) -> Response:
    """The response to a request that HTTP itself refuses."""
    sentence = _SENTENCES.get(status, "The request cannot be answered.")
    return json_response({"error": error_json(InvalidCommand(sentence))}, status, headers)
