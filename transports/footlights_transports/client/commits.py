"""CommitFollower: what changes in the world of a server, followed over lost connections.

    async with client.follow_commits(under="/purse") as feed:
        purse = feed.world
        async for commit in feed: ...

It has its own connection, which is read only while the feed is read. After a loss the next read goes on after the last
commit, without a gap and without a repeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen
from wsproto.events import TextMessage

from footlights.authority.patch import from_json
from footlights.errors import InvalidCommand
from footlights_transports.client.connection import Outgoing, dial
from footlights_transports.client.protocol import protocol_error, refusal, result_of, text_in, write_command
from footlights_transports.client.retry import TRANSIENT, Backoff

if TYPE_CHECKING:
    from footlights.authority.patch import PatchOp
    from footlights_transports.client.commands import Commands
    from footlights_transports.client.connection import Connection
    from footlights_transports.client.protocol import Message


@frozen(kw_only=True)
class ToldCommit:
    """A commit, as far as this user may know it."""

    cursor: str
    """For `follow_commits(after=...)`."""
    session_id: str | None
    """For a player only of his own turns."""
    turn_id: str | None
    changes: tuple[PatchOp, ...] | None
    """In order, for `apply_patch`. None if what changed reaches into this part from outside: then read it anew."""
    commit_id: str | None = None
    """Only for operators, game servers and, on a server without tokens, everybody."""
    why: str | None = None
    """The same: the host's own words."""


class CommitFollower:
    """Made by `client.follow_commits`; read by one task."""

    def __init__(self, commands: Commands, after: str | None, under: str) -> None:
        self.cursor = after
        """The position after the last commit that was read."""
        self.world: Any = None
        """What the user sees there, if the feed begins now; None if that is nothing."""
        self._commands = commands
        self._under = under
        self._connection: Connection | None = None
        self._backoff = Backoff(commands.retry)

    async def __aenter__(self) -> CommitFollower:
        """Begin to follow. Raises the server's refusal, and `ConnectionLost`."""
        await self._go_on()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._drop_connection()

    def __aiter__(self) -> CommitFollower:
        return self

    async def __anext__(self) -> ToldCommit:
        """The next commit.

        Raises:
            InvalidCommand: the server does not know where to go on, as for a player after a restart: begin anew.
            ConnectionLost: the server could not be reached again.
            FootlightsError: the server ended the feed, for this reason.
        """
        while True:
            connection = await self._go_on()
            try:
                message = await connection.receive()
            except TRANSIENT as lost:
                await self._drop_connection()
                await self._backoff.wait_after(lost)
                continue
            if isinstance(message, dict) and message.get("notice") == "detached":
                raise refusal({"code": message.get("reason"), "message": "The server ended the feed."})
            if isinstance(message, dict) and "commit" in message:
                commit = _commit(message["commit"])
                self._backoff.reset()
                self.cursor = commit.cursor
                return commit

    async def _go_on(self) -> Connection:
        while self._connection is None:
            try:
                self._connection = await self._follow()
            except TRANSIENT as lost:
                await self._backoff.wait_after(lost)
        return self._connection

    async def _follow(self) -> Connection:
        fields = {"under": self._under} if self.cursor is None else {"under": self._under, "after": self.cursor}
        connection = await dial(self._commands.address, self._commands.nursery)
        try:
            await connection.send(Outgoing(TextMessage(data=write_command("follow_commits", 1, fields))))
            begun = result_of(_reply_in(await connection.receive()))
            if self.cursor is None:
                self.cursor, self.world = text_in(begun, "cursor"), begun.get("world")
        except BaseException:
            await connection.aclose()
            raise
        self._backoff.connected()
        self._backoff.answered()
        return connection

    async def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.aclose()


def _reply_in(message: Message) -> dict[str, Any]:
    if not isinstance(message, dict) or "reply" not in message:
        raise protocol_error()
    return message


def _commit(told: Any) -> ToldCommit:
    try:
        changes = told["changes"]
        return ToldCommit(
            cursor=text_in(told, "cursor"),
            session_id=told["session_id"],
            turn_id=told["turn_id"],
            changes=None if changes is None else tuple(map(from_json, changes)),
            commit_id=told.get("commit_id"),
            why=told.get("why"),
        )
    except (KeyError, TypeError, AttributeError, InvalidCommand):
        raise protocol_error() from None
