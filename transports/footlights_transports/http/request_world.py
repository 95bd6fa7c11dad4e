"""World of an HTTP request, which the guard has found."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from footlights_transports.worlds.world import opened

if TYPE_CHECKING:
    from starlette.requests import Request

    from footlights_transports.worlds.world import World

WORLD = "footlights.world"
"""Key of the world in the scope of a request: an open one, or the name of one that was not opened for it."""


def world_of(request: Request) -> World:
    """The world of a request. Raises `UnknownWorld` if it is not open; then the request was a public one."""
    return opened(cast("World | str", request.scope[WORLD]))
