"""WebSocket connection: what the connections of every view share. It takes frames, and ends in order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING

import trio
from attrs import frozen
from trio_websocket import ConnectionClosed

from footlights_transports.errors import too_large
from footlights_transports.websocket.stream import PING

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights_transports.access.policy import WireLimits
    from footlights_transports.websocket.endpoint import Channel
    from footlights_transports.websocket.stream import WireStream

GOING_AWAY = 1001
PROTOCOL_ERROR = 1002
NOT_ALLOWED = 1008
NOT_UTF_8 = 1007
TOO_BIG = 1009

MISSED_PINGS_BEFORE_CLOSE = 2
"""A peer that is silent for so many times `keep_alive` after a ping is considered gone."""

_FAULTS = {PROTOCOL_ERROR: "This is not WebSocket.", NOT_UTF_8: "Text must be UTF-8."}
"""Reasons for codes with which trio-websocket ends a connection without saying why. Its own would quote the client."""


@frozen
class Fault:
    """Why a connection is closed, as the close frame says it."""

    code: int
    reason: str


class Connection(ABC):
    """The connection of one client. `run` ends when the connection is closed or lost."""

    def __init__(self, limits: WireLimits, channel: Channel) -> None:
        self.limits = limits
        self.socket = channel.socket
        self.stream = channel.stream
        self.tasks = channel.tasks
        self.is_leaving = False

    @abstractmethod
    async def take(self, frame: str | bytes) -> None:
        """Called with each frame, one after the other."""

    async def run(self) -> None:
        """Take frames until the connection ends."""
        self.tasks.start_soon(watch_for_silence, self.stream, self.limits.keep_alive, self.lose, name="ws silence")
        try:
            while True:
                await self.take(await self.socket.get_message())
        except ConnectionClosed:
            if not self.is_leaving:
                self.lose()

    def lose(self) -> None:
        """End all tasks of this connection at once."""
        lose(self.tasks)

    def leave(self) -> None:
        """Send what waits, then close because the server shuts down."""
        self.is_leaving = True
        self.tasks.start_soon(self.finish, name="ws goodbye")

    async def finish(self) -> None:
        """Send what waits, and close."""
        await self.close(GOING_AWAY, "the server goes away")

    @property
    def fault(self) -> Fault | None:
        """The client's protocol error, if it ends the connection and no close frame has reported it."""
        if self.stream.has_said_goodbye:
            return None
        if self.stream.was_sent_too_much:
            return Fault(TOO_BIG, str(too_large(self.limits.max_frame_bytes)))
        closed = self.socket.closed
        return None if closed is None or closed.code not in _FAULTS else Fault(closed.code, _FAULTS[closed.code])

    def dismiss(self, code: int, reason: str, patience: float) -> None:
        """Close with a reason, after so many seconds at the latest."""
        self.tasks.start_soon(self.close, code, reason, patience, name="ws dismissal")

    async def close(self, code: int, reason: str, patience: float = inf) -> None:
        with trio.move_on_after(patience):
            await self.socket.aclose(code, reason)
        self.lose()


def lose(tasks: trio.Nursery) -> None:
    # A function for writers: with a method, writer and connection would hold each other until the collector comes.
    tasks.cancel_scope.cancel(reason="the connection is gone")


async def watch_for_silence(stream: WireStream, patience: float, lose: Callable[[], None]) -> None:
    """Ping a peer that was silent for so many seconds, and call `lose` if it stays silent."""
    while True:
        silent_since = stream.alive_at
        await trio.sleep_until(silent_since + patience)
        if stream.alive_at > silent_since:
            continue
        given_up_at = trio.current_time() + patience * MISSED_PINGS_BEFORE_CLOSE
        # The ping may have to wait behind events that the client does not read. A broken connection needs none.
        with trio.move_on_at(given_up_at), suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await stream.send_all(PING)
        await trio.sleep_until(given_up_at)
        if stream.alive_at == silent_since:
            lose()
