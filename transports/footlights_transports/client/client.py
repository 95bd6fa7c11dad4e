"""Client of a Footlights server, for trio programs.

    async with connect("ws://127.0.0.1:7600") as client:
        session = await client.start()
        async with session.subscribe() as stream:
            turn_id = await session.begin_turn("A room?")
            async for event in stream.until_commit(turn_id): ...
        await session.close()

It speaks the native protocol. A session looks like a local one, except that plain calls are awaited. The client
reconnects after a loss, streams continue where they were, and every event is checked against the laws.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from footlights.params import SessionParams
from footlights_transports.client.address import Address
from footlights_transports.client.commands import Commands
from footlights_transports.client.commits import CommitFollower
from footlights_transports.client.protocol import text_in
from footlights_transports.client.retry import Retry
from footlights_transports.client.session import ClientSession, write_params

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncGenerator, Mapping

    from footlights.events import JsonValue


class Client:
    """A connected client. Made by `connect`."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    async def start(self, params: SessionParams | None = None) -> ClientSession:
        """Start a session. Raises what `stage.start` raises, and `ConnectionLost`: then it may have been started."""
        fields = {} if params is None else {"params": write_params(params)}
        result = await self._commands.call("start", fields, again=False)
        given = SessionParams() if params is None else params
        consent = given.remote_models is True
        session = self.session(text_in(result, "session_id"), remote_models=consent, about=given.about)
        session.persona = text_in(result, "persona") if "persona" in result else None
        return session

    async def world(self, path: str = "") -> Any:
        """The part of the world at this JSON pointer, as far as the user may see it. Raises `TooLarge`."""
        return (await self._commands.call("world", {"path": path} if path else {}, again=True)).get("world")

    def follow_commits(self, *, after: str | None = None, under: str = "") -> CommitFollower:
        """What changes in that part of the world: enter it, and iterate. `under` is a JSON pointer.

        `after` is the `cursor` of an earlier feed, or `genesis`; without one it begins now.
        """
        return CommitFollower(self._commands, after, under)

    def session(
        self, session_id: str, *, remote_models: bool = False, about: Mapping[str, JsonValue] | None = None
    ) -> ClientSession:
        """A session that exists already: started by another client, or before a restart of the server.

        A server that was restarted has forgotten the session's consent to remote models; `remote_models` renews it.
        The same holds for what a game server said about the player, and `about`.
        """
        return ClientSession(session_id, self._commands, remote_models=remote_models, about=about or {})


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
    """Connect to a server, `ws://HOST:PORT` or `wss://HOST:PORT`. Leaving the block leaves its sessions running.

    `retry` is the policy for reconnecting after a loss. `dial_timeout` limits the time for making a connection. After
    `silence` seconds without data the client sends a ping, and after as many again it drops the connection.

    Raises:
        ConnectionLost: no server answers. The first connection is attempted once.
        Unauthorized: the token is missing or unknown.
        UnsupportedVersion: what answers does not speak the protocol.
    """
    address = Address(url, token=token, tls=tls, dial_timeout=dial_timeout, silence=silence)
    host_error: BaseException | None = None
    async with trio.open_nursery() as nursery:
        commands = Commands(address, retry or Retry(), nursery)
        try:
            await commands.open()
            yield Client(commands)
        except BaseException as error:  # noqa: BLE001 - raised again outside of the nursery, which would wrap it
            host_error = error
        await commands.close()
        nursery.cancel_scope.cancel(reason="the client leaves")
    if host_error is not None:
        raise host_error
