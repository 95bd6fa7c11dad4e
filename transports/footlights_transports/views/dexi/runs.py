"""Runs: begins narrated runs, each with a decision about its mode."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import trio
from attrs import evolve, field, frozen
from attrs.validators import optional

from footlights.errors import UnknownSession
from footlights.modes import (
    NO_HINTS,
    Activity,
    Condition,
    ExecutionPolicy,
    Intent,
    IntentKind,
    ModeHints,
    conclude,
    decide,
)
from footlights.modes.classifier import check_classifier_id
from footlights.params import TurnParams
from footlights.redaction.redactor import Redactor
from footlights_transports.views.base.run_keeper import RunKeeper, UnknownRun
from footlights_transports.views.dexi.pure.narration import Narrator
from footlights_transports.views.dexi.pure.recollection import Recollection, parts_of, run_id_of
from footlights_transports.views.dexi.pure.templates import APPROVAL
from footlights_transports.views.dexi.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from footlights import InteractionSession
    from footlights.modes import Classifier
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess


APPROVED = Intent(
    kind=IntentKind.EXECUTION,
    activities=(Activity.CHANGE,),
    rule_ids=(APPROVAL,),
    conditions=(Condition.ARTIFACTS,),
)
"""The intent of a request that approves something: to do what waits."""


def _check_id(_: object, __: object, classifier: Classifier) -> None:
    check_classifier_id(classifier)


@frozen(kw_only=True)
class RunSettings:
    """Settings of a host for its narrated runs."""

    hints: ModeHints = NO_HINTS
    """What helps to tell work from chat. The tools of the agent are added."""
    classifier: Classifier | None = field(default=None, validator=optional(_check_id))
    """A second opinion about that; by default that of the agent's persona. Raises `RegistrationError` for an id that
    cannot be recorded."""
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
    approvals: Mapping[str, bool] = field(factory=dict[str, bool])
    """Answers to what waits for an approval, by its id. A yes is work, whatever the message says."""
    session_id: str | None = None
    """The session to use, which is started if there is none. Without it the run has a session of its own."""


class Runs(RunKeeper[Run]):
    """All narrated runs of one server."""

    def __init__(
        self, access: SessionAccess, settings: RunSettings | None = None, wall_clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(access)
        self._settings = settings or RunSettings()
        self._wall_clock = wall_clock

    async def begin(self, user: User, request: RunRequest) -> Run:
        """Decide on the mode, begin the turn, and return the run with its first events.

        Raises `UnknownAgent`, and what starting a session and beginning a turn raise.
        """
        self.check_agent(request.agent)
        return await self.perform(user, request.session_id, partial(self._begin, user, request))

    async def _begin(self, user: User, request: RunRequest, session: InteractionSession) -> Run:
        settings = self._settings
        agent = request.agent or settings.chat_agent
        tools = self._access.stage.tools_of(agent)
        classifier = settings.classifier or self._access.stage.persona(agent).classifier
        if any(request.approvals.values()):
            decision = conclude(APPROVED, request.policy)
        else:
            decision = decide(request.message, request.policy, evolve(settings.hints, tools=tools), classifier)
        params = TurnParams(persona=agent, approvals=request.approvals)
        turn_id = self._access.begin_turn(user, session.session_id, request.message, params, decision)
        narrator = Narrator(
            run_id_of(session.session_id, turn_id),
            decision,
            agent=request.agent,
            redactor=settings.redactor,
            tools=tools,
            checked=settings.checked,
        )
        return Run(user, session.session_id, turn_id, narrator, self._wall_clock(), decision.document)

    async def recall(self, user: User, run_id: str) -> Run:
        """A run of this user, from the ledger if it is forgotten. Raises `UnknownRun` and `LedgerUnavailable`."""
        run, (session_id, turn_id) = self.find_kept(user, run_id), parts_of(run_id)
        if run is not None:
            await trio.lowlevel.checkpoint()
            return run
        with suppress(UnknownSession):
            self._access.policy.check_owner(user, session_id)
            record = await self._access.stage.ledger.find(session_id, turn_id)
            if record is not None and record.mode_decision is not None:
                narrator = Recollection(run_id, record, self._settings.redactor)
                return Run(user, session_id, turn_id, narrator, self._wall_clock(), record.mode_decision)
        raise UnknownRun("There is no such run, or nothing of it was committed.")
