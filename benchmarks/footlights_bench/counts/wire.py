"""Scenes with a server: turns of one session that clients follow over loopback.

The clients take nothing while it is counted: what they are sent fits into the buffers of their sockets. So no count
depends on when the system hands bytes over.
"""

from __future__ import annotations

import json
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Protocol

import trio
from attrs import frozen
from wsproto import ConnectionType, WSConnection
from wsproto.events import Request, TextMessage

from footlights import open_stage
from footlights_bench.counts.meter import Count
from footlights_bench.counts.scenes import AFTERWARDS, same_time
from footlights_bench.lib.scripts import cast_of
from footlights_transports.access.policy import AccessPolicy, WireLimits
from footlights_transports.access.session_access import SessionAccess
from footlights_transports.http.server import serve_http
from footlights_transports.websocket.server import serve_ws

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from contextlib import AbstractAsyncContextManager

    from footlights import InteractionSession, Stage
    from footlights_actors import Script

_HOST = "127.0.0.1"
_COMMIT = '"event_type":"commit_final"'
_LIMITS = WireLimits(keep_alive=86_400.0)


@frozen
class Taken:
    """What came over the wire."""

    frames: int
    bytes: int


class Client(Protocol):
    """One that follows a session, and takes what it was sent only when it is told to."""

    async def take(self, last: str) -> Taken:
        """Everything up to the frame with these words."""
        ...


class _Bytes:
    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream

    async def send(self, data: bytes) -> None:
        await self._stream.send_all(data)

    async def receive(self) -> bytes:
        data = bytes(await self._stream.receive_some())
        if not data:
            raise AssertionError("The server is gone.")
        return data


class WebSocketClient:
    """A WebSocket; its frames are those of the protocol."""

    def __init__(self, wire: _Bytes) -> None:
        self._wire = wire
        self._protocol = WSConnection(ConnectionType.CLIENT)

    async def follow(self, session: InteractionSession, *, in_batches: bool) -> None:
        path = "/v1?batch=1" if in_batches else "/v1"
        await self._wire.send(self._protocol.send(Request(_HOST, path, subprotocols=["footlights.v1"])))
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
    """An event stream; its frames are its events."""

    def __init__(self, wire: _Bytes) -> None:
        self._wire = wire

    async def follow(self, session: InteractionSession) -> None:
        path = f"/v1/sessions/{session.session_id}/events"
        await self._wire.send(f"GET {path} HTTP/1.1\r\nHost: {_HOST}\r\nAccept: text/event-stream\r\n\r\n".encode())
        await self.take("\nid: ")

    async def take(self, last: str) -> Taken:
        text = b""
        while last.encode() not in text or not text.endswith(b"\n\n\r\n"):
            text += await self._wire.receive()
        return Taken(text.count(b"\ndata: "), len(text))


class Served:
    """A turn whose events are sent to so many clients."""

    def __init__(self, session: InteractionSession, clients: Sequence[Client]) -> None:
        self._session = session
        self._clients = clients

    async def play(self) -> None:
        await self._session.finalize(self._session.begin_turn("Go on.")).wait()
        await trio.sleep(AFTERWARDS)

    async def look(self) -> dict[Count, int]:
        taken = [await client.take(_COMMIT) for client in self._clients]
        return {
            Count.FRAMES: sum(each.frames for each in taken),
            Count.BYTES: sum(each.bytes for each in taken),
        }


@asynccontextmanager
async def over_websocket(script: Script, *, clients: int = 1, in_batches: bool = False) -> AsyncGenerator[Served]:
    async with _open_stage(script) as stage, trio.open_nursery() as nursery, AsyncExitStack() as leaving:
        access = SessionAccess(stage, AccessPolicy(limits=_LIMITS))
        listening = await nursery.start(partial(serve_ws, access, host=_HOST, port=0, goodbye=0.0))
        session = stage.start()
        crowd = [WebSocketClient(await _connected(leaving, listening.port)) for _ in range(clients)]
        for client in crowd:
            await client.follow(session, in_batches=in_batches)
        yield Served(session, crowd)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def over_sse(script: Script, *, clients: int = 1) -> AsyncGenerator[Served]:
    async with _open_stage(script) as stage, trio.open_nursery() as nursery, AsyncExitStack() as leaving:
        access = SessionAccess(stage, AccessPolicy(limits=_LIMITS))
        listening = await nursery.start(partial(serve_http, access, host=_HOST, port=0, goodbye=0.0))
        session = stage.start()
        crowd = [SseClient(await _connected(leaving, listening.port)) for _ in range(clients)]
        for client in crowd:
            await client.follow(session)
        yield Served(session, crowd)
        nursery.cancel_scope.cancel()


def _open_stage(script: Script) -> AbstractAsyncContextManager[Stage]:
    return open_stage(cast_of(script), wall_clock=same_time)


async def _connected(leaving: AsyncExitStack, port: int) -> _Bytes:
    return _Bytes(await leaving.enter_async_context(await trio.open_tcp_stream(_HOST, port)))
