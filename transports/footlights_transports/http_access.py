"""Authentication of HTTP requests: one function for every route."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from footlights.errors import Busy
from footlights_transports.http_errors import Refused
from footlights_transports.http_guard import CONNECTION, body_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from footlights_transports.desk import FrontDesk
    from footlights_transports.gate import User
    from footlights_transports.http_connection import HttpConnection


def authenticate(request: Request, desk: FrontDesk) -> User:
    """The user who asks, charged for the request.

    Raises `Unauthorized`, `RateLimited` if this user asks too often or for too much, and `Refused` if it has enough
    connections.
    """
    user = desk.gate.admit(request.headers.get("authorization"))
    connection = cast("HttpConnection", request.scope["state"][CONNECTION])
    try:
        connection.belong_to(user)
    except Busy as error:
        raise Refused(503, error) from None
    desk.take_command(user, len(body_of(request)))
    return user
