"""The native protocol over WebSocket, and beside it the chat gateway.

    async with trio.open_nursery() as nursery:
        listening = await nursery.start(partial(serve_ws, access, host="127.0.0.1", port=7600))

A connection that fails takes no other with it. Nothing that a client sent is ever logged.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import trio
from trio_websocket import ConnectionClosed, wrap_server_stream

from footlights.errors import Busy, FootlightsError, InvalidCommand, UnknownSession
from footlights.failures import contained, leaves
from footlights.token_bucket import TokenBucket
from footlights_transports.access.idle import close_idle_sessions
from footlights_transports.http.h11_errors import hold_no_input
from footlights_transports.server.listening import Listening
from footlights_transports.views.kgent.connection import Welcome
from footlights_transports.views.kgent.gateway import UnknownAgent
from footlights_transports.views.native.protocol import SUBPROTOCOL
from footlights_transports.websocket.broadcaster import Broadcaster
from footlights_transports.websocket.connection import NOT_ALLOWED, WsConnection
from footlights_transports.websocket.handshake import Refused, Visitor, judge
from footlights_transports.websocket.stream import WireStream

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Collection, Sequence
    from typing import TypeAlias

    from trio_websocket import WebSocketRequest

    from footlights_transports.access.policy import User, WireLimits
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.views.kgent.connection import ObserveConnection, PerturbConnection
    from footlights_transports.views.kgent.gateway import KgentGateway
    from footlights_transports.websocket.handshake import Admitted

    Client: TypeAlias = WsConnection | PerturbConnection | ObserveConnection

_JSON = [(b"content-type", b"application/json")]
_MALFORMED = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

# What it says below that may be a client's own words: the reason of a close, what is in a ping.
logging.getLogger("trio-websocket").addFilter(lambda record: record.levelno >= logging.WARNING)


async def serve_ws(
    access: SessionAccess,
    *,
    host: str,
    port: int,
    tls: ssl.SSLContext | None = None,
    goodbye: float = 1.0,
    kgent: KgentGateway | None = None,
    task_status: trio.TaskStatus[Listening] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled; then clients have `goodbye` seconds to take what waits for them and close.

    With `kgent`, the paths of that gateway are served too, and its dialogues run here. Port 0 is any free one. Raises
    `RegistrationError` for an address where the policy forbids to listen, and `OSError` for one that cannot be had.
    """
    hold_no_input()
    access.policy.check_address(host)
    listeners = await trio.open_tcp_listeners(port, host=host)
    if port == 0:
        # A name may have several addresses, and each would get a port of its own.
        _close(listeners[1:])
        del listeners[1:]
    server = WsServer(access, goodbye, kgent)

    async def accept() -> None:
        with trio.CancelScope() as accepting:
            task_status.started(Listening(listeners[0].socket.getsockname()[1], accepting.cancel))
            await trio.serve_listeners(server.serve, _secured(listeners, tls), handler_nursery=server.connections)

    try:
        await server.run(accept)
    finally:
        _close(listeners)


class WsServer:
    """Every connection of one server. One that fails takes no other with it."""

    connections: trio.Nursery
    """Where `serve` is to run, once `run` accepts."""

    def __init__(self, access: SessionAccess, goodbye: float, kgent: KgentGateway | None = None) -> None:
        self._access = access
        self._goodbye = goodbye
        self._kgent = kgent
        self._broadcaster = Broadcaster(access.encodings.encode)
        self._strangers: dict[trio.CancelScope, User | None] = {}
        """Those who shake hands, the one who has taken longest first; and who they are, once they have said it."""
        self._clients: dict[Client, User] = {}
        self._opened = trio.Event()
        self._closing = trio.Event()

    @property
    def _limits(self) -> WireLimits:
        return self._access.policy.limits  # they may change

    async def run(self, accept: Callable[[], Awaitable[None]]) -> None:
        """Accept, and go on when that ends, until cancelled; then let the clients go."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_connections, name="ws connections")
            nursery.start_soon(close_idle_sessions, self._access, name="idle sessions")
            self._access.revocation_listeners.append(self._revoke)
            try:
                if self._kgent is not None:
                    await nursery.start(self._kgent.keep)
                await self._opened.wait()
                await accept()
                await trio.sleep_forever()
            finally:
                self._access.revocation_listeners.remove(self._revoke)
                self._closing.set()

    def _revoke(self, users: Collection[User]) -> None:
        """Let the clients go that came with a token which counts no more."""
        for stranger, user in self._strangers.items():
            if user in users:
                stranger.cancel(reason="the token was revoked")
        for client, user in self._clients.items():
            if user in users:
                client.dismiss(NOT_ALLOWED, "the token was revoked", self._goodbye)

    async def _keep_connections(self) -> None:
        """Let connections live until the server closes, and then a moment longer."""
        with trio.CancelScope(shield=True) as patience:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._broadcaster.run, name="ws broadcaster")
                async with trio.open_nursery() as self.connections:
                    self._opened.set()
                    await self._closing.wait()
                    patience.deadline = trio.current_time() + self._goodbye
                    for stranger in self._strangers:
                        stranger.cancel(reason="the server goes away")
                    for client in self._clients:
                        client.leave()
                nursery.cancel_scope.cancel(reason="every connection is gone")

    async def serve(self, stream: trio.abc.Stream) -> None:
        """One connection, from its first byte to its last."""
        if self._closing.is_set():
            return
        self._make_room_for_a_stranger()
        with contained(self._fail):
            await self._serve(stream)

    def _fail(self, error: BaseException) -> None:
        if not all(isinstance(leaf, ConnectionClosed) for leaf in leaves(error)):
            self._access.incidents.failed("ws_connection", error, logging.WARNING)

    async def _serve(self, stream: trio.abc.Stream) -> None:
        patience = trio.CancelScope()
        wire = WireStream(stream, patience.cancel, self._limits.max_frame_bytes)
        client, last_words = None, b""
        with ExitStack() as place:
            try:
                async with trio.open_nursery() as nursery:
                    client = await self._meet(wire, nursery, patience, place)
                    if client is None:
                        nursery.cancel_scope.cancel(reason="nobody came in")
                    else:
                        await self._host(*client)
            except* UnicodeError as errors:
                if client is not None:
                    raise
                # wsproto decodes some headers without a check, and leaves the handshake unanswered.
                self._access.incidents.failed("ws_handshake", errors, logging.WARNING)
                last_words = _MALFORMED
        with trio.move_on_after(self._goodbye), suppress(trio.BrokenResourceError):
            fault = None if client is None else client[0].fault
            if fault is not None:
                await wire.refuse(fault.code, fault.reason)
            if last_words:
                await stream.send_all(last_words)
            await stream.aclose()

    def _make_room_for_a_stranger(self) -> None:
        """The one that has been there longest goes.

        If newcomers went, whoever connects and says nothing would lock everybody else out. An honest one has shaken
        hands long before as many others have come.
        """
        if len(self._strangers) >= self._limits.max_handshakes:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.cancel(reason="too many have not shaken hands")

    async def _host(self, client: Client, user: User) -> None:
        self._clients[client] = user
        try:
            await client.run()
        finally:
            del self._clients[client]

    async def _meet(
        self, wire: WireStream, nursery: trio.Nursery, patience: trio.CancelScope, place: ExitStack
    ) -> tuple[Client, User] | None:
        """The client and whose it is, if it shakes hands in time and may come in; then it has a place."""
        self._strangers[patience] = None
        patience.deadline = trio.current_time() + self._limits.handshake_timeout
        try:
            with patience:
                request = await wrap_server_stream(
                    nursery, wire, max_message_size=self._limits.max_frame_bytes, receive_buffer_size=None
                )
                verdict = self._judge(request, place)
                if not isinstance(verdict, Refused):
                    self._strangers[patience] = verdict.user
                return await self._answer(request, verdict, wire, nursery)
        finally:
            self._strangers.pop(patience, None)
        self._access.incidents.refused("ws_handshake_incomplete")
        return None

    async def _answer(
        self,
        request: WebSocketRequest,
        verdict: Admitted | Welcome | Refused,
        wire: WireStream,
        nursery: trio.Nursery,
    ) -> tuple[Client, User] | None:
        if isinstance(verdict, Refused):
            self._access.incidents.refused(f"ws_handshake_{verdict.error['code']}")
            await request.reject(verdict.status, extra_headers=_JSON.copy(), body=verdict.body)
            return None
        if isinstance(verdict, Welcome):
            with verdict:
                socket = await request.accept(subprotocol=verdict.subprotocol, extra_headers=verdict.headers)
        else:
            socket = await request.accept(subprotocol=SUBPROTOCOL)
        wire.let_frames_pass(self._byte_budget(), self._access.byte_budget(verdict.user))
        if isinstance(verdict, Welcome):
            return verdict.connection(socket, wire, nursery), verdict.user
        return WsConnection(self._access, self._broadcaster, socket, wire, verdict, nursery), verdict.user

    def _byte_budget(self) -> TokenBucket:
        burst = self._limits.byte_burst
        return TokenBucket(burst, burst / self._limits.bytes_per_second, trio.current_time())

    def _judge(self, request: WebSocketRequest, place: ExitStack) -> Admitted | Welcome | Refused:
        verdict = judge(request, self._access.policy, has_gateway=self._kgent is not None)
        if isinstance(verdict, Refused):
            return verdict
        try:
            self._access.connect(verdict.user)
        except Busy as error:
            return Refused(503, error)
        place.callback(self._access.disconnect, verdict.user)
        return self._welcome(verdict) if isinstance(verdict, Visitor) else verdict

    def _welcome(self, visitor: Visitor) -> Welcome | Refused:
        assert self._kgent is not None, "without a gateway nobody visits it"
        try:
            return Welcome(self._kgent, visitor)
        except (UnknownAgent, UnknownSession) as error:
            return Refused(404, error)
        except InvalidCommand as error:
            return Refused(400, error)
        except FootlightsError as error:
            return Refused(503, error)


def _secured(
    listeners: Sequence[trio.SocketListener], tls: ssl.SSLContext | None
) -> list[trio.abc.Listener[trio.abc.Stream]]:
    if tls is None:
        return list(listeners)
    return [trio.SSLListener(each, tls, https_compatible=True) for each in listeners]


def _close(listeners: Sequence[trio.SocketListener]) -> None:
    for each in listeners:
        each.socket.close()
