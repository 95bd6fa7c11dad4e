"""Authentication of HTTP requests: one function for every route."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import Request

    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess


def authenticate(request: Request, access: SessionAccess) -> User:
    """The user who asks; the guard has charged it for the request. Raises `Unauthorized`."""
    return access.policy.admit(request.headers.get("authorization"))
