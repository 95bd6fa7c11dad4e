"""WebSocket server: the endpoints of all views.

    async with trio.open_nursery() as nursery:
        listening = await nursery.start(partial(serve_ws, access, mounts, host="127.0.0.1", port=7600))

A connection that fails ends no other. Nothing that a client sent is ever logged.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import trio
from trio_websocket import ConnectionClosed, wrap_server_stream

from footlights.errors import FootlightsError, InvalidCommand, UnknownSession
from footlights.failures import contained, leaves
from footlights.token_bucket import TokenBucket
from footlights_transports.errors import UnknownWorld
from footlights_transports.http.errors import status_of
from footlights_transports.server.acceptor import Acceptor, PendingConnection
from footlights_transports.websocket.broadcaster import Broadcaster
from footlights_transports.websocket.connection import NOT_ALLOWED
from footlights_transports.websocket.endpoint import Channel
from footlights_transports.websocket.handshake import Refused, check_client, check_endpoint
from footlights_transports.websocket.stream import WireStream
from footlights_transports.worlds.names import split_address
from footlights_transports.worlds.world import OneWorld

if TYPE_CHECKING:
    import ssl
    from collections.abc import Collection, Mapping, Sequence

    from trio_websocket import WebSocketConnection, WebSocketRequest

    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.server.listening import Listening
    from footlights_transports.views.base.view import Mount
    from footlights_transports.websocket.connection import Connection
    from footlights_transports.websocket.endpoint import Accepted
    from footlights_transports.websocket.handshake import Admitted
    from footlights_transports.worlds.world import Worlds

_JSON = [(b"content-type", b"application/json")]
_SETTINGS = {401: " Tokens are set by server.tokens_file or FOOTLIGHTS_TOKENS__NAME."}
_INCOMPLETE = (
    "A connection made no handshake: its client does not speak WebSocket, or was silent for wire.handshake_timeout, or "
    "more than wire.max_handshakes were pending."
)
_MALFORMED = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


async def serve_ws(
    access: SessionAccess,
    mounts: Sequence[Mount],
    *,
    host: str,
    port: int,
    tls: ssl.SSLContext | None = None,
    goodbye: float = 1.0,
    task_status: trio.TaskStatus[Listening] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled; then clients have `goodbye` seconds to read what waits for them and close.

    `mounts` are the views, whose tasks run in `run_views`. Port 0 is any free port. Raises `RegistrationError` for an
    address that the policy forbids, and `OSError` for one that cannot be bound.
    """
    await WsServer(OneWorld(access, mounts), goodbye, tls).listen(host, port, task_status)


class WsServer(Acceptor):
    """The connections of one WebSocket server."""

    def __init__(self, worlds: Worlds, goodbye: float = 1.0, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(worlds.admission, goodbye)
        self._worlds = worlds
        quiet_trio_websocket()
        self._statuses: Mapping[type[FootlightsError], int] = {
            **{kind: status for view in worlds.views for kind, status in view.errors.items()},
            UnknownSession: 404,
            UnknownWorld: 404,
            InvalidCommand: 400,
        }
        self._tls = tls
        self._broadcaster = Broadcaster(self.admission.encodings.encode)
        self._clients: dict[Connection, User] = {}

    def start_tasks(self, nursery: trio.Nursery) -> None:
        nursery.start_soon(self._worlds.keep, name="worlds")

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
            self.admission.incidents.failed("ws_connection", error, logging.WARNING)

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
                self.admission.incidents.failed("ws_handshake", errors, logging.WARNING)
                last_words = _MALFORMED
        if client is not None:
            _free_parser(client[0].socket)
        with trio.move_on_after(self.goodbye), suppress(trio.BrokenResourceError):
            fault = None if client is None else client[0].fault
            if fault is not None:
                await wire.refuse(fault.code, fault.reason)
            if last_words:
                await stream.send_all(last_words)
            await stream.aclose()

    async def _host(self, client: Connection, user: User) -> None:
        self._clients[client] = user
        try:
            await client.run()
        finally:
            del self._clients[client]

    async def _meet(
        self, wire: WireStream, nursery: trio.Nursery, pending: PendingConnection, place: ExitStack
    ) -> tuple[Connection, User] | None:
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
                verdict = await self._judge(request, place)
                if not isinstance(verdict, Refused):
                    pending.user = verdict[0].visitor.user
                return await self._answer(request, verdict, wire, nursery)
        finally:
            self.remove_pending(pending)
        self.admission.incidents.refused("ws_handshake_incomplete", _INCOMPLETE)
        return None

    async def _answer(
        self,
        request: WebSocketRequest,
        verdict: tuple[Admitted, Accepted] | Refused,
        wire: WireStream,
        nursery: trio.Nursery,
    ) -> tuple[Connection, User] | None:
        if isinstance(verdict, Refused):
            await request.reject(verdict.status, extra_headers=_JSON.copy(), body=verdict.body)
            return None
        admitted, accepted = verdict
        with ExitStack() as unanswered:
            if accepted.abandon is not None:
                unanswered.callback(accepted.abandon)
            socket = await request.accept(subprotocol=admitted.subprotocol, extra_headers=list(accepted.headers))
            unanswered.pop_all()
        user = admitted.visitor.user
        wire.let_frames_pass(self._byte_budget(), self.admission.byte_budget(user))
        return accepted.connect(Channel(socket, wire, nursery, self._broadcaster)), user

    def _byte_budget(self) -> TokenBucket:
        burst = self.limits.byte_burst
        return TokenBucket(burst, burst / self.limits.bytes_per_second, trio.current_time())

    async def _judge(self, request: WebSocketRequest, place: ExitStack) -> tuple[Admitted, Accepted] | Refused:
        user = check_client(request, self.admission.policy)
        verdict = user if isinstance(user, Refused) else await self._enter(request, user, place)
        if isinstance(verdict, Refused):
            # With the reason, unless it may contain a name that the client gave.
            why = None if verdict.quotes else f"{verdict.error['message']}{_SETTINGS.get(verdict.status, '')}"
            self.admission.incidents.refused(f"ws_handshake_{verdict.error['code']}", why)
        return verdict

    async def _enter(
        self, request: WebSocketRequest, user: User, place: ExitStack
    ) -> tuple[Admitted, Accepted] | Refused:
        try:
            self.admission.connect(user)
            place.callback(self.admission.disconnect, user)
            name, path = split_address(request.path)
            world = await self._worlds.find(name, may_create=True)
            place.enter_context(world.entered())
        except FootlightsError as error:
            return Refused(status_of(error, self._statuses, 503), error, quotes=True)
        admitted = check_endpoint(request, path, world.endpoints, user)
        if isinstance(admitted, Refused):
            return admitted
        try:
            return admitted, admitted.endpoint.accept(admitted.visitor)
        except FootlightsError as error:
            return Refused(status_of(error, self._statuses, 503), error, quotes=True)


def quiet_trio_websocket() -> None:
    """Drop the records of trio-websocket below WARNING: they quote clients (the reason of a close, data of a ping)."""
    logging.getLogger("trio-websocket").addFilter(_is_a_warning)


def _is_a_warning(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING


def _free_parser(socket: WebSocketConnection) -> None:
    """Take wsproto's parser apart. It and its generator hold each other, and on 3.13 only the collector frees them."""
    connection: Any = socket._wsproto.connection  # pyright: ignore[reportPrivateUsage]
    connection._proto._parse_more = iter(())
