"""One subscriber's stream of a session that is elsewhere: it looks like one of this process, and outlives connections.

    async with session.subscribe() as stream:
        async for event in stream: ...

Each stream has a connection of its own. When that is lost the stream goes on, without a gap and without a repeat.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

import trio

from footlights import wire
from footlights.errors import InvalidCommand, InvalidEvent, SessionClosed, UnknownTurn
from footlights.laws import Violation
from footlights.stream.until_commit import UntilCommit
from footlights_transports.client.errors import LawBroken
from footlights_transports.client.feed import Feed, FeedHost
from footlights_transports.client.progress import Progress

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping
    from types import TracebackType

    from footlights.events import SeqRange, StreamEvent


class StreamHost(FeedHost, Protocol):
    """What a stream needs of its session."""

    def attach(self, stream: ClientStream) -> None: ...
    def let_go(self, stream: ClientStream) -> None: ...
    def has_begun(self, turn_id: str) -> bool: ...


class ClientStream:
    """One subscriber's stream. Made by `session.subscribe`; read by one task."""

    def __init__(
        self, session: StreamHost, after: Mapping[str, int] | None, terminal_seen: Collection[str] = ()
    ) -> None:
        self._session = session
        self._progress = Progress(after or {}, terminal_seen)
        self._feed = Feed(session, self._progress, resumes=after is not None)
        self._is_new = True
        self._waiting: deque[Mapping[str, object]] = deque()
        self._broken: LawBroken | None = None
        self._is_read = False

    async def __aenter__(self) -> ClientStream:
        """Raises what `session.subscribe` of this process raises when entered, and `ConnectionLost`."""
        await trio.lowlevel.checkpoint()
        if not self._is_new:
            raise InvalidCommand("A subscription is entered once; subscribe again.")
        if self._session.is_closed:
            raise SessionClosed(f"The session {self._session.session_id} is closed.")
        await self._feed.open()
        self._is_new = False
        self._session.attach(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._session.let_go(self)
        await self._feed.leave()
        await trio.lowlevel.cancel_shielded_checkpoint()

    def __aiter__(self) -> ClientStream:
        return self

    async def __anext__(self) -> StreamEvent:
        """The next event.

        Raises:
            StopAsyncIteration: the session is closed and nothing is left.
            LawBroken: what came is not lawful.
            ConnectionLost: the server could not be reached again.
            TooLarge: the server takes no cursor of that size, or what it sends is too large.
            FootlightsError: the server would not have us back, and this is why. `SessionClosed` and `UnknownSession`
                tell that the session was closed, and how its last turns ended cannot be known here any more.
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
        return UntilCommit(self, turn_id, done=self._progress.has_all_of(turn_id))

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
        """Whether the session is closed and everything was taken, or the stream was left."""
        return self._feed.has_ended and not self._waiting

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
        await self._feed.hang_up()

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
