"""The guard: the checks of a request that come before its route.

It takes the world out of the path, and checks the host, the origin, the rate, the framing, and then the token, before
it reads a byte of the body or opens the world. The body
of a request without a valid token is not read at all. Other bodies are read whole, within `max_frame_bytes` and
`handshake_timeout`. Pages of the policy's origins may read responses (CORS), and pages of any origin those of public
paths. A request that is refused here never reaches a route. A response to a request whose body was not read closes the
connection.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, cast

import trio
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from footlights.errors import Busy, FootlightsError, InvalidCommand, TooLarge
from footlights_transports.errors import Unauthorized, UnsupportedVersion
from footlights_transports.http.errors import Refused, error_response
from footlights_transports.http.request_world import WORLD
from footlights_transports.http.requests import BODY
from footlights_transports.worlds.names import MAIN, split_address

if TYPE_CHECKING:
    from collections.abc import Collection
    from contextlib import AbstractContextManager
    from typing import Protocol

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from footlights_transports.access.policy import User
    from footlights_transports.worlds.world import World, Worlds

    class Connection(Protocol):
        """The connection of a request, as the guard uses it."""

        def take_request(self) -> None:
            """Count one more request. Raises `RateLimited`."""
            ...

        def belong_to(self, user: User) -> None:
            """Count the connection for this user; it is pending no more. Raises `Busy`."""
            ...

        async def want_body(self) -> None:
            """Ask the client for the body, if it waits for that."""
            ...

        def answering(self) -> AbstractContextManager[None]:
            """A context manager around the response to a request."""
            ...


_WRONG_PLACE = 403
"""The status of a refused host or origin."""

CONNECTION = "footlights.connection"
"""Key of the connection in the state of a scope."""

_PREFLIGHT = {
    "access-control-allow-methods": "GET, POST, DELETE",
    "access-control-allow-headers": "authorization, content-type, idempotency-key, last-event-id",
    "access-control-max-age": "600",
}


class HttpGuard:
    """An ASGI application in front of another. Pages of any origin may read the public paths."""

    def __init__(self, app: ASGIApp, worlds: Worlds, public: Collection[str], without_world: Collection[str]) -> None:
        self._app = app
        self._without_world = without_world
        self._public = public
        self._worlds = worlds
        self._admission = worlds.admission
        self._policy = worlds.admission.policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = cast("Connection", scope["state"][CONNECTION])
        with connection.answering():
            await self._answer(connection, scope, receive, send)

    async def _answer(self, connection: Connection, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        app, body = self._app, b""
        upgrades = _upgrades(headers)
        # Frames may follow a request for a WebSocket. They are not read, like the body of a refused request.
        unread = "websocket" in upgrades or "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        world: World | str = MAIN
        try:
            world, scope["path"] = split_address(scope["path"])
            self._check_place(headers.get("host"), None if scope["path"] in self._public else origin)
            send = send if origin is None else _telling(origin, send)
            connection.take_request()
            _check_framing(scope["http_version"], headers, upgrades)
            user = self._user(headers.get("authorization"))
            if user is not None:
                if self._policy.wants_tokens:
                    _take_place(connection, user)
                if scope["path"] not in self._public:
                    self._admission.take_command(user)
                if unread:
                    self._admission.check_bytes(user)
                read = await self._read_body(connection, user, headers, receive)
                if read is None:
                    return
                body, unread = read, False
                _take_place(connection, user)
            if user is not None and scope["path"] not in self._without_world:
                world = await self._find(world, scope["method"])
            else:
                world = next((each for each in self._worlds.opened() if each.name == world), world)
        except (FootlightsError, Refused) as error:
            app = _refusal(error)
            why = str(error) if app.status_code == _WRONG_PLACE else None
            self._admission.incidents.refused(f"http_{app.status_code}", why)
        else:
            if origin is not None and scope["method"] == "OPTIONS":
                app = Response(status_code=204, headers=_PREFLIGHT)
        scope[BODY], scope[WORLD] = body, world
        with nullcontext() if isinstance(world, str) else world.entered():
            if unread:
                await _answer_unread(app, scope, receive, send)
            else:
                await app(scope, receive, send)

    async def _find(self, name: str, method: str) -> World:
        try:
            return await self._worlds.find(name, may_create=method == "POST")
        except Busy as error:
            raise Refused(503, error) from None

    def _user(self, authorization: str | None) -> User | None:
        """The user; None without a valid token, and then the body is not read. Public routes need no user."""
        try:
            return self._policy.admit(authorization)
        except Unauthorized:
            return None

    def _check_place(self, host: str | None, origin: str | None) -> None:
        try:
            self._policy.check_host(host)
            if not _is_own(origin, host):
                self._policy.check_origin(origin)
        except Unauthorized as error:
            raise Refused(_WRONG_PLACE, error) from None

    async def _read_body(self, connection: Connection, user: User, headers: Headers, receive: Receive) -> bytes | None:
        """The body, charged to its user as it arrives; None if the client disconnected.

        Raises `TooLarge`, or `Refused` if it takes too long.
        """
        limits, budget = self._policy.limits, self._admission.byte_budget(user)
        too_large = TooLarge(f"A body may have no more than {limits.max_frame_bytes} bytes.")
        if int(headers.get("content-length", "0")) > limits.max_frame_bytes:
            raise too_large
        await connection.want_body()
        body = bytearray()
        with trio.move_on_after(limits.handshake_timeout):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                body += message["body"]
                budget.settle(0, len(message["body"]), trio.current_time())
                if len(body) > limits.max_frame_bytes:
                    raise too_large
                if not message["more_body"]:
                    return bytes(body)
        raise Refused(408, InvalidCommand(f"A body must come within {limits.handshake_timeout:g} seconds."))


def _is_own(origin: str | None, host: str | None) -> bool:
    """Whether a page of this server asks. It has no more rights than any program, because a token is no cookie."""
    return host is not None and origin in (f"http://{host}", f"https://{host}")


def _upgrades(headers: Headers) -> set[str]:
    """The protocols to which the client asks to switch."""
    return {each.strip().lower() for value in headers.getlist("upgrade") for each in value.split(",")}


def _check_framing(http_version: str, headers: Headers, upgrades: Collection[str]) -> None:
    """Raises `Refused` for a request of another protocol, and for one whose end is ambiguous (RFC 9112, 6.1)."""
    if http_version not in ("1.0", "1.1") or "h2c" in upgrades:
        raise Refused(505, UnsupportedVersion("This server speaks HTTP/1.1."))
    if "websocket" in upgrades:
        raise Refused(400, InvalidCommand("WebSockets are served at another port."))
    if "transfer-encoding" in headers and ("content-length" in headers or http_version == "1.0"):
        raise Refused(
            400, InvalidCommand("A request has either a Content-Length or, in HTTP/1.1, a Transfer-Encoding.")
        )


def _take_place(connection: Connection, user: User) -> None:
    try:
        connection.belong_to(user)
    except Busy as error:
        raise Refused(503, error) from None


def _telling(origin: str, send: Send) -> Send:
    """Send with the headers that let a page of that origin read the response."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["access-control-allow-origin"] = origin
            headers.add_vary_header("origin")
        await send(message)

    return send_with_headers


def _refusal(error: FootlightsError | Refused) -> Response:
    return error_response(error.error, error.status) if isinstance(error, Refused) else error_response(error)


async def _answer_unread(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Respond to a request whose body was not read, and close the connection."""

    async def send_and_close(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)["connection"] = "close"
        await send(message)

    async with trio.open_nursery() as nursery:
        # Hypercorn waits until the application has taken the body as far as it came, also after the response.
        nursery.start_soon(_discard, receive)
        await app(scope, receive, send_and_close)
        nursery.cancel_scope.cancel(reason="the request is answered")


async def _discard(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
