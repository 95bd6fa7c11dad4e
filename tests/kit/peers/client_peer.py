"""Scripted server for tests of the client, which decide about each frame."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
import trio
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Request, TextMessage

from footlights_transports.views.native.protocol import SUBPROTOCOL

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

    from wsproto.events import Event

TOO_BIG = CloseConnection(code=1009)
GOING_AWAY = CloseConnection(code=1001)


class WsPeer:
    """One connection, one step at a time."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._protocol = WSConnection(ConnectionType.SERVER)

    async def send(self, event: Event) -> None:
        await self._stream.send_all(self._protocol.send(event))

    async def say(self, message: object) -> None:
        await self.send(TextMessage(data=orjson.dumps(message).decode()))

    async def receive(self) -> Event | None:
        """None when the client has closed the connection."""
        while True:
            for event in self._protocol.events():
                return event
            data = await self._stream.receive_some()
            if not data:
                return None
            self._protocol.receive_data(bytes(data))

    async def shake_hands(self) -> None:
        assert isinstance(await self.receive(), Request)
        await self.send(AcceptConnection(subprotocol=SUBPROTOCOL))

    async def receive_command(self) -> dict[str, Any] | None:
        """None when the client has closed the connection."""
        said = ""
        while isinstance(event := await self.receive(), TextMessage):
            said += event.data
            if event.message_finished:
                command: dict[str, Any] = orjson.loads(said)
                return command
        return None


@asynccontextmanager
async def open_script(
    answer: Callable[[int, dict[str, Any]], Iterable[object]],
) -> AsyncGenerator[str, None]:
    """The address of a server that answers each command with these messages; a `CloseConnection` is the last one.

    `answer` gets the number of the connection, from 0, and the command.
    """
    connections = 0

    async def serve(stream: trio.SocketStream) -> None:
        nonlocal connections
        number = connections
        connections += 1
        peer = WsPeer(stream)
        await peer.shake_hands()
        while (command := await peer.receive_command()) is not None:
            for message in answer(number, command):
                if isinstance(message, CloseConnection):
                    await peer.send(message)
                    await stream.send_eof()
                    while await stream.receive_some():
                        pass
                    return
                await peer.say(message)

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, serve, 0, host="127.0.0.1"))
        yield f"ws://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


def done(command: dict[str, Any], **result: object) -> dict[str, Any]:
    """The reply to a command that succeeded."""
    return {"reply": command["id"], "ok": True, "result": result}


def refused(command_id: int | None, code: str, message: str = "No.") -> dict[str, Any]:
    """The reply to a command that was refused."""
    return {"reply": command_id, "ok": False, "error": {"code": code, "message": message}}
