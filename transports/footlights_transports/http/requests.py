"""Reading of HTTP requests: the path, and the body, which the guard has read whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from footlights.errors import InvalidCommand
from footlights_transports.http.errors import Refused
from footlights_transports.json_text import read_object

if TYPE_CHECKING:
    from starlette.requests import Request

BODY = "footlights.body"
"""Key of the body in the scope of a request."""


def body_of(request: Request) -> bytes:
    """The whole body of a request."""
    return cast("bytes", request.scope[BODY])


def path_of(request: Request) -> dict[str, str]:
    """The names in the path of a request."""
    return cast("dict[str, str]", request.path_params)


def json_body_of(request: Request) -> dict[str, Any]:
    """The JSON object in the body. Raises `BadFrame`, and `Refused` for a body of another media type."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise Refused(415, InvalidCommand("A body must be JSON: Content-Type: application/json"))
    return read_object(body_of(request))
