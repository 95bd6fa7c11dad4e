"""Runs of AG-UI clients: each is a turn of a session, which the client's thread names.

A client names its run, and the name is the request id of the turn: the same request again finds the turn, in memory or
in the ledger, and never begins a second one.

Clients of AG-UI stop a run by disconnecting, and can also lose a connection without wanting that. So a run that has no
reader for `disconnect_grace` seconds is canceled, unless a client comes back to it before; and at once when the same
thread begins another run.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from footlights.errors import InvalidCommand
from footlights.params import TurnParams, quote_session_id
from footlights_transports.commit_artifacts import commit_artifacts
from footlights_transports.views.ag_ui.pure.position import Position
from footlights_transports.views.ag_ui.pure.projection import AgUiEvent, AgUiProjection
from footlights_transports.views.base.run_keeper import RunKeeper
from footlights_transports.views.base.run_log import RunLog, RunStream

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from starlette.types import Receive, Scope, Send

    from footlights import InteractionSession, Ledger, StreamEvent
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.views.ag_ui.pure.request import RunRequest

DISCONNECT_GRACE = 5.0
_LEDGER_PATIENCE = 5.0
"""Seconds to wait for the artifacts of a commit."""


class AgUiRun(RunLog[AgUiEvent]):
    """A run of an agent, and who reads it."""

    def __init__(
        self, user: User, session_id: str, agent: str, projection: AgUiProjection, ledger: Ledger, wall_time: float
    ) -> None:
        super().__init__(user, session_id, projection.turn_id, projection, wall_time)
        self.agent = agent
        self.readers = 0
        self.times_deserted = 0
        self._shown_by = projection
        self._ledger = ledger

    @property
    def is_deserted(self) -> bool:
        """Whether it goes on, and everybody who read it has left."""
        return self.times_deserted > 0 and self.readers == 0 and not self.is_over

    def place_after(self, position: Position) -> int | None:
        """The place in the log after the event with this position; None if there is no such event."""
        places = (place for place, each in enumerate(self.entries, 1) if each.event.position == position)
        return next(places, None)

    async def before(self, event: StreamEvent) -> None:
        self._shown_by.artifacts = await commit_artifacts(event, self._ledger, _LEDGER_PATIENCE)


class AgUiRuns(RunKeeper[AgUiRun]):
    """All runs of AG-UI clients of one server."""

    def __init__(
        self,
        access: SessionAccess,
        disconnect_grace: float = DISCONNECT_GRACE,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(access)
        self._grace = disconnect_grace
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
        run = self.find_kept(user, request.run_id)
        if after is not None:
            place = None if run is None else run.place_after(after)
            if run is not None and place is not None:
                return run, place
            # Another process began it, or the log is forgotten. What the client has is the beginning of its own log.
            resume = partial(self._resume, user, agent, request, after)
            return await self.perform(user, session_id, resume, is_kept=False), 0
        if run is None:
            run = await self.perform(user, session_id, partial(self._begin, user, agent, request))
            self._cancel_deserted(user, session_id)
        elif run.agent != agent or run.session_id != self.name_of(user, session_id):
            raise InvalidCommand("runId: there is a run of that id in another thread, or of another agent.")
        return run, 0

    @contextmanager
    def read_by_client(self, run: AgUiRun) -> Generator[None]:
        """A client reads the run. When the last one leaves before the end, the run is canceled after a while."""
        run.readers += 1
        try:
            yield
        finally:
            run.readers -= 1
            if run.readers == 0 and not run.is_over:
                run.times_deserted += 1
                self.start_soon(self._cancel_unless_read, run, run.times_deserted)
                self._cancel_deserted(run.user, run.session_id)

    async def _cancel_unless_read(self, run: AgUiRun, times_deserted: int) -> None:
        with trio.move_on_after(self._grace):
            await run.wait_over()
        if run.is_deserted and run.times_deserted == times_deserted:
            self.cancel_run(run)

    def _cancel_deserted(self, user: User, session_id: str) -> None:
        """Cancel what a client has left, if a later run of the thread waits for it: nobody will come back for it."""
        unfinished = [each for each in self.kept_in(user, session_id) if not each.is_over]
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
        async with session.subscribe({after.turn_id: -1}):
            pass  # Raises `UnknownTurn` while the request can still be refused.
        return self._run(user, agent, request, session, after)

    def _run(self, user: User, agent: str, request: RunRequest, session: InteractionSession, at: Position) -> AgUiRun:
        projection = AgUiProjection(request.thread_id, request.run_id, at)
        return AgUiRun(user, session.session_id, agent, projection, self._access.stage.ledger, self._wall_clock())


class AgUiStream(RunStream[AgUiEvent]):
    """A run for one client, which counts as a reader until it leaves."""

    def __init__(self, runs: AgUiRuns, run: AgUiRun, place: int, keep_alive: float) -> None:
        super().__init__(run, place, keep_alive)
        self._runs = runs
        self._read = run

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._runs.read_by_client(self._read):
            await super().__call__(scope, receive, send)
