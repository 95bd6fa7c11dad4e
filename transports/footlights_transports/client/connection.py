"""One WebSocket connection of a client: used until it is lost, never repaired.

One task reads it and one writes it. Whoever sends hands its message over to the writer: a sender that is cancelled
leaves no half of a message behind, and harms nobody else's.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import trio
from wsproto.connection import ConnectionState
from wsproto.events import CloseConnection, Ping, TextMessage
from wsproto.utilities import ProtocolError

from footlights_transports.client.errors import ConnectionLost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wsproto import WSConnection
    from wsproto.events import Event

MAX_MESSAGE_CHARS = 64_000_000
"""More than any server of ours sends at once; whoever sends more is cut off."""
TCP_ENDED = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)
_CLOSING = 1.0
"""Seconds to say goodbye in."""


class Outgoing:
    """Something to be written."""

    __slots__ = ("event", "is_begun", "is_sent", "over")

    def __init__(self, event: Event) -> None:
        self.event = event
        self.is_begun = False
        """Whether a part of it may be on its way."""
        self.is_sent = False
        """Whether all of it is on its way. If not, the server has not got it."""
        self.over = trio.Event()
        """The writer is done with it, one way or the other."""

    @classmethod
    def text(cls, text: str) -> Outgoing:
        return cls(TextMessage(data=text))


class Connection:
    """Made by `dial`. One task runs `run`, which hands over what comes; while it runs, any task may send."""

    def __init__(self, stream: trio.abc.Stream, protocol: WSConnection, silence: float) -> None:
        self._stream = stream
        self._protocol = protocol
        self._silence = silence
        self._to_writer, self._outgoing = trio.open_memory_channel[Outgoing](0)
        self._parts: list[str] = []
        self._chars = 0
        self.is_open = True
        self.close_code: int | None = None
        """Why the server closed it, if it said so."""

    async def send(self, outgoing: Outgoing) -> None:
        """Have it written. If this is cancelled, or raises `ConnectionLost`, nothing of it will be."""
        if not self.is_open:
            await trio.lowlevel.checkpoint()
            raise ConnectionLost("The connection is gone.")
        await self._hand_over(outgoing)

    async def run(self, deliver: Callable[[str], Awaitable[None]]) -> None:
        """Hand over each message until the connection ends. While `deliver` waits, nothing is read."""
        try:
            async with trio.open_nursery() as tasks:
                tasks.start_soon(self._write, name="client writer")
                with suppress(ConnectionLost, ProtocolError, *TCP_ENDED):
                    while await self._read_events(deliver):
                        self._protocol.receive_data(await self._receive())
                self.is_open = False
                tasks.cancel_scope.cancel(reason="the connection has ended")
        finally:
            self.is_open = False
            await trio.aclose_forcefully(self._stream)

    async def aclose(self) -> None:
        """Say goodbye, and do not wait for an answer. Cannot be cancelled, and takes no more than a second."""
        if self.is_open:
            self.is_open = False
            with trio.move_on_after(_CLOSING, shield=True), suppress(ConnectionLost):
                await self._see_off(CloseConnection(code=1000))
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self._stream)

    # -- writing

    async def _hand_over(self, outgoing: Outgoing) -> None:
        try:
            await self._to_writer.send(outgoing)
        except trio.BrokenResourceError:
            raise ConnectionLost("The connection is gone.") from None

    async def _see_off(self, event: Event) -> None:
        outgoing = Outgoing(event)
        await self._hand_over(outgoing)
        await outgoing.over.wait()

    async def _write(self) -> None:
        with self._outgoing:
            async for outgoing in self._outgoing:
                try:
                    data = self._protocol.send(outgoing.event)
                    outgoing.is_begun = True
                    await self._stream.send_all(data)
                    outgoing.is_sent = True
                except (ProtocolError, *TCP_ENDED):
                    # The reader is about to find out too, and may yet read why.
                    self.is_open = False
                    return
                finally:
                    outgoing.over.set()

    # -- reading

    async def _receive(self) -> bytes | None:
        for asks in (True, False):
            with trio.move_on_after(self._silence):
                return bytes(await self._stream.receive_some()) or None
            if asks:
                await self._say(Ping())
        raise ConnectionLost("The server gives no sign of life.")

    async def _say(self, event: Event) -> None:
        """Raises `ConnectionLost` if that has to wait for too long: then the server reads nothing any more."""
        with trio.move_on_after(self._silence):
            await self._hand_over(Outgoing(event))
            return
        raise ConnectionLost("The server takes nothing.")

    async def _read_events(self, deliver: Callable[[str], Awaitable[None]]) -> bool:
        """Whether the connection goes on."""
        for event in self._protocol.events():
            match event:
                case TextMessage():
                    await self._read_text(event, deliver)
                case Ping():
                    await self._say(event.response())
                case CloseConnection():
                    await self._take_leave(event)
                    return False
                case _:
                    pass
        return True

    async def _take_leave(self, event: CloseConnection) -> None:
        self.close_code = event.code
        if self._protocol.state is ConnectionState.REMOTE_CLOSING:
            with trio.move_on_after(_CLOSING):
                await self._see_off(event.response())

    async def _read_text(self, event: TextMessage, deliver: Callable[[str], Awaitable[None]]) -> None:
        self._parts.append(event.data)
        self._chars += len(event.data)
        if self._chars > MAX_MESSAGE_CHARS:
            raise ConnectionLost("The server sent too much at once.")
        if event.message_finished:
            message = "".join(self._parts)
            self._parts, self._chars = [], 0
            await deliver(message)
