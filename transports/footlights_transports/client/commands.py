"""Commands: calls to a server that wait for their replies, over one connection at a time.

When the connection is lost, the next command dials again. A command without a reply may have been executed or not: one
that is safe to repeat is sent again, and any other raises `ConnectionLost`. If the server is then too busy for it, that
says nothing about the first attempt, and the command is sent once more, after a wait.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import trio
from wsproto.events import TextMessage

from footlights.errors import Busy, FootlightsError, TooLarge
from footlights_transports.client.connection import Outgoing, dial
from footlights_transports.client.protocol import TOO_BIG, ConnectionLost, refusal, result_of, write_command
from footlights_transports.client.retry import TRANSIENT, Backoff
from footlights_transports.errors import RateLimited

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights_transports.client.address import Address
    from footlights_transports.client.connection import Connection
    from footlights_transports.client.retry import Retry


class _Command(Outgoing):
    """A command that waits for its reply."""

    def __init__(self, frame: str) -> None:
        super().__init__(TextMessage(data=frame))
        self.size = len(frame.encode())
        self.settled = trio.Event()
        self.answer: dict[str, Any] | FootlightsError = {}

    def settle(self, answer: dict[str, Any] | FootlightsError) -> None:
        self.answer = answer
        self.settled.set()


class _Reconnection:
    """The attempt to connect again that all waiting commands share."""

    def __init__(self) -> None:
        self.over = trio.Event()
        self.failure: FootlightsError | None = None


class Commands:
    """The commands of one client, which opens the first connection with `open`."""

    def __init__(self, address: Address, retry: Retry, nursery: trio.Nursery) -> None:
        self.address = address
        self.retry = retry
        self.nursery = nursery
        self.dialled = 0
        """The number of connections so far. Each new one may reach a server that was restarted."""
        self._backoff = Backoff(retry)
        self._replies: _Replies | None = None
        self._reconnection: _Reconnection | None = None
        self._ids = count(1)

    async def open(self) -> None:
        """Connect, with a single attempt. Raises what `dial` raises."""
        connection = await dial(self.address, self.nursery)
        self._replies = _Replies(connection, on_reply=self._backoff.reset)
        self.nursery.start_soon(self._replies.run, name="client commands")
        self._backoff.connected()
        self.dialled += 1

    async def close(self) -> None:
        if self._replies is not None:
            await self._replies.connection.aclose()

    async def call(self, op: str, fields: dict[str, Any], *, again: bool) -> dict[str, Any]:
        """The result of a command; `again` says that it is safe to repeat.

        Raises:
            ConnectionLost: the command may have been executed or not, or the server could not be reached in time.
            FootlightsError: the server refused the command.
        """
        command_id = next(self._ids)
        frame = write_command(op, command_id, fields)
        maybe_done = False
        refusals = Backoff(self.retry)
        while True:
            try:
                replies = await self._connected()
            except ConnectionLost as lost:
                raise ConnectionLost(str(lost), maybe_done=maybe_done) from None
            try:
                reply = await replies.ask(command_id, frame)
            except ConnectionLost as lost:
                maybe_done = maybe_done or lost.maybe_done
                if maybe_done and not again:
                    raise
                continue
            try:
                return result_of(reply)
            except (Busy, RateLimited) as refused:
                if not maybe_done:
                    raise
                try:
                    await refusals.wait_after(refused)
                except (Busy, RateLimited) as still:
                    raise ConnectionLost(
                        "The server is too busy to say whether it was done.", maybe_done=True
                    ) from still

    async def _connected(self) -> _Replies:
        while self._replies is None or not self._replies.connection.is_open:
            if self._reconnection is None:
                # In a task of its own: a waiting command that is cancelled does not stop it for the others.
                self._reconnection = _Reconnection()
                self.nursery.start_soon(self._reconnect, self._reconnection, name="client reconnects")
            reconnection = self._reconnection
            await reconnection.over.wait()
            if reconnection.failure is not None:
                raise reconnection.failure
        return self._replies

    async def _reconnect(self, reconnection: _Reconnection) -> None:
        lost: FootlightsError = ConnectionLost("The connection is gone.")
        try:
            while True:
                await self._backoff.wait_after(lost)
                try:
                    return await self.open()
                except TRANSIENT as error:
                    lost = error
        except FootlightsError as failure:
            reconnection.failure = failure
        finally:
            self._reconnection = None
            reconnection.over.set()


class _Replies:
    """The commands on one connection, and their replies.

    When the connection ends, each waiting command gets an error as exact as possible: it was too large, the server has
    not read it, or the server may have executed it.
    """

    def __init__(self, connection: Connection, on_reply: Callable[[], None]) -> None:
        self.connection = connection
        self._on_reply = on_reply
        self._waiting: dict[int, _Command] = {}
        """In the order of sending, including cancelled commands whose reply is still to come."""

    async def ask(self, command_id: int, frame: str) -> dict[str, Any]:
        """The reply to a command.

        Raises:
            ConnectionLost: there is no reply; `maybe_done` tells whether the server may have executed the command.
            TooLarge: the server closed the connection because of the size of this command.
            FootlightsError: the server could not read one of several commands, possibly this one.
        """
        command = self._waiting[command_id] = _Command(frame)
        try:
            await self.connection.send(command)
        except BaseException:
            self._waiting.pop(command_id, None)
            raise
        await command.settled.wait()
        if isinstance(command.answer, FootlightsError):
            raise command.answer
        return command.answer

    async def run(self) -> None:
        """Give each command its reply, until the connection ends."""
        try:
            with suppress(ConnectionLost, TooLarge):
                while True:
                    reply = await self.connection.receive()
                    if isinstance(reply, dict) and "reply" in reply:
                        self._take(reply["reply"], reply)
        finally:
            # First: a command that is half written may still go out, and would be sent again as if it had not.
            await self.connection.stop_writing()
            self._end()

    def _take(self, command_id: object, reply: dict[str, Any]) -> None:
        if command_id is None:
            self._answer_all(reply)
        elif type(command_id) is int and command_id in self._waiting:
            self._on_reply()
            self._waiting.pop(command_id).settle(reply)

    def _answer_all(self, reply: dict[str, Any]) -> None:
        """The server could not read a command, not even its id."""
        waiting = list(self._waiting.values())
        self._waiting.clear()
        for command in waiting:
            command.settle(reply if len(waiting) == 1 else _unreadable(reply, len(waiting)))

    def _end(self) -> None:
        begun = (command for command in self._waiting.values() if command.is_begun)
        too_large = None
        if self.connection.close_code == TOO_BIG:
            too_large = max(begun, key=lambda command: command.size, default=None)
        is_read = True
        for command in self._waiting.values():
            if command is too_large:
                is_read = False
                command.settle(TooLarge("The server closed the connection, because the command is too large for it."))
            else:
                command.settle(_lost(maybe_done=is_read and command.is_sent))
        self._waiting.clear()


def _lost(*, maybe_done: bool) -> ConnectionLost:
    what = "it may have been done" if maybe_done else "it was not done"
    return ConnectionLost(f"The connection was lost before the reply; {what}.", maybe_done=maybe_done)


def _unreadable(reply: dict[str, Any], count: int) -> FootlightsError:
    error = refusal(reply.get("error"))
    return type(error)(f"The server could not read one of {count} commands, and cannot tell which: {error}")
