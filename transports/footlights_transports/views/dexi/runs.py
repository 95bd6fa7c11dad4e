"""Runs: begins narrated runs, each with a decision about its mode."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from attrs.validators import optional

from footlights.modes import NO_HINTS, ExecutionPolicy, ModeHints, decide
from footlights.modes.classifier import check_classifier_id
from footlights.params import TurnParams
from footlights.redaction.redactor import Redactor
from footlights_transports.views.base.run_keeper import RunKeeper
from footlights_transports.views.dexi.pure.narration import Narrator
from footlights_transports.views.dexi.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable

    from footlights import InteractionSession
    from footlights.modes import Classifier
    from footlights_transports.access.policy import User
    from footlights_transports.access.session_access import SessionAccess


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
        self._begun = 0

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
        decision = decide(request.message, request.policy, evolve(settings.hints, tools=tools), classifier)
        params = TurnParams(persona=agent)
        turn_id = self._access.begin_turn(user, session.session_id, request.message, params, decision)
        self._begun += 1
        narrator = Narrator(
            f"r{self._access.stage.epoch}-{self._begun:06d}",
            decision,
            agent=request.agent,
            redactor=settings.redactor,
            tools=tools,
            checked=settings.checked,
        )
        return Run(user, session.session_id, turn_id, narrator, self._wall_clock())
