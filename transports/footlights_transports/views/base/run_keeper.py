"""Run keeper: performs the runs of one view, finds them for their users, and keeps finished ones for a while.

One task fills the log of each run, however many clients read it, and a client that disconnects cancels nothing. These
tasks run in `keep`. When the server cancels that, every run ends and its readers with it.
"""

from __future__ import annotations

from collections import Counter
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import trio

from footlights.checks import listed
from footlights.errors import FootlightsError, SessionClosed, UnknownSession
from footlights.failures import contained
from footlights.fair_share import eviction_candidate
from footlights.ids import in_order
from footlights.params import SessionParams
from footlights.stream.follow import follow

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

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
        self._in_session: dict[str, dict[_Key, R]] = {}
        """The same runs, by their sessions."""
        self._beginning: Counter[str] = Counter()
        """How many requests are beginning a run in each session."""
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
        self._check_open()
        session, is_new = self._session(user, session_id)
        name = session.session_id
        self._beginning[name] += 1
        is_begun = False
        try:
            async with AsyncExitStack() as leaving:
                # Before the turn begins: a session without a place for another subscriber refuses the run.
                stream = await leaving.enter_async_context(follow(session))
                begun = await begin(session)
                is_begun = True
                await stream.include(begun.turn_id)
                self._check_open()
                run = self._keep(begun) if is_kept else begun
                if run is begun:
                    self._start(run, session, stream, leaving.pop_all(), is_alone=session_id is None)
                return run
        finally:
            self._beginning -= Counter([name])  # which also forgets names that have none left
            if is_new and not is_begun and not self._is_used(session):
                await self._close(user, session)

    def _check_open(self) -> None:
        if self._nursery is None:
            raise SessionClosed("The server is closing.")

    def _start(
        self, run: R, session: InteractionSession, stream: Follower, leaving: AsyncExitStack, *, is_alone: bool
    ) -> None:
        assert self._nursery is not None
        self._nursery.start_soon(partial(self._perform, run, session, stream, leaving, is_alone=is_alone), name="run")

    def _keep(self, begun: R) -> R:
        """The run as it can be found: this one, or the one that another request has begun meanwhile."""
        key = (begun.user, begun.key)
        if key not in self._runs:
            self._runs[key] = begun
            self._in_session.setdefault(begun.session_id, {})[key] = begun
        return self._runs[key]

    def _is_used(self, session: InteractionSession) -> bool:
        """Whether another request uses a session that this one has started."""
        now = session.statistics()
        is_busy = bool(sum(now.turns_by_state.values()) or now.turns_retained or now.subscribers or now.observers)
        return is_busy or self._beginning[session.session_id] > 0

    def check_agent(self, agent: str | None) -> None:
        """Raises `UnknownAgent`."""
        if agent is not None and agent not in self._access.stage.personas:
            there_are = listed(self._access.stage.personas)
            raise UnknownAgent(f"There is no agent of that name; there are: {there_are}.")

    def find_kept(self, user: User, key: str) -> R | None:
        """A run of this user, or None."""
        return self._runs.get((user, key))

    def kept_in(self, session_id: str) -> list[R]:
        """The runs of the session with this full name, in the order of their turns."""
        return sorted(self._in_session.get(session_id, {}).values(), key=lambda run: in_order(run.turn_id))

    def kept_of(self, user: User) -> list[R]:
        return [run for (owner, _), run in self._runs.items() if owner == user]

    def name_of(self, user: User, session_id: str) -> str:
        """The full name of the session which this user names so."""
        named = self._access.policy.named_for(user, SessionParams(session_id=session_id))
        assert named.session_id is not None
        return named.session_id

    def cancel_run(self, run: R) -> bool:
        """Interrupt a run; returns whether this call did."""
        try:
            return bool(self._access.cancel(run.user, run.session_id, run.turn_id))
        except UnknownSession:  # its session is closed, so the run has ended
            return False

    def start_soon(self, work: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """Run a task beside those of the runs, unless the server is closing."""
        if self._nursery is not None:
            self._nursery.start_soon(work, *arguments)

    # -- the task of a run

    async def _perform(
        self, run: R, session: InteractionSession, stream: Follower, leaving: AsyncExitStack, *, is_alone: bool
    ) -> None:
        try:
            async with leaving:
                await self._fill(run, stream)
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
        key = (run.user, run.key)
        if self._runs.get(key) is not run:
            return
        self._finished[key] = run.size
        if run.size > MAX_RUN_BYTES or run.is_broken:
            self._forget(key)
        of_user = [each for each in self._finished if each[0] == run.user]
        for each in of_user[:-MAX_RUNS_OF_A_USER]:
            self._forget(each)
        while len(self._finished) > MAX_RUNS:
            self._forget(eviction_candidate(dict.fromkeys(self._finished, 1), _user_of))
        while sum(self._finished.values()) > MAX_BYTES:
            self._forget(eviction_candidate(self._finished, _user_of))

    def _forget(self, key: _Key) -> None:
        del self._finished[key]
        name = self._runs.pop(key).session_id
        del self._in_session[name][key]
        if not self._in_session[name]:
            del self._in_session[name]


def _user_of(key: _Key) -> User:
    return key[0]
