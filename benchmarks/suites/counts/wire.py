"""Workloads with a server: turns of one session that clients follow over loopback.

Clients read nothing during a count: what the server sends fits into the buffers of their sockets. So no count depends
on when the operating system delivers bytes. A kernel delays the acknowledgement of small segments that nobody reads,
and then the server's socket takes no more of them; so clients say that they wait for many bytes, which ends the delay.
"""

from __future__ import annotations

import json
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import trio
from attrs import frozen
from wsproto import ConnectionType, WSConnection
from wsproto.events import Request, TextMessage

from footlights import open_stage
from footlights_transports.access.policy import WireLimits
from footlights_transports.http.server import serve_http
from footlights_transports.websocket.server import serve_ws
from suites.counts.meter import Count
from suites.counts.workloads import AFTERWARDS, same_time
from suites.lib.scripts import cast_of
from suites.lib.serving import HOST, serving

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from footlights import InteractionSession
    from footlights_actors import Script

_WHOLE_TURN_BYTES = 1 << 20
"""More than a turn has."""
_COMMIT = '"event_type":"commit_final"'


@frozen
class Taken:
    """The frames and bytes that a client received."""

    frames: int
    bytes: int


class Client(Protocol):
    """A client that follows a session and reads only when `take` is called."""

    async def follow(self, session: InteractionSession) -> None: ...

    async def take(self, last: str) -> Taken:
        """Read up to the frame that contains this text."""
        ...


class _Bytes:
    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream

    def wait_for(self, size: int) -> None:
        """Have the kernel report no fewer bytes than these."""
        self._stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)

    async def send(self, data: bytes) -> None:
        await self._stream.send_all(data)

    async def receive(self) -> bytes:
        data = bytes(await self._stream.receive_some())
        if not data:
            raise AssertionError("The server closed the connection.")
        return data


class WebSocketClient:
    """Counts the messages of the WebSocket protocol as frames."""

    def __init__(self, wire: _Bytes, *, in_batches: bool) -> None:
        self._wire = wire
        self._path = "/v1?batch=1" if in_batches else "/v1"
        self._protocol = WSConnection(ConnectionType.CLIENT)

    async def follow(self, session: InteractionSession) -> None:
        await self._wire.send(self._protocol.send(Request(HOST, self._path, subprotocols=["footlights.v1"])))
        while not any(self._events(await self._wire.receive())):
            pass
        command = json.dumps({"op": "subscribe", "id": 1, "session_id": session.session_id})
        await self._wire.send(self._protocol.send(TextMessage(command)))
        await self.take('"reply":1')

    async def take(self, last: str) -> Taken:
        frames = size = 0
        text = ""
        while last not in text:
            data = await self._wire.receive()
            size += len(data)
            for event in self._events(data):
                if isinstance(event, TextMessage):
                    text += event.data
                    frames += event.message_finished
        return Taken(frames, size)

    def _events(self, data: bytes) -> list[object]:
        self._protocol.receive_data(data)
        return list(self._protocol.events())


class SseClient:
    """Counts the events of the stream as frames."""

    def __init__(self, wire: _Bytes) -> None:
        self._wire = wire

    async def follow(self, session: InteractionSession) -> None:
        path = f"/v1/sessions/{session.session_id}/events"
        await self._wire.send(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nAccept: text/event-stream\r\n\r\n".encode())
        await self.take("\nid: ")

    async def take(self, last: str) -> Taken:
        text = b""
        while last.encode() not in text or not text.endswith(b"\n\n\r\n"):
            text += await self._wire.receive()
        return Taken(text.count(b"\ndata: "), len(text))


class ServedTurn:
    """A turn whose events the server sends to all clients."""

    def __init__(self, session: InteractionSession, clients: Sequence[Client], wires: Sequence[_Bytes]) -> None:
        self._session = session
        self._clients = clients
        self._wires = wires
        self._wait_for(_WHOLE_TURN_BYTES)

    async def play(self) -> None:
        await self._session.finalize(self._session.begin_turn("Go on.")).wait()
        await trio.sleep(AFTERWARDS)

    async def look(self) -> dict[Count, int]:
        self._wait_for(1)
        taken = [await client.take(_COMMIT) for client in self._clients]
        self._wait_for(_WHOLE_TURN_BYTES)
        return {
            Count.FRAMES: sum(each.frames for each in taken),
            Count.BYTES: sum(each.bytes for each in taken),
        }

    def _wait_for(self, size: int) -> None:
        for wire in self._wires:
            wire.wait_for(size)


def over_websocket(
    script: Script, *, clients: int = 1, in_batches: bool = False
) -> AbstractAsyncContextManager[ServedTurn]:
    return _served_turn(script, serve_ws, partial(WebSocketClient, in_batches=in_batches), clients)


def over_sse(script: Script, *, clients: int = 1) -> AbstractAsyncContextManager[ServedTurn]:
    return _served_turn(script, serve_http, SseClient, clients)


@asynccontextmanager
async def _served_turn(
    script: Script, serve: Callable[..., Awaitable[Any]], make_client: Callable[[_Bytes], Client], clients: int
) -> AsyncGenerator[ServedTurn]:
    async with (
        open_stage(cast_of(script), wall_clock=same_time) as stage,
        serving(serve, stage, WireLimits(keep_alive=86_400.0), goodbye=0.0) as port,
        AsyncExitStack() as leaving,
    ):
        session = stage.start()
        streams = [await leaving.enter_async_context(await trio.open_tcp_stream(HOST, port)) for _ in range(clients)]
        wires = [_Bytes(stream) for stream in streams]
        crowd = [make_client(wire) for wire in wires]
        for client in crowd:
            await client.follow(session)
        yield ServedTurn(session, crowd, wires)
