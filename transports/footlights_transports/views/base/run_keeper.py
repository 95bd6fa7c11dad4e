"""Run keeper: performs the runs of one view, finds them for their users, and keeps finished ones for a while.

One task fills the log of each run, however many clients read it, and a client that disconnects cancels nothing. These
tasks run in `keep`. When the server cancels that, every run ends and its readers with it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import trio

from footlights.checks import listed
from footlights.errors import FootlightsError, SessionClosed, UnknownSession
from footlights.failures import contained
from footlights.fair_share import eviction_candidate
from footlights.params import SessionParams
from footlights.stream.follow import follow

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import InteractionSession
    from footlights.stream.follow import Follower
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.views.base.run_log import RunLog

MAX_RUNS = 1_000
"""Finished runs to keep. Beyond it, the oldest run of the user who has most is forgotten."""
MAX_RUNS_OF_A_USER = 100
"""Finished runs of one user to keep. Beyond it, the oldest of them is forgotten."""
MAX_BYTES = 64_000_000
"""Size of all finished runs together. Beyond it, the oldest run of the user whose runs take most is forgotten."""
MAX_RUN_BYTES = 8_000_000
"""A finished run that is larger is not kept."""

R = TypeVar("R", bound="RunLog[Any]")


class UnknownRun(FootlightsError):
    """There is no such run, or it is forgotten, or it belongs to another user."""

    code = "unknown_run"


class UnknownAgent(FootlightsError):
    """The cast has no such persona."""

    code = "unknown_agent"


class RunKeeper(Generic[R]):
    """All runs of one view of one server."""

    def __init__(self, access: SessionAccess) -> None:
        self._access = access
        self._runs: dict[str, R] = {}
        self._finished: dict[str, int] = {}
        """The size in bytes of each finished run, the oldest first."""
        self._nursery: trio.Nursery | None = None

    async def keep(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the tasks of the runs until cancelled."""
        async with trio.open_nursery() as self._nursery:
            try:
                task_status.started()
                await trio.sleep_forever()
            finally:
                self._nursery = None  # a nursery that closes would refuse new tasks with an error of its own

    async def perform(self, user: User, session_id: str | None, begin: Callable[[InteractionSession], R]) -> R:
        """Begin a run in a session, and fill its log in a task; return it with its first events.

        The session is started if there is none. Without an id the run has a session of its own. Raises what `begin`
        and starting a session raise.
        """
        if self._nursery is None:
            raise SessionClosed("The server is closing.")
        run: R = await self._nursery.start(self._perform, user, session_id, begin)
        return run

    def check_agent(self, agent: str | None) -> None:
        """Raises `UnknownAgent`."""
        if agent is not None and agent not in self._access.stage.personas:
            there_are = listed(self._access.stage.personas)
            raise UnknownAgent(f"There is no agent of that name; there are: {there_are}.")

    def find(self, user: User, run_id: str) -> R:
        """A run of this user. Raises `UnknownRun`."""
        run = self._runs.get(run_id)
        if run is None or run.user != user:
            raise UnknownRun("There is no such run, or it was long ago.")
        return run

    def cancel(self, user: User, run_id: str) -> bool:
        """Interrupt a run; returns whether this call did. Raises `UnknownRun`."""
        run = self.find(user, run_id)
        try:
            return bool(self._access.cancel(user, run.session_id, run.turn_id))
        except UnknownSession:  # its session is closed, so the run has ended
            return False

    # -- the task of a run

    async def _perform(
        self,
        user: User,
        session_id: str | None,
        begin: Callable[[InteractionSession], R],
        task_status: trio.TaskStatus[R],
    ) -> None:
        session, is_new = self._session(user, session_id)
        stays = not is_new
        try:
            async with follow(session) as stream:
                run = begin(session)
                self._runs[run.run_id] = run
                stays = session_id is not None
                task_status.started(run)
                await self._fill(run, stream)
        finally:
            if not stays:
                with suppress(UnknownSession, SessionClosed):  # the stage may have closed it, or be closing
                    await self._access.close(user, session.session_id)

    def _session(self, user: User, session_id: str | None) -> tuple[InteractionSession, bool]:
        """The session of a run, and whether it was started just now."""
        if session_id is None:
            return self._access.start(user, SessionParams()), True
        named = self._access.policy.named_for(user, SessionParams(session_id=session_id))
        assert named.session_id is not None
        try:
            return self._access.session(user, named.session_id), False
        except UnknownSession:
            return self._access.start(user, named), True

    async def _fill(self, run: R, stream: Follower) -> None:
        """The supervision boundary of a run: a failure here ends its log and affects no other run."""

        def fail(error: BaseException) -> None:
            self._access.incidents.failed("run_stream", error)
            run.break_off()

        try:
            with contained(fail):
                await run.fill(stream)
        finally:
            with contained(fail):
                run.lose_sight()  # if the server closes; clients still have a moment to read it
            self._retain(run)

    def _retain(self, run: R) -> None:
        """Keep a finished run for clients that reconnect, and forget others while there is no room."""
        self._finished[run.run_id] = run.size
        if run.size > MAX_RUN_BYTES:
            self._forget(run.run_id)
        of_user = [each for each in self._finished if self._runs[each].user == run.user]
        for run_id in of_user[:-MAX_RUNS_OF_A_USER]:
            self._forget(run_id)
        while len(self._finished) > MAX_RUNS:
            self._forget(eviction_candidate(dict.fromkeys(self._finished, 1), self._user_of))
        while sum(self._finished.values()) > MAX_BYTES:
            self._forget(eviction_candidate(self._finished, self._user_of))

    def _user_of(self, run_id: str) -> User:
        return self._runs[run_id].user

    def _forget(self, run_id: str) -> None:
        del self._finished[run_id], self._runs[run_id]
