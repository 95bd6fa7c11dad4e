"""HTTP server: the routes of all views over HTTP/1.1, with events as Server-Sent Events.

    async with trio.open_nursery() as nursery:
        listening = await nursery.start(partial(serve_http, access, mounts, host="127.0.0.1", port=7601))

Hypercorn parses HTTP, Starlette finds the route. A connection that fails ends no other. There is no access log, and
nothing that a client sent is ever logged.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.worker_context import WorkerContext

from footlights.failures import contained
from footlights_transports.http.app import http_app, paths_without_world, public_paths
from footlights_transports.http.connection import HttpConnection, HttpStream, LingeringServer
from footlights_transports.http.guard import CONNECTION, HttpGuard
from footlights_transports.http.sse import STREAMS, OpenStreams
from footlights_transports.server.acceptor import Acceptor
from footlights_transports.server.metrics import Metrics
from footlights_transports.worlds.world import OneWorld

if TYPE_CHECKING:
    import ssl
    from collections.abc import Collection, Sequence

    from footlights_transports.access.policy import User, WireLimits
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.server.listening import Listening
    from footlights_transports.views.base.view import Mount
    from footlights_transports.worlds.world import Worlds

_MAX_HEADER_BYTES = 16_384


async def serve_http(
    access: SessionAccess,
    mounts: Sequence[Mount],
    *,
    host: str,
    port: int,
    tls: ssl.SSLContext | None = None,
    metrics: Metrics | None = None,
    goodbye: float = 1.0,
    task_status: trio.TaskStatus[Listening] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled; then clients have `goodbye` seconds to read what waits for them.

    `mounts` are the views, whose tasks run in `run_views`. Port 0 is any free port. GET /metrics shows `metrics`
    besides the counts of the stage. Raises `RegistrationError` for an address that the policy forbids, and `OSError`
    for one that cannot be bound.
    """
    await HttpServer(OneWorld(access, mounts), metrics or Metrics(), goodbye, tls).listen(host, port, task_status)


class HttpServer(Acceptor):
    """The connections of one HTTP server."""

    def __init__(
        self,
        worlds: Worlds,
        metrics: Metrics,
        goodbye: float = 1.0,
        tls: ssl.SSLContext | None = None,
        requests_per_connection: int = 1_000_000,
    ) -> None:
        super().__init__(worlds.admission, goodbye)
        self._worlds = worlds
        if tls is not None:
            tls.set_alpn_protocols(["http/1.1"])
        self._tls = tls
        self._metrics = metrics
        self._event_streams = OpenStreams()
        app = http_app(worlds, metrics)
        guard = HttpGuard(app, worlds, public_paths(worlds.views), paths_without_world(worlds.views))
        self._app = ASGIWrapper(cast("Any", guard))
        self._config = _config(self.limits, requests_per_connection)
        self._context = WorkerContext(None)
        self._open: dict[HttpConnection, None] = {}
        self._emptied = trio.Event()

    def start_tasks(self, nursery: trio.Nursery) -> None:
        nursery.start_soon(self._worlds.keep, name="worlds")
        nursery.start_soon(self._metrics.watch_event_loop, name="event loop lag")

    def revoke(self, users: Collection[User]) -> None:
        for connection in self._open:
            if connection.user in users:
                connection.drop("the token was revoked")

    async def leave(self) -> None:
        self._event_streams.leave()
        await self._context.terminated.set()  # idle connections end
        self._look_whether_empty()
        try:
            await self._emptied.wait()
        finally:
            for connection in self._open:
                connection.stream.abort()

    async def serve(self, stream: trio.SocketStream) -> None:
        if self.closing.is_set():
            await trio.aclose_forcefully(stream)
            return
        connection = HttpConnection(self.admission, self.remove_pending)
        connection.stream = HttpStream(stream, self.limits.send_timeout, connection.hear_out)
        self.add_pending(connection)
        self._open[connection] = None
        try:
            with contained(self._fail), connection.scope:
                await self._serve(connection, stream)
        finally:
            self._open.pop(connection, None)
            self.remove_pending(connection)
            connection.leave()
            del connection.stream  # they hold each other, and would be left to the collector
            self._look_whether_empty()

    def _fail(self, error: BaseException) -> None:
        self.admission.incidents.failed("http_connection", error, logging.WARNING)

    async def _serve(self, connection: HttpConnection, stream: trio.SocketStream) -> None:
        if self._tls is not None:
            secure = trio.SSLStream(stream, self._tls, server_side=True, https_compatible=True)
            connection.stream = HttpStream(secure, self.limits.send_timeout, connection.hear_out)
            try:
                with trio.fail_after(self.limits.handshake_timeout):
                    await secure.do_handshake()
            except (trio.BrokenResourceError, trio.TooSlowError):
                return
        http = cast("Any", connection.stream)
        state = {CONNECTION: connection, STREAMS: self._event_streams}
        connection.server = server = LingeringServer(self._app, self._config, self._context, state, http)
        try:
            await server
        finally:
            # They hold each other, and would be left to the collector.
            vars(server).clear()
            connection.server = None

    def _look_whether_empty(self) -> None:
        if self.closing.is_set() and not self._open:
            self._emptied.set()


class _Config(Config):
    def response_headers(self, protocol: str) -> list[tuple[bytes, bytes]]:
        """Headers of every response, also of those that Hypercorn makes itself."""
        return [*super().response_headers(protocol), (b"x-content-type-options", b"nosniff")]


def _config(limits: WireLimits, requests_per_connection: int) -> Config:
    config = _Config()
    config.accesslog = None
    config.errorlog = None
    config.include_server_header = False
    config.h11_max_incomplete_size = _MAX_HEADER_BYTES
    # From the connection, or the last response, to the end of the headers of a request. Single bytes do not extend it.
    config.keep_alive_timeout = limits.handshake_timeout
    config.keep_alive_max_requests = requests_per_connection
    return config
