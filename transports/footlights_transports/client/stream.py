"""ClientStream: one subscriber's stream of a session on a server, which survives lost connections.

    async with session.subscribe() as stream:
        async for event in stream: ...

Each stream has its own connection. After a loss the next read resubscribes with the cursor, and continues without a gap
and without a repeat. The connection is read only while the stream is read, so that the server sees a slow subscriber.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import trio
from wsproto.events import TextMessage

from footlights import wire
from footlights.errors import (
    Detached,
    FootlightsError,
    InvalidCommand,
    InvalidEvent,
    SessionClosed,
    UnknownSession,
    UnknownTurn,
)
from footlights.events import StreamEvent
from footlights.laws import Violation
from footlights.stream.until_commit import UntilCommit
from footlights_transports.client.connection import Outgoing, dial
from footlights_transports.client.progress import Progress
from footlights_transports.client.protocol import (
    ConnectionLost,
    LawBroken,
    cursor_in,
    protocol_error,
    result_of,
    write_command,
)
from footlights_transports.client.retry import TRANSIENT, Backoff

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping, Sequence

    from footlights.events import SeqRange
    from footlights_transports.client.connection import Connection
    from footlights_transports.client.protocol import Message
    from footlights_transports.client.session import ClientSession

_TRANSIENT: tuple[type[FootlightsError], ...] = (*TRANSIENT, Detached)
_SUBSCRIBE, _CLOSE = 1, 2
"""Command ids."""


class ClientStream(trio.abc.ReceiveChannel[StreamEvent]):
    """One subscriber's stream. Made by `session.subscribe`; read by one task."""

    def __init__(
        self, session: ClientSession, after: Mapping[str, int] | None, terminal_seen: Collection[str] = ()
    ) -> None:
        self._session = session
        self._progress = Progress(after or {}, terminal_seen)
        self._feed = _Feed(session, self._progress, resumes=after is not None)
        self._is_new = True
        self._waiting: deque[Mapping[str, object]] = deque()
        self._broken: LawBroken | None = None
        self._is_read = False

    async def __aenter__(self) -> ClientStream:
        """Subscribe. Raises what entering a local subscription raises, and `ConnectionLost`."""
        await trio.lowlevel.checkpoint()
        if not self._is_new:
            raise InvalidCommand("A subscription is entered once; subscribe again.")
        if self._session.is_closed:
            raise SessionClosed(f"The session {self._session.session_id} is closed.")
        await self._feed.open()
        self._is_new = False
        self._session.attach(self)
        return self

    async def aclose(self) -> None:
        """Unsubscribe, which leaves the turns alone. `async with` calls it. Events that have come can still be read."""
        self._session.detach(self)
        self._feed.has_ended = True
        await self.drop_connection()
        await trio.lowlevel.cancel_shielded_checkpoint()

    async def receive(self) -> StreamEvent:
        """The next event. It waits, and is a checkpoint, only when there is none.

        Raises:
            trio.EndOfChannel: the session is closed and everything was received. (`async for` ends.)
            LawBroken: the server sent an unlawful event.
            ConnectionLost: the server could not be reached again.
            TooLarge: the cursor is too large for the server, or a message of the server is too large.
            FootlightsError: the server refused to resubscribe, for this reason. After `SessionClosed` and
                `UnknownSession` the session is closed, and the outcome of its last turns cannot be known here.
        """
        if not self._waiting and not await self._more():
            raise trio.EndOfChannel
        return self._take()

    async def receive_batch(self, limit: int = 256) -> list[StreamEvent]:
        """At least one event and what else is here, up to `limit`; an empty list at the end of the stream."""
        if limit < 1:
            raise InvalidCommand("A batch needs a limit of at least 1.")
        await trio.lowlevel.checkpoint()
        if not self._waiting and not await self._more():
            return []
        return [self._take() for _ in range(min(limit, len(self._waiting)))]

    def until_commit(self, turn_id: str) -> AsyncIterator[StreamEvent]:
        """Every event of the session up to the commit_final of this turn, including those of other turns.

        Ends at once if the commit_final was received. Raises `UnknownTurn` for a turn that this session did not begin
        and of which no event was received.
        """
        if not (self._progress.knows(turn_id) or self._session.has_begun(turn_id)):
            raise UnknownTurn("That turn was not begun here, and nothing of it has come yet.")
        return UntilCommit(self, turn_id, done=self._progress.has_all_of(turn_id))

    @property
    def cursor(self) -> Mapping[str, int]:
        """What was received so far, for `subscribe(after=...)`; a turn that began but has not come yet is at -1."""
        return self._progress.cursor

    @property
    def terminal_seen(self) -> frozenset[str]:
        """The turns whose end was received but not their commit, for `subscribe(terminal_seen=...)`."""
        return self._progress.terminal_seen

    @property
    def is_exhausted(self) -> bool:
        """Whether the session is closed, or the stream left, and everything was received."""
        return self._feed.has_ended and not self._waiting

    def missed(self, turn_id: str) -> tuple[SeqRange, ...]:
        """The events that this subscriber does not get, of an open turn or one of the last finished ones.

        This includes deltas that were joined to a later one, although their text has come.
        """
        return self._progress.missed(turn_id)

    # -- for the session

    def expect(self, turn_id: str) -> bool:
        """This turn was begun: when resubscribing, ask for its end, even if its beginning never came.

        Returns whether nothing of the turn has come yet.
        """
        is_missing = not self._progress.knows(turn_id)
        self._progress.expect(turn_id)
        return is_missing

    async def resubscribe(self) -> None:
        """Subscribe again before the next read, with the current cursor."""
        await self._feed.resubscribe()

    async def drop_connection(self) -> None:
        """Close the connection. The next read resubscribes, unless the stream has ended."""
        await self._feed.drop_connection()

    # -- inside

    def _take(self) -> StreamEvent:
        try:
            event = _event(self._waiting.popleft(), self._session.session_id)
            self._progress.take(event)
        except LawBroken as error:
            self._broken = error
            self._waiting.clear()
            raise
        return event

    async def _more(self) -> bool:
        """Wait until there is an event; False at the end of the stream."""
        await trio.lowlevel.checkpoint()
        if self._is_new:
            raise InvalidCommand("Enter the subscription first: async with session.subscribe() as stream.")
        if self._broken is not None:
            raise self._broken
        if self._is_read:
            raise trio.BusyResourceError("Another task is reading this subscription.")
        self._is_read = True
        try:
            self._waiting.extend(await self._feed.receive())
        finally:
            self._is_read = False
        return bool(self._waiting)


def _event(sent: Mapping[str, object], session_id: str) -> StreamEvent:
    """Raises `LawBroken`."""
    try:
        event = wire.from_wire(sent)
    except InvalidEvent as error:
        raise LawBroken(Violation("envelope", session_id, None, None, str(error))) from None
    if event.session_id != session_id:
        raise LawBroken(Violation("envelope", session_id, event.turn_id, event.seq, "belongs to another session"))
    return event


class _Feed:
    """The messages to one subscriber, over one connection after the other."""

    def __init__(self, session: ClientSession, progress: Progress, *, resumes: bool) -> None:
        self._session = session
        self._progress = progress
        self._resumes = resumes
        self._connection: Connection | None = None
        self._backoff = Backoff(session.commands.retry)
        self._was_refused = False
        self._is_outdated = False
        self.has_ended = False
        """Whether nothing more comes: the session is closed, or the stream was left."""

    async def open(self) -> None:
        """Subscribe for the first time. Raises the server's refusal, and `ConnectionLost`."""
        while self._connection is None:
            try:
                await self._subscribe()
            except ConnectionLost as lost:
                await self._backoff.wait_after(lost)
        self._backoff.reset()
        self._resumes = True

    async def receive(self) -> Sequence[Mapping[str, object]]:
        """The next events; none at the end. Raises the server's refusal to resubscribe, and `ConnectionLost`."""
        while not self.has_ended:
            try:
                if self._is_outdated:
                    await self.drop_connection()
                if self._connection is None:
                    await self._subscribe()
                elif events := self._events_in(await self._connection.receive()):
                    self._backoff.reset()
                    return events
            except _TRANSIENT as lost:
                await self.drop_connection()
                await self._backoff.wait_after(lost)
            except (SessionClosed, UnknownSession) as refused:
                await self._take_refusal(refused)
        await self.drop_connection()
        return ()

    async def resubscribe(self) -> None:
        """Subscribe with the current cursor, which names a turn that the server was not asked for."""
        self._is_outdated = True
        await self.drop_connection()

    async def drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.aclose()

    # -- inside

    async def _subscribe(self) -> None:
        session = self._session
        fields: dict[str, Any] = {"session_id": session.session_id}
        self._is_outdated = False
        if self._resumes:
            fields["after"] = self._progress.cursor
            fields["terminal_seen"] = sorted(self._progress.terminal_seen)
            fields["remote_models"] = session.remote_models
            if session.about:
                fields["about"] = dict(session.about)
        command = write_command("subscribe", _SUBSCRIBE, fields)
        connection = await dial(session.commands.address, session.commands.nursery, in_batches=True)
        try:
            await _send(connection, command)
            cursor = cursor_in(result_of(_reply_in(await connection.receive())))
            if session.is_closed:
                # The server has reopened the session, only to send the rest of its events.
                await _send(connection, write_command("close", _CLOSE, {"session_id": session.session_id}))
        except BaseException:
            await connection.aclose()
            raise
        self._connection = connection
        self._was_refused = False
        self._progress.begin_at(cursor)
        self._backoff.connected()
        self._backoff.answered()

    def _events_in(self, message: Message) -> Sequence[Mapping[str, object]]:
        if isinstance(message, list):
            return message
        if "event_type" in message:
            return (message,)
        if message.get("notice") == "ended":
            self.has_ended = True
        elif message.get("notice") == "detached":
            raise Detached(str(message.get("reason")))
        return ()

    async def _take_refusal(self, refused: SessionClosed | UnknownSession) -> None:
        """The server has closed the session and forgotten its events. Raises the refusal if some are missing."""
        if isinstance(refused, SessionClosed) and not self._was_refused:
            # A server that shuts down refuses every session. A second attempt finds no server, or its successor.
            self._was_refused = True
            await self._backoff.wait_after(refused)
        elif self._progress.is_settled:
            self.has_ended = True
        else:
            raise refused


def _reply_in(message: Message) -> dict[str, Any]:
    """The server replies to a subscribe before it sends any event."""
    if isinstance(message, list) or "reply" not in message or message["reply"] not in (_SUBSCRIBE, None):
        raise protocol_error()
    return message


async def _send(connection: Connection, frame: str) -> None:
    """A loss shows in what is received."""
    with suppress(ConnectionLost):
        await connection.send(Outgoing(TextMessage(data=frame)))
