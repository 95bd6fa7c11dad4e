"""Reading of HTTP requests: the world, the path, and the body, which the guard has read whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from footlights.errors import InvalidCommand
from footlights_transports.errors import UnknownWorld
from footlights_transports.http.errors import Refused
from footlights_transports.json_text import read_object

if TYPE_CHECKING:
    from starlette.requests import Request

    from footlights_transports.worlds.world import World

BODY = "footlights.body"
"""Key of the body in the scope of a request."""
WORLD = "footlights.world"
"""Key of the world in the scope of a request: an open one, or the name of one that was not opened for it."""


def body_of(request: Request) -> bytes:
    """The whole body of a request."""
    return cast("bytes", request.scope[BODY])


def world_of(request: Request) -> World:
    """The world of a request. Raises `UnknownWorld` if it is not open; then the request was a public one."""
    world = cast("World | str", request.scope[WORLD])
    if isinstance(world, str):
        raise UnknownWorld("This world is not open now.")
    return world


def path_of(request: Request) -> dict[str, str]:
    """The names in the path of a request."""
    return cast("dict[str, str]", request.path_params)


def json_body_of(request: Request) -> dict[str, Any]:
    """The JSON object in the body. Raises `BadFrame`, and `Refused` for a body of another media type."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise Refused(415, InvalidCommand("A body must be JSON: Content-Type: application/json"))
    return read_object(body_of(request))
