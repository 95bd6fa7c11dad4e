"""Commands and their replies, over one connection at a time; when it is lost, the next command dials again.

A command whose connection is lost before its reply came may have been done or not. One that may be done twice is sent
again; for any other `ConnectionLost` is raised.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import trio

from footlights.errors import FootlightsError
from footlights_transports.client.asks import Asks
from footlights_transports.client.dial import dial
from footlights_transports.client.errors import ConnectionLost
from footlights_transports.client.messages import result_of, write_command
from footlights_transports.client.retry import PASSING, Losses

if TYPE_CHECKING:
    from footlights_transports.client.address import Address
    from footlights_transports.client.retry import Retry


class _Return:
    """The way back to a server that was lost: one, for everybody who waits for it."""

    def __init__(self) -> None:
        self.over = trio.Event()
        self.failure: FootlightsError | None = None


class Calls:
    """Made by `connect`, one for a client."""

    def __init__(self, address: Address, retry: Retry, nursery: trio.Nursery) -> None:
        self._address = address
        self._nursery = nursery
        self._losses = Losses(retry)
        self._asks: Asks | None = None
        self._return: _Return | None = None
        self._ids = count(1)
        self.dialled = 0
        """How many connections there were so far. A new one may lead to a server that was started again."""

    async def open(self) -> None:
        """Dial, once. Raises what `dial` raises."""
        self._asks = asks = Asks(await dial(self._address), on_reply=self._losses.forget)
        self._losses.connected()
        self.dialled += 1
        self._nursery.start_soon(asks.run, name="client commands")

    async def close(self) -> None:
        if self._asks is not None:
            await self._asks.aclose()

    async def call(self, op: str, fields: dict[str, Any], *, again: bool) -> dict[str, Any]:
        """The result of a command; `again` says that it may be done twice.

        Raises:
            ConnectionLost: it may have been done or not, or the server could not be reached in time.
            FootlightsError: what the server refused it with.
        """
        command_id = next(self._ids)
        frame = write_command(op, command_id, fields)
        maybe_done = False
        while True:
            try:
                asks = await self._connected()
            except ConnectionLost as lost:
                raise ConnectionLost(str(lost), maybe_done=maybe_done) from None
            try:
                reply = await asks.ask(command_id, frame)
            except ConnectionLost as lost:
                maybe_done = maybe_done or lost.maybe_done
                if maybe_done and not again:
                    raise
            else:
                return result_of(reply)

    async def _connected(self) -> Asks:
        """Whoever is cancelled while it waits does not stop the others' way back."""
        while self._asks is None or not self._asks.is_open:
            if self._return is None:
                self._return = _Return()
                self._nursery.start_soon(self._come_back, self._return, name="client comes back")
            coming = self._return
            await coming.over.wait()
            if coming.failure is not None:
                raise coming.failure
        return self._asks

    async def _come_back(self, coming: _Return) -> None:
        lost: FootlightsError = ConnectionLost("The connection is gone.")
        try:
            while True:
                await self._losses.wait_after(lost)
                try:
                    return await self.open()
                except PASSING as error:
                    lost = error
        except FootlightsError as failure:
            coming.failure = failure
        finally:
            self._return = None
            coming.over.set()
