"""Runs: begins narrated runs, finds them for their users, and keeps finished ones for a while.

One task narrates each run, however many clients read it, and a client that disconnects cancels nothing. These tasks run
in `Runs.keep`. When the server cancels that, every run ends and its readers with it.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import trio
from attrs import field, frozen
from attrs.validators import optional

from footlights.errors import FootlightsError, SessionClosed, UnknownSession
from footlights.failures import contained
from footlights.fair_share import eviction_candidate
from footlights.modes import STANDARD_RULES, ExecutionPolicy, decide, tool_hint
from footlights.modes.classifier import check_classifier_id
from footlights.params import SessionParams, TurnParams
from footlights.redaction.redactor import Redactor
from footlights.stream.follow import follow
from footlights_transports.views.dexi.pure.narration import Narrator
from footlights_transports.views.dexi.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import InteractionSession
    from footlights.modes import Classifier, IntentRules
    from footlights.stream.follow import Follower
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess

MAX_RUNS = 1_000
"""Finished runs to keep. Beyond it, the oldest run of the user who has most is forgotten."""
MAX_RUNS_OF_A_USER = 100
"""Finished runs of one user to keep. Beyond it, the oldest of them is forgotten."""
MAX_BYTES = 64_000_000
"""Size of all finished runs together. Beyond it, the oldest run of the user whose runs take most is forgotten."""
MAX_RUN_BYTES = 8_000_000
"""A finished run that is larger is not kept."""


class DexiError(FootlightsError):
    """The run or agent of a request does not exist."""


class UnknownRun(DexiError):
    """There is no such run, or it is forgotten, or it belongs to another user."""

    code = "unknown_run"


class UnknownAgent(DexiError):
    """The cast has no such persona."""

    code = "unknown_agent"


def _check_id(_: object, __: object, classifier: Classifier) -> None:
    check_classifier_id(classifier)


@frozen(kw_only=True)
class RunSettings:
    """Settings of a host for its narrated runs."""

    rules: IntentRules | None = None
    """Rules for what asks for execution; by default the standard rules and the names of the cast's tools."""
    classifier: Classifier | None = field(default=None, validator=optional(_check_id))
    """A second opinion about that. Raises `RegistrationError` for an id that cannot be recorded."""
    redactor: Redactor = field(factory=Redactor)
    """Hides secrets in everything but the answer."""
    checked: bool = True
    """Whether each event is checked against its schema before it is sent."""
    chat_agent: str | None = None
    """The agent that answers if a request names none; by default the first persona of the cast."""


@frozen(kw_only=True)
class RunRequest:
    """A request for one run."""

    message: str
    policy: ExecutionPolicy
    agent: str | None = None
    session_id: str | None = None
    """The session to use, which is started if there is none. Without it the run has a session of its own."""


class Runs:
    """All runs of one server."""

    def __init__(
        self, access: SessionAccess, settings: RunSettings | None = None, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self._access = access
        self._settings = settings or RunSettings()
        self._rules = self._settings.rules or STANDARD_RULES.adding(*map(tool_hint, access.stage.tools))
        self._wall_clock = wall_clock
        self._runs: dict[str, Run] = {}
        self._finished: dict[str, int] = {}
        """The size in bytes of each finished run, the oldest first."""
        self._begun = 0
        self._nursery: trio.Nursery | None = None

    async def keep(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the tasks of the runs until cancelled."""
        async with trio.open_nursery() as self._nursery:
            try:
                task_status.started()
                await trio.sleep_forever()
            finally:
                self._nursery = None  # a nursery that closes would refuse new tasks with an error of its own

    async def begin(self, user: User, request: RunRequest) -> Run:
        """Decide on the mode, begin the turn, and return the run with its first events.

        Raises `UnknownAgent`, and what starting a session and beginning a turn raise.
        """
        if request.agent is not None and request.agent not in self._access.stage.personas:
            raise UnknownAgent("There is no agent of that name.")
        if self._nursery is None:
            raise SessionClosed("The server is closing.")
        run: Run = await self._nursery.start(self._perform, user, request)
        return run

    def find(self, user: User, run_id: str) -> Run:
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

    async def _perform(self, user: User, request: RunRequest, task_status: trio.TaskStatus[Run]) -> None:
        session, is_new = self._session(user, request.session_id)
        stays = not is_new
        try:
            async with follow(session) as stream:
                run = self._begin(user, request, session)
                stays = request.session_id is not None
                task_status.started(run)
                await self._narrate(run, stream)
        finally:
            if not stays:
                with suppress(UnknownSession, SessionClosed):  # the stage may have closed it, or be closing
                    await self._access.close(user, session.session_id)

    def _session(self, user: User, session_id: str | None) -> tuple[InteractionSession, bool]:
        """The session of a request, and whether it was started just now."""
        if session_id is None:
            return self._access.start(user, SessionParams()), True
        named = self._access.policy.named_for(user, SessionParams(session_id=session_id))
        assert named.session_id is not None
        try:
            return self._access.session(user, named.session_id), False
        except UnknownSession:
            return self._access.start(user, named), True

    def _begin(self, user: User, request: RunRequest, session: InteractionSession) -> Run:
        settings = self._settings
        decision = decide(request.message, request.policy, self._rules, settings.classifier)
        params = TurnParams(persona=request.agent or settings.chat_agent)
        turn_id = self._access.begin_turn(user, session.session_id, request.message, params, decision)
        self._begun += 1
        narrator = Narrator(
            f"r{self._access.stage.epoch}-{self._begun:06d}",
            decision,
            agent=request.agent,
            redactor=settings.redactor,
            tools=self._access.stage.tools,
            checked=settings.checked,
        )
        run = Run(user, session.session_id, turn_id, narrator, self._wall_clock())
        self._runs[run.run_id] = run
        return run

    async def _narrate(self, run: Run, stream: Follower) -> None:
        """The supervision boundary of a run: a failure here ends its stream and affects no other run."""

        def fail(error: BaseException) -> None:
            self._access.incidents.failed("run_stream", error)
            run.break_off()

        try:
            with contained(fail):
                await run.narrate(stream)
        finally:
            with contained(fail):
                run.lose_sight()  # if the server closes; clients still have a moment to read it
            self._retain(run)

    def _retain(self, run: Run) -> None:
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
