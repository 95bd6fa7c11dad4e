"""One subscriber's stream of a session that is elsewhere: it looks like one of this process, and outlives connections.

    async with session.subscribe() as stream:
        async for event in stream: ...

Each stream has a connection of its own. While nobody reads the stream, nobody reads its connection: the server sees a
slow subscriber, and treats it as one. When the connection is lost, or the server lets the subscriber go, the next read
comes back with the cursor, and goes on without a gap and without a repeat.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Protocol

import trio

from footlights import wire
from footlights.errors import (
    Detached,
    InvalidCommand,
    InvalidEvent,
    SessionClosed,
    UnknownSession,
    UnknownTurn,
)
from footlights.events import EventType
from footlights.laws import Violation
from footlights_transports.client_calls import result_of, write_command
from footlights_transports.client_connection import dial
from footlights_transports.client_errors import ConnectionLost, LawBroken
from footlights_transports.client_line import Line
from footlights_transports.client_progress import Progress
from footlights_transports.client_retry import PASSING, Losses

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping
    from types import TracebackType

    from footlights.events import SeqRange, StreamEvent
    from footlights_transports.client_connection import Address
    from footlights_transports.client_retry import Retry

_SUBSCRIBED = 1
_CLOSED = 2
_PASSING_FOR_THE_RETURNING = (*PASSING, SessionClosed)
"""A server that is going down says so of every session; its successor will not."""


class StreamHost(Protocol):
    """What a stream needs of its session."""

    session_id: str
    address: Address
    retry: Retry
    nursery: trio.Nursery
    is_closed: bool
    remote_models: bool

    def attach(self, stream: ClientStream) -> None: ...
    def let_go(self, stream: ClientStream) -> None: ...
    def has_begun(self, turn_id: str) -> bool: ...


class _Phase(Enum):
    NEW = auto()
    ATTACHED = auto()
    ENDED = auto()


class ClientStream:
    """One subscriber's stream. Made by `session.subscribe`; read by one task."""

    def __init__(
        self, session: StreamHost, after: Mapping[str, int] | None, terminal_seen: Collection[str] = ()
    ) -> None:
        self._session = session
        self._first_after = after
        self._progress = Progress(after or {}, terminal_seen)
        self._phase = _Phase.NEW
        self._line: Line | None = None
        self._waiting: deque[Mapping[str, object]] = deque()
        self._losses = Losses(session.retry)
        self._broken: LawBroken | None = None
        self._is_read = False

    async def __aenter__(self) -> ClientStream:
        """Raises what `session.subscribe` of this process raises when entered, and `ConnectionLost`."""
        await trio.lowlevel.checkpoint()
        if self._phase is not _Phase.NEW:
            raise InvalidCommand("A subscription is entered once; subscribe again.")
        if self._session.is_closed:
            raise SessionClosed(f"The session {self._session.session_id} is closed.")
        await self._session.retry.until_done(self._subscribe, (ConnectionLost,))
        self._phase = _Phase.ATTACHED
        self._session.attach(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._phase = _Phase.ENDED
        self._session.let_go(self)
        await self.hang_up()
        await trio.lowlevel.cancel_shielded_checkpoint()

    def __aiter__(self) -> ClientStream:
        return self

    async def __anext__(self) -> StreamEvent:
        """The next event.

        Raises:
            StopAsyncIteration: the session is closed and nothing is left.
            LawBroken: what came is not lawful.
            ConnectionLost: the server could not be reached again.
            FootlightsError: the server would not have us back, and this is why.
        """
        if not self._waiting and not await self._more():
            raise StopAsyncIteration
        return self._take()

    async def receive_batch(self, limit: int = 256) -> list[StreamEvent]:
        """At least one event and whatever else is here, up to `limit`; an empty list at the end of the stream."""
        if limit < 1:
            raise InvalidCommand("A batch needs a limit of at least 1.")
        await trio.lowlevel.checkpoint()
        if not self._waiting and not await self._more():
            return []
        return [self._take() for _ in range(min(limit, len(self._waiting)))]

    def until_commit(self, turn_id: str) -> AsyncIterator[StreamEvent]:
        """Every event of the session up to the commit_final of this turn, other turns' events included.

        Ends at once if that was taken. Raises `UnknownTurn` for a turn that was not begun here and of which nothing
        was taken yet.
        """
        if not (self._progress.knows(turn_id) or self._session.has_begun(turn_id)):
            raise UnknownTurn("That turn was not begun here, and nothing of it has come yet.")
        return _UntilCommit(self, turn_id, done=self._progress.has_all_of(turn_id))

    @property
    def cursor(self) -> Mapping[str, int]:
        """What was taken so far, for `subscribe(after=...)`; a turn that was begun and has not come yet is at -1."""
        return self._progress.cursor

    @property
    def terminal_seen(self) -> frozenset[str]:
        """The turns whose end was taken and whose commit was not, for `subscribe(terminal_seen=...)`."""
        return self._progress.terminal_seen

    @property
    def is_exhausted(self) -> bool:
        """Whether the session is closed and everything was taken."""
        return self._phase is _Phase.ENDED and not self._waiting

    def missed(self, turn_id: str) -> tuple[SeqRange, ...]:
        """What this subscriber will not get of an open turn, or of one of the last finished ones.

        Deltas that came joined to a later one are among it, although nothing of their text is missing.
        """
        return self._progress.missed(turn_id)

    # -- for the session

    def expect(self, turn_id: str) -> None:
        """This turn was begun: its end is to be asked for, even if its beginning never comes."""
        self._progress.expect(turn_id)

    async def hang_up(self) -> None:
        """Drop the connection. If the stream is read on, it comes back."""
        line, self._line = self._line, None
        if line is not None:
            await line.aclose()

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
        """Wait until there is something to take; False at the end of the stream."""
        if self._phase is _Phase.NEW:
            raise InvalidCommand("Enter the subscription first: async with session.subscribe() as stream.")
        if self._broken is not None:
            await trio.lowlevel.checkpoint()
            raise self._broken
        if self._is_read:
            raise trio.BusyResourceError("Another task is reading this subscription.")
        self._is_read = True
        try:
            while not self._waiting:
                if self._phase is _Phase.ENDED:
                    await trio.lowlevel.checkpoint()
                    return False
                line = await self._attached()
                if line is None:
                    continue
                try:
                    self._read(await line.receive())
                except (ConnectionLost, Detached) as lost:
                    await self.hang_up()
                    await self._losses.wait_after(lost)
        finally:
            self._is_read = False
        return True

    async def _attached(self) -> Line | None:
        """None if there is nothing more to come back to."""
        if self._line is None:
            try:
                await self._session.retry.until_done(self._subscribe, _PASSING_FOR_THE_RETURNING)
            except UnknownSession:
                if not self._session.is_closed:
                    raise
                self._phase = _Phase.ENDED
        return self._line

    async def _subscribe(self) -> None:
        connection = await dial(self._session.address, in_batches=True)
        line = Line(connection, self._session.nursery)
        try:
            await connection.send(write_command("subscribe", _SUBSCRIBED, self._wish()))
            result = result_of(await line.reply_to(_SUBSCRIBED))
            if self._session.is_closed:
                # It was opened again only for us to be told the rest.
                await connection.send(write_command("close", _CLOSED, {"session_id": self._session.session_id}))
        except BaseException:
            await line.aclose()
            raise
        self._progress.begin_at(result.get("cursor") or {})
        self._line = line

    def _wish(self) -> dict[str, Any]:
        wish: dict[str, Any] = {"session_id": self._session.session_id}
        if self._phase is _Phase.ATTACHED or self._first_after is not None:
            wish["after"] = self._progress.cursor
            wish["terminal_seen"] = sorted(self._progress.terminal_seen)
            wish["remote_models"] = self._session.remote_models
        return wish

    def _read(self, message: dict[str, Any] | list[dict[str, Any]]) -> None:
        if isinstance(message, list):
            self._losses.forget()
            self._waiting.extend(message)
        elif "event_type" in message:
            self._losses.forget()
            self._waiting.append(message)
        elif message.get("notice") == "ended":
            self._phase = _Phase.ENDED
        elif message.get("notice") == "detached":
            raise Detached(str(message.get("reason")))


class _UntilCommit:
    """A class and not an async generator: leaving the loop early leaves nothing behind to be closed."""

    __slots__ = ("_done", "_stream", "_turn_id")

    def __init__(self, stream: ClientStream, turn_id: str, *, done: bool) -> None:
        self._stream = stream
        self._turn_id = turn_id
        self._done = done

    def __aiter__(self) -> _UntilCommit:
        return self

    async def __anext__(self) -> StreamEvent:
        if self._done:
            raise StopAsyncIteration
        event = await anext(self._stream)
        self._done = event.event_type is EventType.COMMIT_FINAL and event.turn_id == self._turn_id
        return event


def _event(sent: Mapping[str, object], session_id: str) -> StreamEvent:
    """Raises `LawBroken`."""
    try:
        event = wire.from_wire(sent)
    except InvalidEvent as error:
        raise LawBroken(Violation("envelope", session_id, None, None, str(error))) from None
    if event.session_id != session_id:
        raise LawBroken(Violation("envelope", session_id, event.turn_id, event.seq, "belongs to another session"))
    return event
