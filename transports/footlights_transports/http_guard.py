"""What every request passes before a route sees it: the pace, the host, the origin, and the size of its body.

Bodies are read whole, within `max_frame_bytes` and `handshake_timeout`, and routes find them with `body_of`. Pages of
origins on the gate's list may read the answers (CORS), and any page those that are public. A request that is refused
here never reaches a route.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import trio
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from footlights.errors import Busy, FootlightsError, InvalidCommand, TooLarge
from footlights_transports.dialects.native import Unauthorized, UnsupportedVersion
from footlights_transports.http_errors import Refused, error_response

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from typing import Protocol

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from footlights_transports.gate import Gate

    class Connection(Protocol):
        """What the guard needs to know of the connection that a request came over."""

        def take_request(self) -> None:
            """Count one more request. Raises `RateLimited` or `Busy`."""
            ...

        def answering(self) -> AbstractContextManager[None]:
            """Around the answer to a request."""
            ...


CONNECTION = "footlights.connection"
"""Where the connection is found in the state of a scope."""

PUBLIC = frozenset({"/footlights.js", "/healthz", "/v1/openapi.json"})
"""Addresses that any page may read: they are the same for everybody, and say nothing of anybody."""

_BODY = "footlights.body"
_DISCARDED_BYTES = 16_777_216
"""So much of a body that is too large is read and forgotten: who still sends could not hear the answer."""
_PREFLIGHT = {
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-allow-headers": "authorization, content-type, last-event-id",
    "access-control-max-age": "600",
}


def body_of(request: Request) -> bytes:
    """The whole body of a request."""
    return cast("bytes", request.scope[_BODY])


class HttpGuard:
    """An ASGI application in front of another."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self._app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        connection = cast("Connection", scope["state"][CONNECTION])
        with connection.answering():
            await self._answer(connection, scope, receive, send)

    async def _answer(self, connection: Connection, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        try:
            self._check_place(headers.get("host"), None if scope["path"] in PUBLIC else origin)
            send = send if origin is None else _telling(origin, send)
            _check_request(connection, scope)
            body = await self._read_body(receive)
        except (FootlightsError, Refused) as error:
            await _refuse(error, scope, receive, send)
            return
        if body is None:
            return
        scope[_BODY] = body
        if origin is not None and scope["method"] == "OPTIONS":
            await Response(status_code=204, headers=_PREFLIGHT)(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _check_place(self, host: str | None, origin: str | None) -> None:
        try:
            self._gate.check_host(host)
            self._gate.check_origin(origin)
        except Unauthorized as error:
            raise Refused(403, error) from None

    async def _read_body(self, receive: Receive) -> bytes | None:
        """The body; None if the client went away."""
        limits = self._gate.limits
        body = bytearray()
        size = 0
        with trio.move_on_after(limits.handshake_timeout) as patience:
            while size <= _DISCARDED_BYTES:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                size += len(message["body"])
                if size <= limits.max_frame_bytes:
                    body += message["body"]
                if not message["more_body"]:
                    break
        if patience.cancelled_caught:
            raise Refused(408, InvalidCommand(f"A body must come within {limits.handshake_timeout:g} seconds."))
        if size > limits.max_frame_bytes:
            raise TooLarge(f"A body may have no more than {limits.max_frame_bytes} bytes.")
        return bytes(body)


def _check_request(connection: Connection, scope: Scope) -> None:
    try:
        connection.take_request()
    except Busy as error:
        raise Refused(503, error) from None
    if scope["http_version"] not in ("1.0", "1.1"):
        raise Refused(505, UnsupportedVersion("This server speaks HTTP/1.1."))


def _telling(origin: str, send: Send) -> Send:
    """The same, with the headers that let a page of that origin read the answer."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["access-control-allow-origin"] = origin
            headers.add_vary_header("origin")
        await send(message)

    return send_with_headers


async def _refuse(error: FootlightsError | Refused, scope: Scope, receive: Receive, send: Send) -> None:
    response = error_response(error.error, error.status) if isinstance(error, Refused) else error_response(error)
    async with trio.open_nursery() as nursery:
        # A server that finds nobody reading the rest of the body would wait for that, and never close.
        nursery.start_soon(_discard, receive)
        await response(scope, receive, send)
        nursery.cancel_scope.cancel(reason="the request is answered")


async def _discard(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
