"""Operations: the routes of a view, declared at their handlers. Routes and the OpenAPI document are made from them.

    class SessionRoutes:
        @Operation("POST", "/v1/sessions", {201: answer("The session.", object_of({"session_id": TEXT}))}, body=...)
        async def start_session(self, request: Request, user: User) -> Response:
            \"\"\"Start a session.\"\"\"

The name of the handler becomes the operationId, its docstring the summary. A handler is called with the user, which
this module authenticates, unless the operation is public.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define, field
from starlette.exceptions import HTTPException
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from footlights_transports.access.policy import AccessPolicy
    from footlights_transports.http.openapi import Json

_H = TypeVar("_H", bound="Callable[..., Awaitable[Response]]")
_DECLARED = "__operation__"
_NAME: Json = {"type": "string", "minLength": 1}


@define(eq=False)
class Operation:
    """Decorator of a handler: one method of one path, and what the OpenAPI document says of it."""

    method: str
    path: str
    answers: Mapping[int, Json]
    refused: Collection[int] = ()
    """Statuses of refusals besides those that any request may get."""
    body: str | None = field(default=None, kw_only=True)
    """Name of the schema of the body."""
    body_required: bool = field(default=True, kw_only=True)
    parameters: Sequence[Json] = field(default=(), kw_only=True)
    names: Json = field(default=_NAME, kw_only=True)
    """Schema of the names in the path."""
    public: bool = field(default=False, kw_only=True)
    in_world: bool = field(default=True, kw_only=True)
    """Whether a world has to be open for it. A public operation opens none."""
    handler: str = field(default="", init=False)
    summary: str = field(default="", init=False)

    def __call__(self, handler: _H) -> _H:
        self.handler, self.summary = handler.__name__, " ".join((handler.__doc__ or "").split())
        setattr(handler, _DECLARED, self)
        return handler

    @property
    def operation_id(self) -> str:
        first, *others = self.handler.split("_")
        return first + "".join(map(str.capitalize, others))

    @property
    def names_in_path(self) -> list[str]:
        return re.findall(r"{(\w+)}", self.path)

    @property
    def is_endless(self) -> bool:
        """Whether it answers with a stream of events, which has no end that a HEAD request could wait for."""
        answers = cast("Mapping[int, Any]", self.answers)
        return self.method == "GET" and any("text/event-stream" in each.get("content", ()) for each in answers.values())


def operations_of(*kinds: type) -> list[Operation]:
    """What the handlers of these classes declare, in the order of their definition."""
    return [getattr(each, _DECLARED) for kind in kinds for each in vars(kind).values() if hasattr(each, _DECLARED)]


def routes_of(kind: type, policy: AccessPolicy, handler_of: Callable[[Request], object]) -> list[Route]:
    """A route for each operation of this class. `handler_of` finds the object of that class for a request."""
    operations = operations_of(kind)
    endpoints = [_endpoint(each, operations, policy, handler_of) for each in operations]
    # A name `path` is the rest of the path, with its slashes.
    paths = [each.path.replace("{path}", "{path:path}") for each in operations]
    return [
        Route(path, answer, methods=[each.method])
        for path, each, answer in zip(paths, operations, endpoints, strict=True)
    ]


def _endpoint(
    declared: Operation,
    operations: Sequence[Operation],
    policy: AccessPolicy,
    handler_of: Callable[[Request], object],
) -> Callable[[Request], Awaitable[Response]]:
    allowed = {"allow": ", ".join(each.method for each in operations if each.path == declared.path)}

    async def answer(request: Request) -> Response:
        if declared.is_endless and request.method == "HEAD":  # Starlette adds HEAD to every GET
            raise HTTPException(405, headers=allowed)
        # The guard has charged this user for the request. The token may have been revoked since.
        user = () if declared.public else (policy.admit(request.headers.get("authorization")),)
        handler: Callable[..., Awaitable[Response]] = getattr(handler_of(request), declared.handler)
        return await handler(request, *user)

    return answer
