"""The connection of one stream: what comes waits, one message at a time, until it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from footlights_transports.client_calls import read_message
from footlights_transports.client_errors import ConnectionLost

if TYPE_CHECKING:
    from footlights_transports.client_connection import Connection


class Line:
    """Made for one connection, and of no more use when that is lost."""

    def __init__(self, connection: Connection, nursery: trio.Nursery) -> None:
        self._connection = connection
        self._send_channel, self._messages = trio.open_memory_channel[str](0)
        nursery.start_soon(self._attend, name="client stream")

    async def _attend(self) -> None:
        with self._send_channel:
            await self._connection.run(self._send_channel.send)

    async def receive(self) -> dict[str, Any] | list[dict[str, Any]]:
        try:
            return read_message(await self._messages.receive())
        except (trio.EndOfChannel, trio.ClosedResourceError):
            raise ConnectionLost("The connection of the stream is gone.") from None

    async def reply_to(self, command_id: int) -> dict[str, Any]:
        """The server sends it before any event."""
        message = await self.receive()
        if isinstance(message, list) or message.get("reply") != command_id:
            raise ConnectionLost("The server does not speak our protocol.")
        return message

    async def aclose(self) -> None:
        self._messages.close()
        await self._connection.aclose()
