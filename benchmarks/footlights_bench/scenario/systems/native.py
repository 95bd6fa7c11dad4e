"""Remote system: a server that speaks the native protocol, measured from outside."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

import trio

from footlights.errors import FootlightsError, SessionClosed
from footlights_transports import connect

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from contextlib import AbstractAsyncContextManager

    from footlights.events import StreamEvent
    from footlights_transports import Client, ClientSession, ClientStream

PLAYERS_A_CONNECTION = 4
"""Players that share a connection for commands. Each has another one for events; both sides limit open files."""

CLOSING = 5.0
"""Seconds that a server may take to close a session."""


class RemotePlayer:
    """A client of a session on a server. Its stream reconnects by itself."""

    def __init__(self, session: ClientSession, stream: ClientStream) -> None:
        self._session = session
        self._stream = stream

    async def receive_batch(self) -> Sequence[StreamEvent]:
        if batch := await self._stream.receive_batch():
            return batch
        raise SessionClosed("The session was closed from elsewhere.")

    async def cut(self) -> None:
        await self._stream.drop_connection()

    async def begin_turn(self, said: str) -> str:
        return await self._session.begin_turn(said)

    async def cancel(self, turn_id: str) -> None:
        await self._session.cancel(turn_id)

    def open_audience(self) -> AbstractAsyncContextManager[RemotePlayer]:
        return _open_player(self._session)


@asynccontextmanager
async def _open_player(session: ClientSession) -> AsyncGenerator[RemotePlayer]:
    async with session.subscribe() as stream:
        yield RemotePlayer(session, stream)


class Remote:
    """A server at a URL, made by `open_remote`."""

    def __init__(self, url: str, token: str | None, stack: AsyncExitStack) -> None:
        self.name = url
        self._token = token
        self._stack = stack
        self._client: Client | None = None
        self._places = 0
        self._is_there = True

    @asynccontextmanager
    async def open_player(self) -> AsyncGenerator[RemotePlayer]:
        session = await (await self._connected()).start()
        async with _open_player(session) as player:
            yield player
        await self._close(session)

    def depths(self) -> None:
        return None

    async def _close(self, session: ClientSession) -> None:
        """Ignore a server that went away, and wait for it only once: what was measured is still valid."""
        if self._is_there:
            self._is_there = False
            with suppress(FootlightsError), trio.move_on_after(CLOSING):
                await session.close()
                self._is_there = True

    async def _connected(self) -> Client:
        if self._client is None or not self._places:
            self._client = await self._stack.enter_async_context(connect(self.name, token=self._token))
            self._places = PLAYERS_A_CONNECTION
        self._places -= 1
        return self._client


@asynccontextmanager
async def open_remote(url: str, token: str | None) -> AsyncGenerator[Remote]:
    """Connects only when a player is opened, so nothing is raised before that."""
    async with AsyncExitStack() as stack:
        yield Remote(url, token, stack)
