"""The commands of a client on one connection, each of which waits for its reply.

What became of those that wait when the connection ends is told as exactly as it can be known: which one was too large,
which ones the server has not read, and which ones it may have done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from footlights.errors import FootlightsError, TooLarge
from footlights_transports.client.connection import Outgoing
from footlights_transports.client.errors import ConnectionLost
from footlights_transports.client.messages import TOO_BIG, read_message, refusal_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights_transports.client.connection import Connection


class _Asked:
    """A command that waits for its reply."""

    __slots__ = ("answer", "outgoing", "settled", "size")

    def __init__(self, frame: str) -> None:
        self.size = len(frame.encode())
        self.outgoing = Outgoing.text(frame)
        self.settled = trio.Event()
        self.answer: dict[str, Any] | FootlightsError = {}

    def settle(self, answer: dict[str, Any] | FootlightsError) -> None:
        self.answer = answer
        self.settled.set()


class Asks:
    """Made for one connection, and of no more use when that is lost. One task runs `run`."""

    def __init__(self, connection: Connection, on_reply: Callable[[], None]) -> None:
        self._connection = connection
        self._on_reply = on_reply
        self._asked: dict[int, _Asked] = {}
        """In the order in which they are sent; also those for whose reply nobody waits any more."""

    @property
    def is_open(self) -> bool:
        return self._connection.is_open

    async def ask(self, command_id: int, frame: str) -> dict[str, Any]:
        """The reply to a command.

        Raises:
            ConnectionLost: there will be none; `maybe_done` tells whether the server may have got the command.
            TooLarge: the server takes no command of that size.
            FootlightsError: the server could not read a command, and it may have been this one.
        """
        asked = self._asked[command_id] = _Asked(frame)
        try:
            await self._connection.send(asked.outgoing)
        except BaseException:
            self._asked.pop(command_id, None)
            raise
        await asked.settled.wait()
        if isinstance(asked.answer, FootlightsError):
            raise asked.answer
        return asked.answer

    async def run(self) -> None:
        """Give each command its reply, until the connection ends."""
        try:
            await self._connection.run(self._take)
        finally:
            self._end()

    async def aclose(self) -> None:
        await self._connection.aclose()

    # -- inside

    async def _take(self, message: str) -> None:
        reply = read_message(message)
        if isinstance(reply, dict) and "reply" in reply:
            self._answer(reply["reply"], reply)

    def _answer(self, command_id: object, reply: dict[str, Any]) -> None:
        if command_id is None:
            self._answer_whoever(reply)
        elif type(command_id) is int and command_id in self._asked:
            self._on_reply()
            self._asked.pop(command_id).settle(reply)

    def _answer_whoever(self, reply: dict[str, Any]) -> None:
        """The server could not even read whose command it was."""
        waiting = list(self._asked.values())
        self._asked.clear()
        for asked in waiting:
            asked.settle(reply if len(waiting) == 1 else _unreadable(reply, len(waiting)))

    def _end(self) -> None:
        is_read = True
        too_large = self._largest() if self._connection.close_code == TOO_BIG else None
        for asked in self._asked.values():
            if asked is too_large:
                is_read = False
                asked.settle(TooLarge("The server hung up, because the command is larger than it takes."))
            else:
                asked.settle(_lost(maybe_done=is_read and asked.outgoing.is_sent))
        self._asked.clear()

    def _largest(self) -> _Asked | None:
        begun = (asked for asked in self._asked.values() if asked.outgoing.is_begun)
        return max(begun, key=lambda asked: asked.size, default=None)


def _lost(*, maybe_done: bool) -> ConnectionLost:
    what = "it may have been done" if maybe_done else "it was not done"
    return ConnectionLost(f"The connection was lost before the reply; {what}.", maybe_done=maybe_done)


def _unreadable(reply: dict[str, Any], count: int) -> FootlightsError:
    told = refusal_in(reply)
    return type(told)(f"The server could not read one of {count} commands, and cannot tell which: {told}")
