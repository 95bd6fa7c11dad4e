"""Senders of `bench wire`: our servers, and the bare servers that they are compared with.

The bare WebSocket loop and the bare Hypercorn send the events of a turn, which exist beforehand as text, one by one.
The staged loop is a bare WebSocket loop that follows a stage. All send to clients in a process of their own.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

import hypercorn.trio
import trio
from attrs import frozen
from hypercorn.config import Config
from trio_websocket import serve_websocket

from footlights import open_stage, wire
from footlights_bench.lib.processes import open_module
from footlights_transports.access.policy import WireLimits
from footlights_transports.http.server import serve_http
from footlights_transports.websocket.server import serve_ws
from suites.lib.scripts import cast_of
from suites.lib.serving import HOST, serving

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from trio_websocket import WebSocketConnection, WebSocketRequest

    from footlights import InteractionSession, Stage
    from footlights_actors import Script
    from footlights_bench.lib.processes import JsonLines

SUBPROTOCOL = "footlights.v1"
_NO_PINGS = 86_400.0  # seconds; the clients answer none


class Sender(Protocol):
    """A server with connected clients."""

    async def play(self, turns: int) -> None:
        """Send so many turns of every session."""
        ...


class Clients:
    """The process with the clients. A crowd is a group of clients that are connected to one sender."""

    def __init__(self, lines: JsonLines) -> None:
        self._lines = lines

    async def ask(self, **command: Any) -> dict[str, Any]:
        await self._lines.send(command)
        answer: dict[str, Any] | None = await self._lines.receive()
        if answer is None:
            raise AssertionError("The process with the clients has ended.")
        return answer


@asynccontextmanager
async def open_clients() -> AsyncGenerator[Clients]:
    async with open_module("suites.wire.clients") as lines:
        yield Clients(lines)


@frozen
class Layout:
    """The number of clients, and of the sessions that each of them follows."""

    clients: int
    sessions_each: int

    @property
    def sessions(self) -> int:
        return self.clients * self.sessions_each


class Ours:
    """Sessions of a stage behind our server."""

    def __init__(self, stage: Stage, layout: Layout) -> None:
        self.sessions = [[stage.start() for _ in range(layout.sessions_each)] for _ in range(layout.clients)]

    async def play(self, turns: int) -> None:
        async with trio.open_nursery() as nursery:
            for sessions in self.sessions:
                for session in sessions:
                    nursery.start_soon(self._play, session, turns)

    @staticmethod
    async def _play(session: InteractionSession, turns: int) -> None:
        for _ in range(turns):
            await session.finalize(session.begin_turn("Go on.")).wait()


@asynccontextmanager
async def open_ours(
    script: Script, clients: Clients, crowd: str, layout: Layout, *, batch: bool = False
) -> AsyncGenerator[Ours]:
    # Each client subscribes to its sessions and begins one turn, all at once.
    limits = WireLimits(command_burst=layout.sessions_each + 1, keep_alive=_NO_PINGS)
    async with open_stage(cast_of(script)) as stage, serving(serve_ws, stage, limits) as port:
        ours = Ours(stage, layout)
        ids = [[session.session_id for session in sessions] for sessions in ours.sessions]
        path = "/v1?batch=1" if batch else "/v1"
        await clients.ask(do="open", crowd=crowd, port=port, path=path, sessions=ids)
        yield ours


@asynccontextmanager
async def open_ours_over_sse(script: Script, clients: Clients, crowd: str, layout: Layout) -> AsyncGenerator[Ours]:
    limits = WireLimits(keep_alive=_NO_PINGS, commands_per_second=1e6, command_burst=1_000_000)
    async with open_stage(cast_of(script)) as stage, serving(serve_http, stage, limits) as port:
        ours = Ours(stage, layout)
        paths = [f"/v1/sessions/{session.session_id}/events" for (session,) in ours.sessions]
        await clients.ask(do="open event streams", crowd=crowd, port=port, paths=paths)
        yield ours


class WebSocketLoop(Protocol):
    """A handler of trio-websocket."""

    ready: trio.Semaphore
    """Released once for each client that is connected."""

    async def handle(self, request: WebSocketRequest) -> None: ...


class Bare:
    """Sends the same messages to every connection, one by one."""

    def __init__(self, messages: Sequence[str], layout: Layout) -> None:
        self.ready = trio.Semaphore(0)
        self._messages = messages
        self._sessions_each = layout.sessions_each
        self._sockets: list[WebSocketConnection] = []

    async def handle(self, request: WebSocketRequest) -> None:
        self._sockets.append(await request.accept(subprotocol=SUBPROTOCOL))
        self.ready.release()
        await trio.sleep_forever()

    async def play(self, turns: int) -> None:
        async with trio.open_nursery() as nursery:
            for socket in self._sockets:
                nursery.start_soon(self._send, socket, turns * self._sessions_each)

    async def _send(self, socket: WebSocketConnection, turns: int) -> None:
        for _ in range(turns):
            for message in self._messages:
                await socket.send_message(message)


@asynccontextmanager
async def open_bare(script: Script, clients: Clients, crowd: str, layout: Layout) -> AsyncGenerator[Bare]:
    bare = Bare(await _messages_of(script), layout)
    async with _serving_loop(bare, clients, crowd, layout):
        yield bare


class Staged(Ours):
    """Sessions of a stage, each followed by a bare loop."""

    def __init__(self, stage: Stage, layout: Layout) -> None:
        super().__init__(stage, layout)
        self.ready = trio.Semaphore(0)
        self._connected = 0

    async def handle(self, request: WebSocketRequest) -> None:
        sessions = self.sessions[self._connected]
        self._connected += 1
        socket = await request.accept(subprotocol=SUBPROTOCOL)
        async with trio.open_nursery() as nursery:
            for session in sessions:
                await nursery.start(self._follow, session, socket)
            self.ready.release()

    @staticmethod
    async def _follow(
        session: InteractionSession, socket: WebSocketConnection, task_status: trio.TaskStatus[None]
    ) -> None:
        async with session.subscribe() as stream:
            task_status.started()
            async for event in stream:
                await socket.send_message(wire.encode(event).decode())


@asynccontextmanager
async def open_staged(script: Script, clients: Clients, crowd: str, layout: Layout) -> AsyncGenerator[Staged]:
    async with open_stage(cast_of(script)) as stage:
        staged = Staged(stage, layout)
        async with _serving_loop(staged, clients, crowd, layout):
            yield staged


@asynccontextmanager
async def _serving_loop(loop: WebSocketLoop, clients: Clients, crowd: str, layout: Layout) -> AsyncGenerator[None]:
    async with trio.open_nursery() as nursery:
        server = await nursery.start(partial(serve_websocket, loop.handle, HOST, 0, None, disconnect_timeout=0.1))
        no_sessions: list[list[str]] = [[] for _ in range(layout.clients)]
        await clients.ask(do="open", crowd=crowd, port=server.port, path="/", sessions=no_sessions)
        for _ in range(layout.clients):
            await loop.ready.acquire()
        yield
        nursery.cancel_scope.cancel()


class BareHypercorn:
    """An ASGI application that sends the same events to every request."""

    def __init__(self, messages: Sequence[str]) -> None:
        self._frames = [f"id: 1\ndata: {message}\n\n".encode() for message in messages]
        self._turns: list[trio.MemorySendChannel[int]] = []

    async def play(self, turns: int) -> None:
        for channel in self._turns:
            channel.send_nowait(turns)

    async def __call__(
        self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            return
        to_send, to_play = trio.open_memory_channel[int](1)
        self._turns.append(to_send)
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b":\n\n", "more_body": True})
        async for turns in to_play:
            for _ in range(turns):
                for frame in self._frames:
                    await send({"type": "http.response.body", "body": frame, "more_body": True})


@asynccontextmanager
async def open_bare_hypercorn(
    script: Script, clients: Clients, crowd: str, layout: Layout
) -> AsyncGenerator[BareHypercorn]:
    bare = BareHypercorn(await _messages_of(script))
    config = Config()
    config.bind = [f"{HOST}:0"]
    config.errorlog = None
    config.graceful_timeout = 0.1
    async with trio.open_nursery() as nursery:
        (address,) = await nursery.start(partial(cast("Any", hypercorn.trio).serve, bare, config, mode="asgi"))
        port = int(address.rpartition(":")[2])
        await clients.ask(do="open event streams", crowd=crowd, port=port, paths=["/"] * layout.clients)
        yield bare
        nursery.cancel_scope.cancel()


async def _messages_of(script: Script) -> list[str]:
    """The events of one turn as they are on the wire."""
    async with open_stage(cast_of(script)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("Go on.")
            return [wire.encode(event).decode() async for event in stream.until_commit(turn_id)]
