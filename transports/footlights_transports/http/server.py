"""The native protocol over HTTP/1.1 and Server-Sent Events.

    async with trio.open_nursery() as nursery:
        listening = await nursery.start(partial(serve_http, access, host="127.0.0.1", port=7601))

Hypercorn speaks HTTP, Starlette finds the route. A connection that fails takes no other with it. There is no
access log, and nothing that a client sent is ever logged.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.worker_context import WorkerContext

from footlights.failures import contained
from footlights_transports.access.idle import close_idle_sessions
from footlights_transports.http.app import PUBLIC, http_app
from footlights_transports.http.connection import HttpConnection, HttpServer, HttpStream
from footlights_transports.http.guard import CONNECTION, HttpGuard
from footlights_transports.http.h11_errors import hold_no_input
from footlights_transports.http.sse import OpenStreams
from footlights_transports.server.listening import Listening
from footlights_transports.server.metrics import Metrics
from footlights_transports.server.readiness import Readiness
from footlights_transports.views.chat_feed.feeds import ChatFeeds
from footlights_transports.views.dexi.runs import DexiRuns
from footlights_transports.views.mission.missions import Missions

if TYPE_CHECKING:
    import ssl
    from collections.abc import Collection, Sequence

    from footlights_transports.access.policy import User, WireLimits
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.views.dexi.runs import DexiSettings
    from footlights_transports.views.mission.missions import MissionSettings

_MAX_HEADER_BYTES = 16_384


async def serve_http(
    access: SessionAccess,
    *,
    host: str,
    port: int,
    tls: ssl.SSLContext | None = None,
    metrics: Metrics | None = None,
    goodbye: float = 1.0,
    dexi: DexiSettings | None = None,
    mission: MissionSettings | None = None,
    task_status: trio.TaskStatus[Listening] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled; then clients have `goodbye` seconds to take what waits for them.

    Port 0 is any free one. `metrics` are what GET /metrics tells besides what the stage counts itself; `dexi` says how
    runs are decided on and told, `mission` who speaks callouts. Raises `RegistrationError` for an address where the
    policy forbids to listen, and `OSError` for one that cannot be had.
    """
    hold_no_input()
    access.policy.check_address(host)
    if tls is not None:
        tls.set_alpn_protocols(["http/1.1"])
    listeners = await trio.open_tcp_listeners(port, host=host)
    if port == 0:
        # A name may have several addresses, and each would get a port of its own.
        _close(listeners[1:])
        del listeners[1:]
    metrics = metrics or Metrics()
    runs = DexiRuns(access, dexi)
    feeds = ChatFeeds(access.stage.ledger, access.incidents)
    missions = Missions(access, mission)
    server = _Server(access, metrics, tls, goodbye, runs, feeds, missions)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(metrics.watch_event_loop, name="event loop lag")
            nursery.start_soon(close_idle_sessions, access, name="idle sessions")
            nursery.start_soon(runs.keep, name="runs")
            nursery.start_soon(missions.keep, name="missions")
            nursery.start_soon(_keep_feeds, feeds, access, name="chat feeds")
            nursery.start_soon(server.readiness.keep_checking, name="readiness")
            nursery.start_soon(server.keep_connections, name="http connections")
            access.revocation_listeners.append(server.revoke)
            try:
                await server.opened.wait()
                with trio.CancelScope() as accepting:
                    task_status.started(Listening(listeners[0].socket.getsockname()[1], accepting.cancel))
                    await trio.serve_listeners(server.serve, listeners, handler_nursery=server.connections)
                _close(listeners)
                await trio.sleep_forever()
            finally:
                access.revocation_listeners.remove(server.revoke)
                server.closing.set()
    finally:
        _close(listeners)


async def _keep_feeds(feeds: ChatFeeds, access: SessionAccess) -> None:
    access.turn_listeners.append(feeds.player_said)
    try:
        await feeds.keep()
    finally:
        access.turn_listeners.remove(feeds.player_said)


class _Server:
    """Every connection of one server."""

    connections: trio.Nursery

    def __init__(
        self,
        access: SessionAccess,
        metrics: Metrics,
        tls: ssl.SSLContext | None,
        goodbye: float,
        runs: DexiRuns,
        feeds: ChatFeeds,
        missions: Missions,
    ) -> None:
        self._access = access
        self._incidents = access.incidents
        self._tls = tls
        self._goodbye = goodbye
        self._event_streams = OpenStreams()
        self.readiness = Readiness(access)
        app = http_app(access, self._event_streams, metrics, self.readiness, runs, feeds, missions)
        self._app = ASGIWrapper(cast("Any", HttpGuard(app, access, PUBLIC)))
        self._config = _config(self._limits)
        self._context = WorkerContext(None)
        self._open: dict[HttpConnection, HttpStream] = {}
        self._pending: dict[HttpConnection, None] = {}
        """Those that have shown no valid token or, without tokens, made no whole request; the oldest first."""
        self._emptied = trio.Event()
        self.opened = trio.Event()
        self.closing = trio.Event()

    @property
    def _limits(self) -> WireLimits:
        return self._access.policy.limits  # they may change

    def revoke(self, users: Collection[User]) -> None:
        """Let the connections go whose latest request came with a token which counts no more."""
        for connection, stream in self._open.items():
            if connection.user in users:
                connection.scope.cancel(reason="the token was revoked")
                stream.abort()

    async def keep_connections(self) -> None:
        """Let connections live until the server closes, and then a moment longer."""
        with trio.CancelScope(shield=True) as patience:
            async with trio.open_nursery() as self.connections:
                self.opened.set()
                await self.closing.wait()
                patience.deadline = trio.current_time() + self._goodbye
                self._event_streams.leave()
                await self._context.terminated.set()  # idle connections end
                self._look_whether_empty()
                try:
                    await self._emptied.wait()
                finally:
                    for stream in self._open.values():
                        stream.abort()

    async def serve(self, stream: trio.SocketStream) -> None:
        """One connection, from its first byte to its last."""
        limits = self._limits
        if self.closing.is_set():
            await trio.aclose_forcefully(stream)
            return
        self._make_room_for_a_pending_one()
        connection = HttpConnection(self._access, self._be_pending_no_more)
        self._pending[connection] = None
        self._open[connection] = HttpStream(stream, limits.send_timeout, connection.hear_out)
        try:
            with contained(self._fail), connection.scope:
                await self._serve(connection, stream)
        finally:
            self._open.pop(connection, None)
            self._pending.pop(connection, None)
            connection.leave()
            self._look_whether_empty()
            await trio.aclose_forcefully(stream)

    def _fail(self, error: BaseException) -> None:
        self._incidents.failed("http_connection", error, logging.WARNING)

    def _make_room_for_a_pending_one(self) -> None:
        """Close the one that has been pending longest, if there are too many.

        If newcomers were closed, clients that say nothing, or send half a request, would lock out all others. A client
        that has a token shows it long before so many others have come.
        """
        if len(self._pending) >= self._limits.max_handshakes:
            oldest = next(iter(self._pending))
            del self._pending[oldest]
            oldest.scope.cancel(reason="too many are pending")
            self._open.pop(oldest).abort()

    async def _serve(self, connection: HttpConnection, stream: trio.SocketStream) -> None:
        if self._tls is not None:
            secure = trio.SSLStream(stream, self._tls, server_side=True, https_compatible=True)
            self._open[connection] = HttpStream(secure, self._limits.send_timeout, connection.hear_out)
            try:
                with trio.fail_after(self._limits.handshake_timeout):
                    await secure.do_handshake()
            except (trio.BrokenResourceError, trio.TooSlowError):
                return
        http = cast("Any", self._open[connection])
        connection.server = server = HttpServer(self._app, self._config, self._context, {CONNECTION: connection}, http)
        try:
            await server
        finally:
            # They hold each other: they would be left to the collector.
            vars(server).clear()
            connection.server = None

    def _be_pending_no_more(self, connection: HttpConnection) -> None:
        self._pending.pop(connection, None)

    def _look_whether_empty(self) -> None:
        if self.closing.is_set() and not self._open:
            self._emptied.set()


class _Config(Config):
    def response_headers(self, protocol: str) -> list[tuple[bytes, bytes]]:
        """Headers of every answer, also of those that no application gives."""
        return [*super().response_headers(protocol), (b"x-content-type-options", b"nosniff")]


def _config(limits: WireLimits) -> Config:
    config = _Config()
    config.accesslog = None
    config.errorlog = None
    config.include_server_header = False
    config.h11_max_incomplete_size = _MAX_HEADER_BYTES
    # From the connection, or the last answer, until all headers of a request are there; no byte makes it longer.
    config.keep_alive_timeout = limits.handshake_timeout
    config.keep_alive_max_requests = 1_000_000
    return config


def _close(listeners: Sequence[trio.SocketListener]) -> None:
    for each in listeners:
        each.socket.close()
