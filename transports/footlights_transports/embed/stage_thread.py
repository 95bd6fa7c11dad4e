"""StageThread: a stage for a host that is no trio program, such as a game loop, another server or a script.

    with StageThread(cast) as stage:
        session = stage.start()
        turn_id = session.begin_turn("A room?")
        while running:
            for event in session.poll(): ...   # once a frame; it never blocks

The stage runs on a thread of its own. Calls may come from any thread, and each waits for its result; its `_soon`
variant returns a ticket instead. A stream is polled by one thread. Leaving the block shuts the stage down in order, and
events from before can still be polled.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from footlights.bad_return import check_kind
from footlights.errors import RegistrationError
from footlights.limits import Limits
from footlights.stage.stage import open_stage
from footlights_transports.embed.dropped_sessions import DroppedSessions
from footlights_transports.embed.thread_session import Readers, ThreadSession
from footlights_transports.embed.trio_thread import StageThreadDied, TrioThread

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from types import TracebackType

    from footlights.authority.intents import Intent
    from footlights.authority.ledger.protocol import Ledger
    from footlights.authority.rules import Rule
    from footlights.cast import Cast
    from footlights.events import CommitFinal, JsonValue
    from footlights.models.prompts import Persona
    from footlights.params import SessionParams
    from footlights.session.session import InteractionSession
    from footlights.stage.stage import Stage
    from footlights.tools.tool import Tool
    from footlights.trace.files import TraceFiles
    from footlights_transports.embed.polled_feed import PolledFeed
    from footlights_transports.embed.ticket import Ticket
    from footlights_transports.embed.trio_thread import Inside

T = TypeVar("T")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class StageThread:
    """A stage on a thread of its own. Enter it with `with`; the arguments are those of `open_stage`.

    A call that is not answered within `answer_timeout` seconds raises `StageThreadStuck`. A session whose handles were
    all dropped is closed after `session_idle_seconds`, or with 0 not at all.
    """

    def __init__(
        self,
        cast: Cast,
        *,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        limits: Limits | None = None,
        trace: str | os.PathLike[str] | TraceFiles | None = None,
        answer_timeout: float = 5.0,
        session_idle_seconds: float = 3_600.0,
    ) -> None:
        if not session_idle_seconds >= 0:
            raise RegistrationError(f"session_idle_seconds is {session_idle_seconds}; it must be at least 0.")
        limits = Limits() if limits is None else limits
        check_kind("The limits of a stage", limits, Limits)
        stage = open_stage(cast, ledger=ledger, limits=limits, trace=trace)
        # A stage has this long for its last commits, and again for its traces.
        exit_timeout = 2 * limits.shutdown_deadline + answer_timeout
        self._thread = TrioThread(self._until_left(stage), timeout=answer_timeout, exit_timeout=exit_timeout)
        self._readers = Readers(self._thread)
        self._dropped = DroppedSessions(self._readers, session_idle_seconds)

    def __enter__(self) -> StageThread:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._thread.is_forked:  # a child that leaves the block leaves the stage of its parent alone
            return
        try:
            self.close()
        except StageThreadDied:
            if error is None:
                raise

    def open(self) -> StageThread:
        """Open the stage, for a server whose life is no `with` block; `close` ends it.

        Raises what `open_stage` raises.
        """
        self._thread.open()
        return self

    def close(self, timeout: float | None = None) -> None:
        """Interrupt open turns, wait for the last commits, end the thread. Idempotent.

        Raises `StageThreadDied` if the stage failed, and `StageThreadStuck` if it has not ended after `timeout`
        seconds, because a tool resists: it goes on closing, and `close` may be called again.
        """
        self._thread.leave()
        self._thread.join(timeout)

    def start(self, params: SessionParams | None = None) -> ThreadSession:
        """Start a session. Raises what `Stage.start` raises."""
        return self.start_soon(params).result()

    def start_soon(self, params: SessionParams | None = None) -> Ticket[ThreadSession]:
        """The same, without waiting for the result."""
        return self._listen(lambda stage: stage.start(params), None, ())

    def resume(
        self,
        session_id: str,
        after: Mapping[str, int] | None = None,
        terminal_seen: Collection[str] = (),
        *,
        about: Mapping[str, JsonValue] = _NOTHING,
    ) -> ThreadSession:
        """The session with this id, subscribed from there on. Raises what `Stage.resume` and `subscribe` raise."""
        return self.resume_soon(session_id, after, terminal_seen, about=about).result()

    def resume_soon(
        self,
        session_id: str,
        after: Mapping[str, int] | None = None,
        terminal_seen: Collection[str] = (),
        *,
        about: Mapping[str, JsonValue] = _NOTHING,
    ) -> Ticket[ThreadSession]:
        """The same, without waiting for the result."""
        return self._listen(lambda stage: stage.resume(session_id, about=about), after, terminal_seen)

    def add(
        self,
        *,
        personas: Mapping[str, Persona] = _NOTHING,
        tools: Iterable[Tool] = (),
        rules: Mapping[str, Rule] = _NOTHING,
    ) -> None:
        """Add personas, tools and rules for the turns that begin from now on. See `Stage.add`."""
        self.call(lambda stage: stage.add(personas=personas, tools=tools, rules=rules))

    def remove(
        self, *, personas: Collection[str] = (), tools: Collection[str] = (), rules: Collection[str] = ()
    ) -> None:
        """Take personas, tools and rules away, by their names. See `Stage.remove`."""
        self.call(lambda stage: stage.remove(personas=personas, tools=tools, rules=rules))

    @property
    def world(self) -> Any:
        """The world after the last commit, read-only. Any thread may read it without waiting, also after `close`."""
        return self._thread.resource.world

    @overload
    def call(self, work: Callable[[Stage], Awaitable[T]]) -> T: ...
    @overload
    def call(self, work: Callable[[Stage], T]) -> T: ...
    def call(self, work: Callable[[Stage], Any]) -> Any:
        """Make any call on the stage, as in `call(Stage.statistics)`. A plain call must not take long.

        What an async function returns is awaited: `call(lambda stage: stage.session("bob").close())`.
        """
        return self.call_soon(work).result()

    @overload
    def call_soon(self, work: Callable[[Stage], Awaitable[T]]) -> Ticket[T]: ...
    @overload
    def call_soon(self, work: Callable[[Stage], T]) -> Ticket[T]: ...
    def call_soon(self, work: Callable[[Stage], Any]) -> Ticket[Any]:
        """The same, without waiting for the result."""
        return self._thread.ask(lambda inside: self._thread.call_host(work, inside.resource))

    def commit(self, intents: Sequence[Intent], why: str) -> CommitFinal:
        """Have the rules judge intents of the host itself, and wait until that is durable. See `Stage.commit`."""
        return self.commit_soon(intents, why).result()

    def commit_soon(self, intents: Sequence[Intent], why: str) -> Ticket[CommitFinal]:
        """The same, without waiting for the result. Several that wait may be decided in any order."""
        return self._thread.ask(lambda inside: inside.resource.commit(intents, why), patient=True)

    def commits(self, *, after: str | None = None, under: str = "") -> PolledFeed:
        """Follow the commits that change the world, to be polled like the events of a session. See `Stage.commits`."""
        return self.commits_soon(after=after, under=under).result()

    def commits_soon(self, *, after: str | None = None, under: str = "") -> Ticket[PolledFeed]:
        """The same, without waiting for the result."""
        return self._thread.ask(partial(self._readers.follow, after, under))

    def together(self) -> AbstractContextManager[None]:
        """Commands that this thread gives inside the block reach the stage together, when the block is left.

        Await nothing inside: until then no command of this thread goes out, whichever coroutine gives it.

            with stage.together():
                tickets = [npc.begin_turn_soon("Move.") for npc in npcs]

        Each crossing of threads may wait for Python's lock, so one is cheaper than many. Inside the block, use the
        variants that end in `_soon`: a call that waits for its result is sent at once, with those before it.
        """
        return self._thread.together()

    def _listen(
        self,
        find: Callable[[Stage], InteractionSession],
        after: Mapping[str, int] | None,
        terminal_seen: Collection[str],
    ) -> Ticket[ThreadSession]:
        async def listen(inside: Inside[Stage]) -> ThreadSession:
            session = find(inside.resource)
            stream = await self._readers.attach(session, after, terminal_seen, inside)
            handle = ThreadSession(self._readers, session, stream)
            self._dropped.watch(handle, session, inside)
            return handle

        return self._thread.ask(listen)

    @asynccontextmanager
    async def _until_left(self, stage: AbstractAsyncContextManager[Stage]) -> AsyncGenerator[Stage, None]:
        async with stage as opened:
            yield opened
            self._readers.lift_all()
