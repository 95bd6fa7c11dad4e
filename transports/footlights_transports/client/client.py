"""A client of a Footlights server, for trio programs.

    async with connect("ws://127.0.0.1:7600") as client:
        session = await client.start()
        async with session.subscribe() as stream:
            turn_id = await session.begin_turn("A room?")
            async for event in stream.until_commit(turn_id): ...
        await session.close()

It speaks the native protocol. A session looks like one of this process, with the plain calls awaited. Lost connections
are made again, streams go on where they were, and what comes is held to the laws.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from footlights_transports.client.address import Address
from footlights_transports.client.calls import Calls
from footlights_transports.client.errors import ConnectionLost, LawBroken
from footlights_transports.client.messages import text_in
from footlights_transports.client.retry import Retry
from footlights_transports.client.session import ClientSession, Commit, write_params
from footlights_transports.client.stream import ClientStream

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator

    from footlights.params import SessionParams

__all__ = ["Client", "ClientSession", "ClientStream", "Commit", "ConnectionLost", "LawBroken", "Retry", "connect"]


class Client:
    """Who is connected to a server. Made by `connect`."""

    def __init__(self, address: Address, retry: Retry, nursery: trio.Nursery) -> None:
        self._address = address
        self._retry = retry
        self._nursery = nursery
        self._calls = Calls(address, retry, nursery)

    async def start(self, params: SessionParams | None = None) -> ClientSession:
        """Start a session. Raises what `stage.start` raises, and `ConnectionLost`: then it may have been started."""
        fields = {} if params is None else {"params": write_params(params)}
        result = await self._calls.call("start", fields, again=False)
        agreed = params is not None and params.remote_models is True
        return self.session(text_in(result, "session_id"), remote_models=agreed)

    def session(self, session_id: str, *, remote_models: bool = False) -> ClientSession:
        """A session that was started before, also by somebody else or before a restart of the server.

        A server that was started again keeps no consent: `remote_models` gives it again.
        """
        return ClientSession(
            session_id, self._calls, self._address, self._retry, self._nursery, remote_models=remote_models
        )

    async def open(self) -> None:
        """Called by `connect`."""
        await self._calls.open()

    async def close(self) -> None:
        """Called by `connect`."""
        await self._calls.close()


@asynccontextmanager
async def connect(
    url: str,
    *,
    token: str | None = None,
    tls: ssl.SSLContext | None = None,
    retry: Retry | None = None,
    dial_timeout: float = 10.0,
    silence: float = 30.0,
) -> AsyncGenerator[Client, None]:
    """Connect to a server, `ws://HOST:PORT` or `wss://HOST:PORT`. Leaving the block cancels and closes nothing there.

    `retry` says how to come back after the connection was lost. `dial_timeout` is how long making one may take, and
    `silence` how long a server may be silent before it is asked for a sign of life, and then again before it is given
    up; both in seconds.

    Raises:
        ConnectionLost: nobody answers there. The first connection is not tried again.
        Unauthorized: the token is missing or not known.
        UnsupportedVersion: whoever answers does not speak the protocol.
    """
    address = Address(url=url, token=token, tls=tls, dial_timeout=dial_timeout, silence=silence)
    host_error: BaseException | None = None
    async with trio.open_nursery() as nursery:
        client = Client(address, retry or Retry(), nursery)
        try:
            await client.open()
            yield client
        except BaseException as error:  # noqa: BLE001 - carried around the nursery, which would wrap it
            host_error = error
        await client.close()
        nursery.cancel_scope.cancel(reason="the client leaves")
    if host_error is not None:
        raise host_error
