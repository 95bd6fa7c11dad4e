"""ThreadSession: a session of a `StageThread`, used from other threads."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from footlights.errors import SessionClosed
from footlights_transports.embed.polled_feed import PolledFeed
from footlights_transports.embed.polled_stream import PolledStream

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    import trio

    from footlights.events import CommitFinal, StreamEvent
    from footlights.params import TurnParams
    from footlights.session.session import InteractionSession
    from footlights.stage.stage import Stage
    from footlights_transports.embed.ticket import Ticket
    from footlights_transports.embed.trio_thread import Inside, TrioThread


class ThreadSession:
    """One player's conversation. Made by `StageThread.start`, and subscribed from the beginning.

    Keep it: a session whose handles were all dropped is closed after the stage's `session_idle_seconds`.
    """

    def __init__(self, readers: Readers, session: InteractionSession, stream: PolledStream) -> None:
        self._readers = readers
        self._thread = readers.thread
        self._session = session
        self._stream = stream
        self._on_ready: Callable[[], object] | None = None

    @property
    def session_id(self) -> str:
        """The id that the host chose, or the one that the stage assigned."""
        return self._session.session_id

    # -- turns

    def begin_turn(self, said: str, params: TurnParams | None = None, *, request_id: str | None = None) -> str:
        """Accept what the player said and return the turn's id.

        With a `request_id` of the host's own, a repeated call returns the turn that the first one began. Raises what
        `InteractionSession.begin_turn` raises, or with a `request_id` what `begin_turn_once` raises.
        """
        return self.begin_turn_soon(said, params, request_id=request_id).result()

    def begin_turn_soon(
        self, said: str, params: TurnParams | None = None, *, request_id: str | None = None
    ) -> Ticket[str]:
        """The same, without waiting for the result.

        With a `request_id` the ledger may be read, and a later call may overtake this one.
        """
        session = self._session
        if request_id is None:
            return self._thread.ask(lambda _: session.begin_turn(said, params))
        return self._thread.ask(lambda _: session.begin_turn_once(said, params, request_id=request_id))

    def cancel(self, turn_id: str | None = None) -> tuple[str, ...]:
        """Interrupt one turn, or every open one; return the ids of those that this call interrupted.

        When it returns, `turn_interrupted` can be polled, unless a tool of the turn has to end first.
        """
        return self.cancel_soon(turn_id).result()

    def cancel_soon(self, turn_id: str | None = None) -> Ticket[tuple[str, ...]]:
        """The same, without waiting for the result."""

        def cancel(_: object) -> tuple[str, ...]:
            canceled = self._session.cancel(turn_id)
            self._readers.take_in(self.session_id)
            return canceled

        return self._thread.ask(cancel)

    def heard(self, turn_id: str, seq: int) -> None:
        """Report that the player has heard the turn up to this event."""
        self.heard_soon(turn_id, seq).result()

    def heard_soon(self, turn_id: str, seq: int) -> Ticket[None]:
        """The same, without waiting for the result."""
        return self._thread.ask(lambda _: self._session.heard(turn_id, seq))

    def commit(self, turn_id: str) -> CommitFinal | None:
        """The commit of the turn if it is known now, without reading the ledger. Raises `UnknownTurn`."""
        return self._thread.ask(lambda _: self._session.finalize(turn_id).commit).result()

    def finalize(self, turn_id: str) -> Ticket[CommitFinal]:
        """A ticket for the commit of the turn; its `result` waits without limit.

        Raises what `CommitHandle.wait` raises.
        """
        return self._thread.ask(lambda _: self._session.finalize(turn_id).wait(), patient=True)

    # -- events

    def poll(self, max_events: int = 64, timeout: float | None = 0.0) -> list[StreamEvent]:
        """The events that have come, up to `max_events`. It blocks only if there are none, for up to `timeout` seconds.
        With None it waits for as long as there may be some.

        Raises:
            Detached: the host did not poll for too long; `resume` continues from there.
            StageThreadDied: the stage failed, and everything before that was polled.
        """
        return self._stream.poll(max_events, timeout)

    def on_ready(self, call: Callable[[], object] | None) -> None:
        """Have this called when events can be polled, or the stream has ended; None removes it.

        It is called once after each poll that left nothing, as soon as something comes, and at once if something is
        there. So poll until an empty list comes back. It is called on the thread of the stage, or on this one if the
        stage has closed: it must be short, and must not call the stage. `loop.call_soon_threadsafe(...)` of asyncio is
        made for it. If it does not return soon, that is logged with its name. If it raises, that is logged, and it is
        not called again. There is one at a time: a second is refused with `InvalidCommand` until the first is removed,
        and so is what cannot be called.
        """
        self._stream.on_ready(call)
        self._on_ready = call

    @property
    def is_awaited(self) -> bool:
        """Whether `on_ready` has something to call."""
        return self._stream.is_awaited

    @property
    def is_open(self) -> bool:
        """Whether there is, or may be, more to poll, including an error that `poll` has yet to raise."""
        return self._stream.is_open

    @property
    def cursor(self) -> Mapping[str, int]:
        """What was polled so far, for `subscribe(after=...)`."""
        return self._stream.cursor

    @property
    def terminal_seen(self) -> frozenset[str]:
        """The turns whose end was polled but not their commit, for `subscribe(terminal_seen=...)`."""
        return self._stream.terminal_seen

    def resume(self) -> None:
        """Subscribe again after `Detached`, without a gap and without a repeat."""
        cursor, ended = self._stream.cursor, self._stream.terminal_seen
        self._stream.close()
        self._stream = self.subscribe(cursor, ended)
        self._stream.on_ready(self._on_ready)

    def subscribe(self, after: Mapping[str, int] | None = None, terminal_seen: Collection[str] = ()) -> PolledStream:
        """Another stream of this session, which does not keep it open.

        Raises what `InteractionSession.subscribe` raises when it is entered.
        """
        return self._thread.ask(partial(self._readers.attach, self._session, after, terminal_seen)).result()

    # -- the end

    def close(self) -> None:
        """Interrupt open turns, wait until every turn is settled. Events can still be polled. Idempotent.

        It does nothing if the stage is closed.
        """
        if not self._thread.has_ended:
            with suppress(SessionClosed):  # the stage is closing
                self.close_soon().result()

    def close_soon(self) -> Ticket[None]:
        """The same, without waiting for the end."""
        return self._thread.ask(self._close, patient=True)

    async def _close(self, _inside: Inside[Stage]) -> None:
        self._readers.lift(self.session_id)
        await self._session.close()


class Readers:
    """The tasks that read the streams of other threads."""

    def __init__(self, thread: TrioThread[Stage]) -> None:
        self.thread = thread
        self._streams: dict[PolledStream, str] = {}
        self._feeds: set[PolledFeed] = set()
        self._lifted = False

    async def attach(
        self,
        session: InteractionSession,
        after: Mapping[str, int] | None,
        terminal_seen: Collection[str],
        inside: Inside[Stage],
    ) -> PolledStream:
        stream = PolledStream(self.thread, session.subscribe(after, terminal_seen))
        if self._lifted:
            stream.lift()
        name = f"reader of {session.session_id}"
        await inside.tasks.start(self._read, session.session_id, stream, inside.resource, name=name)
        return stream

    async def follow(self, after: str | None, under: str, inside: Inside[Stage]) -> PolledFeed:
        feed = PolledFeed(self.thread, inside.resource.commits(after=after, under=under))
        if self._lifted:
            feed.lift()
        await inside.tasks.start(self._read_feed, feed, inside.resource, name="reader of commits")
        return feed

    def count(self, session_id: str) -> int:
        """How many streams of this session are read."""
        return sum(its_session == session_id for its_session in self._streams.values())

    def take_in(self, session_id: str) -> None:
        """Let the hosts of this session poll what their outboxes have now."""
        for stream, its_session in self._streams.items():
            if its_session == session_id:
                stream.take_in()

    def lift(self, session_id: str) -> None:
        """Let the readers of this session finish, because it is about to close."""
        for stream, its_session in self._streams.items():
            if its_session == session_id:
                stream.lift()

    def lift_all(self) -> None:
        """Let all readers finish, and later ones too, because the stage is about to close."""
        self._lifted = True
        for stream in self._streams:
            stream.lift()
        for feed in self._feeds:
            feed.lift()

    async def _read(
        self, session_id: str, stream: PolledStream, stage: Stage, *, task_status: trio.TaskStatus[None]
    ) -> None:
        self._streams[stream] = session_id
        try:
            await stream.run(stage, task_status=task_status)
        finally:
            del self._streams[stream]

    async def _read_feed(self, feed: PolledFeed, stage: Stage, *, task_status: trio.TaskStatus[None]) -> None:
        self._feeds.add(feed)
        try:
            await feed.run(stage, task_status=task_status)
        finally:
            self._feeds.remove(feed)
