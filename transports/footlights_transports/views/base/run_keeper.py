"""Run keeper: performs the runs of one view, finds them for their users, and keeps finished ones for a while.

One task fills the log of each run, however many clients read it, and a client that disconnects cancels nothing. These
tasks run in `keep`. When the server cancels that, every run ends and its readers with it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import trio

from footlights.errors import FootlightsError, SessionClosed, UnknownSession
from footlights.failures import contained
from footlights.fair_share import eviction_candidate
from footlights.params import SessionParams
from footlights.stream.follow import follow

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from footlights import InteractionSession
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
_Key: TypeAlias = "tuple[User, str]"
"""The user and the id of a run: clients may choose ids."""


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
        self._runs: dict[_Key, R] = {}
        self._finished: dict[_Key, int] = {}
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

    async def perform(
        self,
        user: User,
        session_id: str | None,
        begin: Callable[[InteractionSession], Awaitable[R]],
        *,
        is_kept: bool = True,
    ) -> R:
        """Begin a run in a session, and fill its log in a task; return it with its first events.

        The session is started if there is none. Without an id the run has a session of its own. If meanwhile there is
        a run of that id, it is returned instead. A run that is not kept can be read, and not be found. Raises what
        `begin` and starting a session raise.
        """
        session, is_new = self._session(user, session_id)
        is_begun = False
        try:
            begun = await begin(session)
            is_begun = True
        finally:
            if is_new and not is_begun and not _is_used(session):
                await self._close(user, session)
        if self._nursery is None:
            raise SessionClosed("The server is closing.")
        run = self._runs.setdefault((user, begun.run_id), begun) if is_kept else begun
        if run is begun:
            self._nursery.start_soon(partial(self._perform, run, session, is_alone=session_id is None), name="run")
        return run

    def check_agent(self, agent: str | None) -> None:
        """Raises `UnknownAgent`."""
        if agent is not None and agent not in self._access.stage.personas:
            raise UnknownAgent("There is no agent of that name.")

    def find(self, user: User, run_id: str) -> R:
        """A run of this user. Raises `UnknownRun`."""
        run = self.find_kept(user, run_id)
        if run is None:
            raise UnknownRun("There is no such run, or it was long ago.")
        return run

    def find_kept(self, user: User, run_id: str) -> R | None:
        """A run of this user, or None."""
        return self._runs.get((user, run_id))

    def kept_in(self, user: User, session_id: str) -> list[R]:
        """The runs of a session of this user, in the order in which they began."""
        name = self.name_of(user, session_id)
        return [run for (owner, _), run in self._runs.items() if owner == user and run.session_id == name]

    def name_of(self, user: User, session_id: str) -> str:
        """The full name of the session which this user names so."""
        named = self._access.policy.named_for(user, SessionParams(session_id=session_id))
        assert named.session_id is not None
        return named.session_id

    def cancel(self, user: User, run_id: str) -> bool:
        """Interrupt a run; returns whether this call did. Raises `UnknownRun`."""
        return self.cancel_run(self.find(user, run_id))

    def cancel_run(self, run: R) -> bool:
        try:
            return bool(self._access.cancel(run.user, run.session_id, run.turn_id))
        except UnknownSession:  # its session is closed, so the run has ended
            return False

    def start_soon(self, work: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """Run a task beside those of the runs, unless the server is closing."""
        if self._nursery is not None:
            self._nursery.start_soon(work, *arguments)

    # -- the task of a run

    async def _perform(self, run: R, session: InteractionSession, *, is_alone: bool) -> None:
        try:
            await self._fill(run, session)
        finally:
            if is_alone:
                await self._close(run.user, session)

    async def _close(self, user: User, session: InteractionSession) -> None:
        with suppress(UnknownSession, SessionClosed):  # the stage may have closed it, or be closing
            await self._access.close(user, session.session_id)

    def _session(self, user: User, session_id: str | None) -> tuple[InteractionSession, bool]:
        """The session of a run, and whether it was started just now."""
        if session_id is None:
            return self._access.start(user, SessionParams()), True
        name = self.name_of(user, session_id)
        try:
            return self._access.session(user, name), False
        except UnknownSession:
            return self._access.start(user, SessionParams(session_id=name)), True

    async def _fill(self, run: R, session: InteractionSession) -> None:
        """The supervision boundary of a run: a failure here ends its log and affects no other run."""

        def fail(error: BaseException) -> None:
            self._access.incidents.failed("run_stream", error)
            run.break_off()

        try:
            with contained(fail):
                async with follow(session, {run.turn_id: -1}) as stream:
                    await run.fill(stream)
        finally:
            with contained(fail):
                run.lose_sight()  # if the server closes; clients still have a moment to read it
            self._retain(run)

    def _retain(self, run: R) -> None:
        """Keep a finished run for clients that reconnect, and forget others while there is no room."""
        key = (run.user, run.run_id)
        if self._runs.get(key) is not run:
            return
        self._finished[key] = run.size
        if run.size > MAX_RUN_BYTES:
            self._forget(key)
        of_user = [each for each in self._finished if each[0] == run.user]
        for each in of_user[:-MAX_RUNS_OF_A_USER]:
            self._forget(each)
        while len(self._finished) > MAX_RUNS:
            self._forget(eviction_candidate(dict.fromkeys(self._finished, 1), _user_of))
        while sum(self._finished.values()) > MAX_BYTES:
            self._forget(eviction_candidate(self._finished, _user_of))

    def _forget(self, key: _Key) -> None:
        del self._finished[key], self._runs[key]


def _user_of(key: _Key) -> User:
    return key[0]


def _is_used(session: InteractionSession) -> bool:
    """Whether another request has begun a turn in a session that this one started."""
    now = session.statistics()
    return sum(now.turns_by_state.values()) + now.turns_retained > 0
