"""Runs: turns that are told as Dexi streams, and kept for a while, so that clients can read them and come back.

A run is made once, by a task of its own, and everybody who reads it reads the same events. Who stops reading cancels
nothing. `keep` is that task's home: it ends when the server does, and then every reader is let go.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING

import trio
from attrs import field, frozen
from attrs.validators import optional

from footlights.errors import Detached, FootlightsError, SessionClosed, UnknownSession
from footlights.fair_share import first_of_the_heaviest
from footlights.modes import STANDARD_RULES, ExecutionPolicy, decide, tool_hint
from footlights.modes.classifier import check_classifier_id
from footlights.params import SessionParams, TurnParams
from footlights.redaction.redactor import Redactor
from footlights.stream.outbox import DetachReason
from footlights_transports.views.dexi.pure.narration import DexiRun
from footlights_transports.views.dexi.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import InteractionSession, StreamEvent, Subscription
    from footlights.modes import Classifier, IntentRules
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess
    from footlights_transports.server.incidents import Incidents

MAX_RUNS = 1_000
"""Finished runs that are kept; of the user who has most, the oldest is forgotten first."""
MAX_RUNS_OF_A_USER = 100
"""Finished runs of one user that are kept, so that nobody drives out those of others."""
MAX_BYTES = 64_000_000
"""What all finished runs together may take; of the user whose runs take most, the oldest is forgotten first."""
MAX_RUN_BYTES = 8_000_000
"""A finished run that takes more is not kept."""


class DexiError(FootlightsError):
    """What is asked for is not there, in the words of the Dexi routes."""


class UnknownRun(DexiError):
    """There is no such run, or it is forgotten, or it is somebody else's."""

    code = "unknown_run"


class UnknownAgent(DexiError):
    """The cast has no such persona."""

    code = "unknown_agent"


def _check_id(_: object, __: object, classifier: Classifier) -> None:
    check_classifier_id(classifier)


@frozen(kw_only=True)
class DexiSettings:
    """What a host may choose."""

    rules: IntentRules | None = None
    """What asks for execution; without any, the standard rules and the names of the cast's tools."""
    classifier: Classifier | None = field(default=None, validator=optional(_check_id))
    """A second opinion about that. Raises `RegistrationError` for one whose id cannot be kept."""
    redactor: Redactor = field(factory=Redactor)
    """What is blotted out."""
    checked: bool = True
    """Whether each event is held to its schema before it is sent."""
    chat_agent: str | None = None
    """Who answers when no agent is named; without one the first persona of the cast."""


@frozen(kw_only=True)
class Request:
    """What somebody wants to be run."""

    message: str
    policy: ExecutionPolicy
    agent: str | None = None
    session_id: str | None = None
    """A session to go on with, or to begin under this name. Without it the run has one of its own."""


class DexiRuns:
    """Every run of one access."""

    def __init__(
        self, access: SessionAccess, settings: DexiSettings | None = None, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self._access = access
        self._settings = settings or DexiSettings()
        self._rules = self._settings.rules or STANDARD_RULES.adding(*map(tool_hint, access.stage.tools))
        self._wall_clock = wall_clock
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._finished: OrderedDict[str, int] = OrderedDict()
        """How many bytes each finished run takes, the oldest first."""
        self._begun = 0
        self._nursery: trio.Nursery | None = None

    async def keep(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run what is begun, until cancelled."""
        try:
            async with trio.open_nursery() as self._nursery:
                try:
                    task_status.started()
                    await trio.sleep_forever()
                finally:
                    self._nursery = None  # before it closes: it would refuse newcomers with an error of its own
        finally:
            for run in self._runs.values():
                run.end()

    async def begin(self, user: User, request: Request) -> Run:
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
        """A run of this user's. Raises `UnknownRun`."""
        run = self._runs.get(run_id)
        if run is None or run.user != user:
            raise UnknownRun("There is no such run, or it was long ago.")
        return run

    def cancel(self, user: User, run_id: str) -> bool:
        """Interrupt a run; whether this call did. Raises `UnknownRun`."""
        run = self.find(user, run_id)
        try:
            return bool(self._access.cancel(user, run.session_id, run.turn_id))
        except UnknownSession:  # its session is closed, so it has ended
            return False

    # -- a run as a task

    async def _perform(self, user: User, request: Request, task_status: trio.TaskStatus[Run]) -> None:
        session, is_new = self._session(user, request.session_id)
        stays = not is_new
        try:
            async with session.subscribe() as stream:
                run = self._begin(user, request, session)
                stays = request.session_id is not None
                task_status.started(run)
                await self._supervise(run, session, stream)
        finally:
            if not stays:
                with suppress(UnknownSession, SessionClosed):  # the stage may have closed it, or be closing
                    await self._access.close(user, session.session_id)

    def _session(self, user: User, session_id: str | None) -> tuple[InteractionSession, bool]:
        """A session to run in, and whether it was begun just now."""
        if session_id is None:
            return self._access.start(user, SessionParams()), True
        named = self._access.policy.named_for(user, SessionParams(session_id=session_id))
        assert named.session_id is not None
        try:
            return self._access.session(user, named.session_id), False
        except UnknownSession:
            return self._access.start(user, named), True

    def _begin(self, user: User, request: Request, session: InteractionSession) -> Run:
        settings = self._settings
        decision = decide(request.message, request.policy, self._rules, settings.classifier)
        params = TurnParams(persona=request.agent or settings.chat_agent)
        turn_id = self._access.begin_turn(user, session.session_id, request.message, params, decision)
        self._begun += 1
        run_id = f"r{self._access.stage.epoch}-{self._begun:06d}"
        dexi = DexiRun(
            run_id,
            decision,
            agent=request.agent,
            redactor=settings.redactor,
            tools=self._access.stage.tools,
            checked=settings.checked,
        )
        run = Run(user, session.session_id, turn_id, dexi, self._wall_clock())
        self._runs[run_id] = run
        run.begin()
        return run

    async def _supervise(self, run: Run, session: InteractionSession, stream: Subscription) -> None:
        """The supervision boundary of a run: what fails here ends its stream, and hurts no other."""
        try:
            left = await _tell(run, stream)
            while left is not None:
                async with session.subscribe(left.cursor, left.terminal_seen) as again:
                    left = await _tell(run, again)
        except Exception as error:  # noqa: BLE001 - see above
            self._access.incidents.failed("run_stream", error)
            run.break_off()
        except trio.Cancelled:  # the server goes, and clients have a moment left to hear of it
            _let_go(run, self._access.incidents)
            raise
        finally:
            run.end()
            self._keep(run)

    def _keep(self, run: Run) -> None:
        """Keep a finished run for those who come back, as long as there is room."""
        self._finished[run.run_id] = run.size
        if run.size > MAX_RUN_BYTES:
            self._forget(run.run_id)
        of_user = [each for each in self._finished if self._runs[each].user == run.user]
        for run_id in of_user[:-MAX_RUNS_OF_A_USER]:
            self._forget(run_id)
        while len(self._finished) > MAX_RUNS:
            self._forget(first_of_the_heaviest(dict.fromkeys(self._finished, 1), self._user_of))
        while sum(self._finished.values()) > MAX_BYTES:
            self._forget(first_of_the_heaviest(self._finished, self._user_of))

    def _user_of(self, run_id: str) -> User:
        return self._runs[run_id].user

    def _forget(self, run_id: str) -> None:
        del self._finished[run_id], self._runs[run_id]


def _let_go(run: Run, incidents: Incidents) -> None:
    try:
        run.lose_sight()
    except Exception as error:  # noqa: BLE001 - the same boundary
        incidents.failed("run_stream", error)
        run.break_off()


async def _tell(run: Run, stream: Subscription) -> Subscription | None:
    """Tell the turn to its end; or, if this stream is detached before that, return it, to go on from there."""
    try:
        while not run.is_over:
            batch = await _next_batch(run, stream)
            run.take(event for event in batch if event.turn_id == run.turn_id)
            if stream.is_exhausted:
                run.lose_sight()
    except Detached as error:
        if error.reason != DetachReason.COMMIT_UNKNOWN:
            return stream
        run.lose_sight()
    return None


async def _next_batch(run: Run, stream: Subscription) -> list[StreamEvent]:
    """What comes next. If a heartbeat is due before that, nothing; then the heartbeat is sent."""
    with trio.move_on_after(run.patience):
        return await stream.receive_batch()
    run.fill_silence()
    return []
