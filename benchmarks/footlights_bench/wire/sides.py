"""Those who send in `bench wire`: our server; a bare trio-websocket loop; and such a loop with a stage behind it."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import trio
from attrs import frozen
from trio_websocket import serve_websocket

from footlights import open_stage, wire
from footlights_bench.lib.scripts import cast_of
from footlights_transports.access.policy import AccessPolicy, WireLimits
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.websocket.server import serve_ws

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from trio_websocket import WebSocketConnection, WebSocketRequest

    from footlights import InteractionSession, Stage
    from footlights_actors import Script

SUBPROTOCOL = "footlights.v1"


class Side(Protocol):
    """One that sends to a crowd of clients."""

    async def play(self, turns: int) -> None:
        """Send so many turns of every session."""
        ...


class Sink:
    """The process with the clients."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._unread = b""

    async def ask(self, **command: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        await self._process.stdin.send_all(json.dumps(command).encode() + b"\n")
        while b"\n" not in self._unread:
            data = await self._process.stdout.receive_some()
            if not data:
                raise AssertionError("The process with the clients is gone.")
            self._unread += data
        line, _, self._unread = self._unread.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer


@asynccontextmanager
async def open_sink() -> AsyncGenerator[Sink]:
    command = [sys.executable, "-m", "footlights_bench.wire.sink"]
    # A Ctrl-C is for us alone: the clients end when nobody tells them anything any more.
    process = await trio.lowlevel.open_process(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        yield Sink(process)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
        assert process.stdio is not None
        await process.stdio.aclose()


@frozen
class Layout:
    """Who follows what: so many clients, each of so many sessions of its own."""

    clients: int
    sessions_each: int

    @property
    def sessions(self) -> int:
        return self.clients * self.sessions_each


class Ours:
    """Sessions of a stage, followed through our server."""

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
    script: Script, sink: Sink, crowd: str, layout: Layout, *, batch: bool = False
) -> AsyncGenerator[Ours]:
    # The clients answer no pings; each follows its sessions and may begin one turn, all at once.
    limits = WireLimits(command_burst=layout.sessions_each + 1, keep_alive=86_400.0)
    async with open_stage(cast_of(script)) as stage, trio.open_nursery() as nursery:
        access = SessionAccess(stage, AccessPolicy(limits=limits))
        listening = await nursery.start(partial(serve_ws, access, host="127.0.0.1", port=0, goodbye=0.1))
        ours = Ours(stage, layout)
        ids = [[session.session_id for session in sessions] for sessions in ours.sessions]
        path = "/v1?batch=1" if batch else "/v1"
        await sink.ask(do="open", crowd=crowd, port=listening.port, path=path, sessions=ids)
        yield ours
        nursery.cancel_scope.cancel()


class BareLoop(Protocol):
    """One that trio-websocket serves as it is."""

    ready: trio.Semaphore
    """Released once for each client that can be sent to."""

    async def handle(self, request: WebSocketRequest) -> None: ...


class Bare:
    """Connections on which the same messages are sent, one by one, by as little as can be."""

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
async def open_bare(script: Script, sink: Sink, crowd: str, layout: Layout) -> AsyncGenerator[Bare]:
    bare = Bare(await messages_of(script), layout)
    async with _serving(bare, sink, crowd, layout):
        yield bare


class Staged(Ours):
    """The same sessions as ours, each followed by a bare loop."""

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
async def open_staged(script: Script, sink: Sink, crowd: str, layout: Layout) -> AsyncGenerator[Staged]:
    async with open_stage(cast_of(script)) as stage:
        staged = Staged(stage, layout)
        async with _serving(staged, sink, crowd, layout):
            yield staged


@asynccontextmanager
async def _serving(loop: BareLoop, sink: Sink, crowd: str, layout: Layout) -> AsyncGenerator[None]:
    async with trio.open_nursery() as nursery:
        server = await nursery.start(
            partial(serve_websocket, loop.handle, "127.0.0.1", 0, None, disconnect_timeout=0.1)
        )
        no_sessions: list[list[str]] = [[] for _ in range(layout.clients)]
        await sink.ask(do="open", crowd=crowd, port=server.port, path="/", sessions=no_sessions)
        for _ in range(layout.clients):
            await loop.ready.acquire()
        yield
        nursery.cancel_scope.cancel()


async def messages_of(script: Script) -> list[str]:
    """The events of one such turn, as they stand on the wire."""
    async with open_stage(cast_of(script)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("Go on.")
            return [wire.encode(event).decode() async for event in stream.until_commit(turn_id)]
