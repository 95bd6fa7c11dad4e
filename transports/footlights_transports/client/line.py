"""The connection of one stream: what comes waits, one message at a time, until it is asked for."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import trio

from footlights.errors import TooLarge
from footlights_transports.client.connection import Outgoing
from footlights_transports.client.errors import ConnectionLost
from footlights_transports.client.messages import TOO_BIG, nonsense, read_message

if TYPE_CHECKING:
    from footlights_transports.client.connection import Connection
    from footlights_transports.client.messages import Message


class Line:
    """Made for one connection, and of no more use when that is lost."""

    def __init__(self, connection: Connection, nursery: trio.Nursery) -> None:
        self._connection = connection
        self._send_channel, self._messages = trio.open_memory_channel[str](0)
        nursery.start_soon(self._attend, name="client stream")

    async def _attend(self) -> None:
        with self._send_channel:
            await self._connection.run(self._send_channel.send)

    async def receive(self) -> Message:
        """Raises `ConnectionLost`, or `TooLarge` if it was lost because of the size of a message."""
        try:
            return read_message(await self._messages.receive())
        except (trio.EndOfChannel, trio.ClosedResourceError):
            if self._connection.close_code == TOO_BIG:
                raise TooLarge("A message was too large, so the connection of the stream was closed.") from None
            raise ConnectionLost("The connection of the stream is gone.") from None

    async def send(self, frame: str) -> None:
        """If it does not get through, that shows in what is received."""
        with suppress(ConnectionLost):
            await self._connection.send(Outgoing.text(frame))

    async def ask(self, command_id: int, frame: str) -> dict[str, Any]:
        """The reply to the first command: the server sends it before anything else."""
        await self.send(frame)
        message = await self.receive()
        if isinstance(message, list) or "reply" not in message or message["reply"] not in (command_id, None):
            raise nonsense()
        return message

    async def aclose(self) -> None:
        self._messages.close()
        await self._connection.aclose()
