"""Worker: one of the processes that serve the worlds of a server.

The router passes it connections, and asks it how it is. When the router is gone, the worker shuts down in order.
"""

from __future__ import annotations

import os
import signal
import socket
from functools import partial
from typing import TYPE_CHECKING

import orjson
import trio

from footlights_transports.http.server import HttpServer
from footlights_transports.server.listening import Listening
from footlights_transports.websocket.server import WsServer
from footlights_transports.worlds.names import MAIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights_transports.config.config import Config
    from footlights_transports.server.acceptor import Acceptor
    from footlights_transports.server.metrics import Metrics
    from footlights_transports.worlds.hosted import HostedWorlds

WS, HTTP = b"w", b"h"
"""The byte that comes with a connection: the server that it is for."""


class RouterLink:
    """The two sockets of a worker: one for connections, one for questions and answers, each a line of JSON."""

    def __init__(self, connections: int, questions: int) -> None:
        self._connections = socket.socket(fileno=connections)
        self._connections.setblocking(False)
        self._questions = socket.socket(fileno=questions)

    async def listen(
        self, servers: trio.Nursery, config: Config, worlds: HostedWorlds, metrics: Metrics
    ) -> tuple[Listening, Listening]:
        """Serve the connections that the router passes. A request for another world may come over a connection, so
        that an HTTP connection has one request only.
        """
        ws, http = WsServer(worlds), HttpServer(worlds, metrics, requests_per_connection=1)
        for each in (ws, http):
            await servers.start(each.wait_for_connections)
        receiving = trio.CancelScope()
        servers.start_soon(self._receive, {WS: ws, HTTP: http}, receiving)
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(self._questions))
        servers.start_soon(self._answer, stream, worlds, metrics)
        stop = partial(receiving.cancel, reason="the server shuts down")
        return Listening(0, stop), Listening(0, stop)

    async def _receive(self, servers: Mapping[bytes, Acceptor], receiving: trio.CancelScope) -> None:
        with receiving:
            while True:
                await trio.lowlevel.wait_readable(self._connections)
                try:
                    kind, passed, _, _ = socket.recv_fds(self._connections, 1, 1)
                except BlockingIOError:
                    continue
                if not kind:
                    return  # the router is gone, which the other socket tells too
                for descriptor in passed:
                    client = socket.socket(fileno=descriptor)
                    client.setblocking(False)
                    servers[kind].give(client)

    async def _answer(self, stream: trio.SocketStream, worlds: HostedWorlds, metrics: Metrics) -> None:
        main = next((each for each in worlds.opened() if each.name == MAIN), None)
        epoch = 0 if main is None else main.access.stage.epoch
        try:
            await stream.send_all(orjson.dumps({"number": 0, "epoch": epoch}) + b"\n")
            async for asked in stream:
                number = int(asked.split()[-1])
                reasons, rule = ([], None) if main is None else await worlds.readiness(main)
                answer = {"metrics": (await worlds.rendered(metrics)).decode(), "reasons": reasons, "rule": rule}
                await stream.send_all(orjson.dumps({"number": number, **answer}) + b"\n")
        except trio.BrokenResourceError:
            pass
        os.kill(os.getpid(), signal.SIGTERM)
