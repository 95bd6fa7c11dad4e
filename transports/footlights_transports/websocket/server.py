"""WebSocket server: the native protocol and, if there is one, the chat gateway.

    async with trio.open_nursery() as nursery:
        listening = await nursery.start(partial(serve_ws, access, host="127.0.0.1", port=7600))

A connection that fails ends no other. Nothing that a client sent is ever logged.
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
from footlights_transports.server.acceptor import Acceptor, PendingConnection
from footlights_transports.views.kgent.connection import AcceptedHandshake
from footlights_transports.views.kgent.gateway import UnknownAgent
from footlights_transports.views.native.connection import NativeConnection
from footlights_transports.views.native.protocol import SUBPROTOCOL
from footlights_transports.websocket.broadcaster import Broadcaster
from footlights_transports.websocket.connection import NOT_ALLOWED
from footlights_transports.websocket.handshake import Refused, Visitor, judge
from footlights_transports.websocket.stream import WireStream

if TYPE_CHECKING:
    import ssl
    from collections.abc import Collection
    from typing import TypeAlias

    from trio_websocket import WebSocketRequest

    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.server.listening import Listening
    from footlights_transports.views.kgent.connection import ObserveConnection, PerturbConnection
    from footlights_transports.views.kgent.gateway import KgentGateway
    from footlights_transports.websocket.handshake import Admitted

    Client: TypeAlias = NativeConnection | PerturbConnection | ObserveConnection

_JSON = [(b"content-type", b"application/json")]
_MALFORMED = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


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
    """Serve until cancelled; then clients have `goodbye` seconds to read what waits for them and close.

    With `kgent`, the paths of that gateway are served too, and its dialogues run here. Port 0 is any free port. Raises
    `RegistrationError` for an address that the policy forbids, and `OSError` for one that cannot be bound.
    """
    quiet_trio_websocket()
    await WsServer(access, goodbye, kgent, tls).listen(host, port, task_status)


class WsServer(Acceptor):
    """The connections of one WebSocket server."""

    def __init__(
        self,
        access: SessionAccess,
        goodbye: float,
        kgent: KgentGateway | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(access, goodbye)
        self._kgent = kgent
        self._tls = tls
        self._broadcaster = Broadcaster(access.encodings.encode)
        self._clients: dict[Client, User] = {}

    async def start_views(self, nursery: trio.Nursery) -> None:
        if self._kgent is not None:
            await nursery.start(self._kgent.keep)

    def start_senders(self, nursery: trio.Nursery) -> None:
        nursery.start_soon(self._broadcaster.run, name="ws broadcaster")

    def revoke(self, users: Collection[User]) -> None:
        for pending in self.pending:
            if pending.user in users:
                pending.drop("the token was revoked")
        for client, user in self._clients.items():
            if user in users:
                client.dismiss(NOT_ALLOWED, "the token was revoked", self.goodbye)

    async def leave(self) -> None:
        for pending in self.pending:
            pending.drop("the server shuts down")
        for client in self._clients:
            client.leave()

    async def serve(self, stream: trio.abc.Stream) -> None:
        if self.closing.is_set():
            return
        if self._tls is not None:
            stream = trio.SSLStream(stream, self._tls, server_side=True, https_compatible=True)
        with contained(self._fail):
            await self._serve(stream)

    def _fail(self, error: BaseException) -> None:
        if not all(isinstance(leaf, ConnectionClosed) for leaf in leaves(error)):
            self.access.incidents.failed("ws_connection", error, logging.WARNING)

    async def _serve(self, stream: trio.abc.Stream) -> None:
        pending = PendingConnection()
        wire = WireStream(stream, pending.scope.cancel, self.limits.max_frame_bytes)
        client, last_words = None, b""
        with ExitStack() as place:
            try:
                async with trio.open_nursery() as nursery:
                    client = await self._meet(wire, nursery, pending, place)
                    if client is None:
                        nursery.cancel_scope.cancel(reason="the handshake failed")
                    else:
                        await self._host(*client)
            except* UnicodeError as errors:
                if client is not None:
                    raise
                # wsproto decodes some headers without a check, and does not answer the handshake if that fails.
                self.access.incidents.failed("ws_handshake", errors, logging.WARNING)
                last_words = _MALFORMED
        with trio.move_on_after(self.goodbye), suppress(trio.BrokenResourceError):
            fault = None if client is None else client[0].fault
            if fault is not None:
                await wire.refuse(fault.code, fault.reason)
            if last_words:
                await stream.send_all(last_words)
            await stream.aclose()

    async def _host(self, client: Client, user: User) -> None:
        self._clients[client] = user
        try:
            await client.run()
        finally:
            del self._clients[client]

    async def _meet(
        self, wire: WireStream, nursery: trio.Nursery, pending: PendingConnection, place: ExitStack
    ) -> tuple[Client, User] | None:
        """Perform the handshake. Returns the client and its user; None if it was refused or took too long.

        `place` then holds the count of the connection.
        """
        self.add_pending(pending)
        pending.scope.deadline = trio.current_time() + self.limits.handshake_timeout
        try:
            with pending.scope:
                request = await wrap_server_stream(
                    nursery, wire, max_message_size=self.limits.max_frame_bytes, receive_buffer_size=None
                )
                verdict = self._judge(request, place)
                if not isinstance(verdict, Refused):
                    pending.user = verdict.user
                return await self._answer(request, verdict, wire, nursery)
        finally:
            self.remove_pending(pending)
        self.access.incidents.refused("ws_handshake_incomplete")
        return None

    async def _answer(
        self,
        request: WebSocketRequest,
        verdict: Admitted | AcceptedHandshake | Refused,
        wire: WireStream,
        nursery: trio.Nursery,
    ) -> tuple[Client, User] | None:
        if isinstance(verdict, Refused):
            self.access.incidents.refused(f"ws_handshake_{verdict.error['code']}")
            await request.reject(verdict.status, extra_headers=_JSON.copy(), body=verdict.body)
            return None
        if isinstance(verdict, AcceptedHandshake):
            with verdict:
                socket = await request.accept(subprotocol=verdict.subprotocol, extra_headers=verdict.headers)
        else:
            socket = await request.accept(subprotocol=SUBPROTOCOL)
        wire.let_frames_pass(self._byte_budget(), self.access.byte_budget(verdict.user))
        if isinstance(verdict, AcceptedHandshake):
            return verdict.connection(socket, wire, nursery), verdict.user
        return NativeConnection(self.access, self._broadcaster, socket, wire, verdict, nursery), verdict.user

    def _byte_budget(self) -> TokenBucket:
        burst = self.limits.byte_burst
        return TokenBucket(burst, burst / self.limits.bytes_per_second, trio.current_time())

    def _judge(self, request: WebSocketRequest, place: ExitStack) -> Admitted | AcceptedHandshake | Refused:
        verdict = judge(request, self.access.policy, has_gateway=self._kgent is not None)
        if isinstance(verdict, Refused):
            return verdict
        try:
            self.access.connect(verdict.user)
        except Busy as error:
            return Refused(503, error)
        place.callback(self.access.disconnect, verdict.user)
        return self._welcome(verdict) if isinstance(verdict, Visitor) else verdict

    def _welcome(self, visitor: Visitor) -> AcceptedHandshake | Refused:
        assert self._kgent is not None, "only a gateway has visitors"
        try:
            return AcceptedHandshake(self._kgent, visitor)
        except (UnknownAgent, UnknownSession) as error:
            return Refused(404, error)
        except InvalidCommand as error:
            return Refused(400, error)
        except FootlightsError as error:
            return Refused(503, error)


def quiet_trio_websocket() -> None:
    """Drop the records of trio-websocket below WARNING: they quote clients (the reason of a close, data of a ping)."""
    logging.getLogger("trio-websocket").addFilter(_is_a_warning)


def _is_a_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING
