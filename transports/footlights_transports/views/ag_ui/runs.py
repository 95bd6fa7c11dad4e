"""Runs of AG-UI clients: each is a turn of a session, which the client's thread names.

A client names its run, and the name is the request id of the turn: the same request again finds the turn, in memory or
in the ledger, and never begins a second one.

Clients of AG-UI stop a run by disconnecting, and can also lose a connection without wanting that. So a run that has no
reader for `disconnect_grace` seconds is canceled, unless a client comes back to it before; and at once when the same
thread begins another run. A client which says that it resumes cancels in another way, and has `resume_grace` seconds.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from math import inf
from typing import TYPE_CHECKING

import trio

from footlights.authority.pending import pending_approvals
from footlights.errors import InvalidCommand
from footlights.events import EventType
from footlights.params import TurnParams, quote_session_id
from footlights_transports.views.ag_ui.pure.position import Position
from footlights_transports.views.ag_ui.pure.projection import AgUiEvent, AgUiProjection
from footlights_transports.views.base.run_keeper import RunKeeper, UnknownRun
from footlights_transports.views.base.run_log import RunLog, RunStream

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from starlette.types import Receive, Scope, Send

    from footlights import InteractionSession, Stage, StreamEvent
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.views.ag_ui.pure.request import RunRequest

DISCONNECT_GRACE = 5.0
RESUME_GRACE = 60.0


class AgUiRun(RunLog[AgUiEvent]):
    """A run of an agent, and who reads it."""

    def __init__(
        self, user: User, session_id: str, agent: str, request: RunRequest, at: Position, stage: Stage, wall_time: float
    ) -> None:
        self._shown_by = AgUiProjection(request.thread_id, request.run_id, at)
        super().__init__(user, session_id, at.turn_id, self._shown_by, wall_time)
        self.agent = agent
        self.request = request
        self.readers = 0
        self.left_at = inf
        """When its last reader left; infinite if it is read, or never was."""
        self.is_watched = False
        self._stage = stage

    @property
    def key(self) -> str:
        return key_of(self.session_id, self.run_id)

    @property
    def is_deserted(self) -> bool:
        """Whether it goes on, and everybody who read it has left."""
        return self.left_at < inf and not self.is_over

    def place_after(self, position: Position) -> int | None:
        """The place in the log after the event with this position; None if there is no such event."""
        places = (place for place, each in enumerate(self.entries, 1) if each.event.position == position)
        return next(places, None)

    def before(self, event: StreamEvent) -> None:
        if event.event_type is EventType.COMMIT_FINAL:
            pending = pending_approvals(self._stage.world)
            self._shown_by.pending = [each for each in pending if each.session_id == self.session_id]


def key_of(session_id: str, run_id: str) -> str:
    """Clients choose the ids of runs, and they are unique in a session. Ids of sessions have no spaces."""
    return f"{session_id} {run_id}"


class AgUiRuns(RunKeeper[AgUiRun]):
    """All runs of AG-UI clients of one server."""

    def __init__(
        self,
        access: SessionAccess,
        disconnect_grace: float = DISCONNECT_GRACE,
        resume_grace: float = RESUME_GRACE,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(access)
        self._disconnect_grace = disconnect_grace
        self._resume_grace = resume_grace
        self._wall_clock = wall_clock

    async def open(
        self, user: User, agent: str, request: RunRequest, after: Position | None = None
    ) -> tuple[AgUiRun, int]:
        """The run that a client asks for, begun if it was not, and the place in its log where the client continues.

        Raises `UnknownAgent`, `InvalidCommand` if the run has this name and is another, and what starting a session,
        beginning a turn and subscribing raise.
        """
        self.check_agent(agent)
        session_id = quote_session_id(request.thread_id)
        run = self.find_kept(user, key_of(self.name_of(user, session_id), request.run_id))
        if run is not None and (run.agent, run.request) != (agent, request):
            raise InvalidCommand("runId: that id began a run of another agent, or with another message.")
        if after is None:
            if run is None:
                run = await self.perform(user, session_id, partial(self._begin, user, agent, request))
                self._cancel_deserted(run.session_id)
            return run, 0
        place = None if run is None else run.place_after(after)
        if run is not None and place is not None:
            return run, place
        # Another process began it, or the log is forgotten. What the client has is the beginning of its own log.
        resume = partial(self._resume, user, agent, request, after)
        return await self.perform(user, session_id, resume, is_kept=False), 0

    def cancel_by_id(self, user: User, agent: str, run_id: str) -> bool:
        """Interrupt the runs of this agent that a user has named so; returns whether this call did.

        Raises `UnknownRun`.
        """
        found = [each for each in self.kept_of(user) if (each.agent, each.run_id) == (agent, run_id)]
        if not found:
            raise UnknownRun("There is no such run, or it was long ago.")
        return sum(map(self.cancel_run, found)) > 0

    @contextmanager
    def read_by_client(self, run: AgUiRun) -> Generator[None]:
        """A client reads the run. When the last one leaves before the end, the run is canceled after a while.

        A log that only one client needs, because it resumed from before a restart, does not decide that.
        """
        run.readers += 1
        run.left_at = inf
        try:
            yield
        finally:
            run.readers -= 1
            if run.readers == 0 and not run.is_over and self.find_kept(run.user, run.key) is run:
                run.left_at = trio.current_time()
                self._cancel_deserted(run.session_id)
                if not run.is_watched:
                    run.is_watched = True
                    self.start_soon(self._watch_deserted, run)

    async def _watch_deserted(self, run: AgUiRun) -> None:
        grace = self._resume_grace if run.request.resumes else self._disconnect_grace
        while run.is_deserted:
            with trio.move_on_at(run.left_at + grace):
                await run.wait_over()
            if trio.current_time() >= run.left_at + grace:
                self.cancel_run(run)
                break
        run.is_watched = False

    def _cancel_deserted(self, session_id: str) -> None:
        """Cancel what a client has left, if a later run of the thread waits for it: nobody will come back for it."""
        unfinished = [each for each in self.kept_in(session_id) if not each.is_over]
        for run in unfinished[:-1]:
            if run.is_deserted:
                self.cancel_run(run)

    async def _begin(self, user: User, agent: str, request: RunRequest, session: InteractionSession) -> AgUiRun:
        params = TurnParams(persona=agent, approvals=request.approvals)
        turn_id = await self._access.begin_turn_once(user, session.session_id, request.said, params, request.run_id)
        return self._run(user, agent, request, session, Position(turn_id))

    async def _resume(
        self, user: User, agent: str, request: RunRequest, after: Position, session: InteractionSession
    ) -> AgUiRun:
        await trio.lowlevel.checkpoint()
        return self._run(user, agent, request, session, after)

    def _run(self, user: User, agent: str, request: RunRequest, session: InteractionSession, at: Position) -> AgUiRun:
        return AgUiRun(user, session.session_id, agent, request, at, self._access.stage, self._wall_clock())


class AgUiStream(RunStream[AgUiEvent]):
    """A run for one client, which counts as a reader until it leaves."""

    def __init__(self, runs: AgUiRuns, run: AgUiRun, place: int, keep_alive: float) -> None:
        super().__init__(run, place, keep_alive)
        self._runs = runs
        self._read = run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._runs.read_by_client(self._read):
            await super().__call__(scope, receive, send)
