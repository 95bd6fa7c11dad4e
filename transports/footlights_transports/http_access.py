"""Authentication of HTTP requests: one function for every route."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights_transports.http_guard import body_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from footlights_transports.desk import FrontDesk
    from footlights_transports.gate import User


def authenticate(request: Request, desk: FrontDesk) -> User:
    """The user who asks, charged for the request.

    Raises `Unauthorized`, and `RateLimited` if this user asks too often or for too much.
    """
    user = desk.gate.admit(request.headers.get("authorization"))
    desk.take_command(user, len(body_of(request)))
    return user
