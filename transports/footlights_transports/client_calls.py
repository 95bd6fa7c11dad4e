"""Commands and their replies, over one connection at a time; when it is lost, the next command dials again.

A command whose connection is lost before its reply came may have been done or not. One that may be done twice is sent
again; for any other `ConnectionLost` is raised.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, cast

import orjson
import trio

from footlights.errors import InvalidCommand, TooLarge
from footlights_transports.client_connection import dial
from footlights_transports.client_errors import ConnectionLost, refusal
from footlights_transports.client_retry import Losses

if TYPE_CHECKING:
    from footlights_transports.client_connection import Address, Connection
    from footlights_transports.client_retry import Retry

_TOO_BIG = 1009


class _Asked:
    """A command that waits for its reply."""

    __slots__ = ("connection", "frame", "reply", "settled")

    def __init__(self, frame: str, connection: Connection) -> None:
        self.frame = frame
        self.connection = connection
        self.settled = trio.Event()
        self.reply: dict[str, Any] | None = None

    def settle(self, reply: dict[str, Any] | None) -> None:
        self.reply = reply
        self.settled.set()


class Calls:
    """Made by `connect`, one for a client."""

    def __init__(self, address: Address, retry: Retry, nursery: trio.Nursery) -> None:
        self._address = address
        self._retry = retry
        self._nursery = nursery
        self._connection: Connection | None = None
        self._dialling = trio.Lock()
        self._asked: dict[int, _Asked] = {}
        self._ids = count(1)
        self.dialled = 0
        """How many connections there were so far. A new one may lead to a server that was started again."""

    async def open(self) -> None:
        """Dial, once. Raises what `dial` raises."""
        connection = await dial(self._address)
        self.dialled += 1
        self._connection = connection
        self._nursery.start_soon(self._attend, connection, name="client commands")

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.aclose()

    async def call(self, op: str, fields: dict[str, Any], *, again: bool) -> dict[str, Any]:
        """The result of a command; `again` says that it may be done twice.

        Raises:
            ConnectionLost: it may have been done or not, or the server could not be reached often enough.
            FootlightsError: what the server refused it with.
        """
        command_id = next(self._ids)
        frame = write_command(op, command_id, fields)
        losses = Losses(self._retry)
        while True:
            connection = await self._connected()
            try:
                return result_of(await self._ask(connection, command_id, frame))
            except ConnectionLost as lost:
                if lost.maybe_done and not again:
                    raise
                await losses.wait_after(lost)

    async def _connected(self) -> Connection:
        async with self._dialling:
            if self._connection is None or not self._connection.is_open:
                await self._retry.until_done(self.open)
            assert self._connection is not None
            return self._connection

    async def _ask(self, connection: Connection, command_id: int, frame: str) -> dict[str, Any]:
        asked = self._asked[command_id] = _Asked(frame, connection)
        try:
            await connection.send(frame)
            await asked.settled.wait()
        finally:
            del self._asked[command_id]
        if asked.reply is not None:
            return asked.reply
        if connection.close_code == _TOO_BIG:
            raise TooLarge("The server hung up, because a command was larger than it takes.")
        raise ConnectionLost("The connection was lost before the reply; it may have been done.", maybe_done=True)

    async def _attend(self, connection: Connection) -> None:
        try:
            await connection.run(self._take)
        finally:
            for asked in self._asked.values():
                if asked.connection is connection:
                    asked.settle(None)

    async def _take(self, message: str) -> None:
        reply = read_message(message)
        if isinstance(reply, dict) and isinstance(command_id := reply.get("reply"), int):
            asked = self._asked.get(command_id)
            if asked is not None:
                asked.settle(reply)


def write_command(op: str, command_id: int, fields: dict[str, Any]) -> str:
    """Raises `InvalidCommand` for what JSON cannot say."""
    try:
        return orjson.dumps({"op": op, "id": command_id, **fields}).decode()
    except orjson.JSONEncodeError:
        raise InvalidCommand("The command holds what JSON cannot say, such as half of a surrogate pair.") from None


def read_message(message: str) -> dict[str, Any] | list[dict[str, Any]]:
    """What a server sent. Raises `ConnectionLost` for what none of ours would send."""
    try:
        value = orjson.loads(message)
    except orjson.JSONDecodeError:
        raise ConnectionLost("The server does not speak our protocol.") from None
    if not isinstance(value, dict | list):
        raise ConnectionLost("The server does not speak our protocol.")
    return cast("dict[str, Any] | list[dict[str, Any]]", value)


def result_of(reply: dict[str, Any]) -> dict[str, Any]:
    """What a command came to. Raises what it was refused with."""
    if reply.get("ok") is True:
        return cast("dict[str, Any]", reply.get("result") or {})
    told = cast("dict[str, object]", reply.get("error") or {})
    raise refusal(told.get("code"), told.get("message"))
