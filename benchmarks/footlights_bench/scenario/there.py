"""A server elsewhere that speaks the native protocol, as the harness sees it: from outside, as players do."""

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
"""How many share one for what they say. What they see comes over one for each; files are limited, on both sides."""

CLOSING = 5.0
"""Seconds that a server may take to close a session."""


class RemoteClient:
    """One who follows a session of a server. Its stream comes back by itself."""

    def __init__(self, stream: ClientStream) -> None:
        self._stream = stream

    async def receive_batch(self) -> Sequence[StreamEvent]:
        if batch := await self._stream.receive_batch():
            return batch
        raise SessionClosed("The session was closed by somebody else.")

    async def cut(self) -> None:
        await self._stream.drop_connection()


@asynccontextmanager
async def _open_client(session: ClientSession) -> AsyncGenerator[RemoteClient]:
    async with session.subscribe() as stream:
        yield RemoteClient(stream)


class RemotePlayer:
    """One who follows a session of a server and speaks in it."""

    def __init__(self, session: ClientSession, client: RemoteClient) -> None:
        self._session = session
        self.receive_batch = client.receive_batch
        self.cut = client.cut

    async def begin_turn(self, said: str) -> str:
        return await self._session.begin_turn(said)

    async def cancel(self, turn_id: str) -> None:
        await self._session.cancel(turn_id)

    def open_audience(self) -> AbstractAsyncContextManager[RemoteClient]:
        return _open_client(self._session)


class There:
    """A server elsewhere. Made by `open_there`."""

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
        async with _open_client(session) as client:
            yield RemotePlayer(session, client)
        await self._close(session)

    def depths(self) -> None:
        return None

    async def _close(self, session: ClientSession) -> None:
        """A server that went away takes nothing from what was measured, and is not waited for again and again."""
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
async def open_there(url: str, token: str | None) -> AsyncGenerator[There]:
    """Raises nothing yet: players connect when they come."""
    async with AsyncExitStack() as stack:
        yield There(url, token, stack)
