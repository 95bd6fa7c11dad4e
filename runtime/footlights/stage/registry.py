"""Session registry: allocates ids, enforces the stage's limits, counts outcomes and reports settled turns."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from functools import partial
from typing import TYPE_CHECKING

import trio

from footlights.checks import check_text, listed
from footlights.errors import Busy, InvalidCommand, SessionClosed, SessionInUse, UnknownSession
from footlights.failures import contained, report
from footlights.fair_share import eviction_candidate
from footlights.ids import epoch_of_session, owner_of
from footlights.params import SessionParams
from footlights.session.core import SessionCore
from footlights.session.retention import Retention
from footlights.speaker import written_about
from footlights.stream.ledger_tail import Bell
from footlights.turn.summary import outcome_of, summarize

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from footlights.events import InterruptReason, JsonValue
    from footlights.models.prompts import Persona
    from footlights.params import TurnParams
    from footlights.stage.host_commits import HostCommit
    from footlights.stage.supervisor import Supervisor
    from footlights.stream.outbox import DetachReason, Outbox
    from footlights.trace.tracer import Tracer
    from footlights.turn.summary import TurnSummary
    from footlights.turn.turn import Clock, Turn, WallClock

log = logging.getLogger("footlights")


class SessionRegistry:
    """The sessions of one stage."""

    def __init__(
        self,
        supervisor: Supervisor,
        epoch: int,
        wall_clock: WallClock,
        tracer: Tracer | None,
        observe: Callable[[TurnSummary], None] | None = None,
    ) -> None:
        self.limits = supervisor.limits
        self.clock: Clock = trio.lowlevel.current_clock().current_time
        self.retention = Retention(supervisor, self.clock)
        self.wall_clock = wall_clock
        self.epoch = epoch
        self.tracer = tracer
        self.sessions: dict[str, SessionCore] = {}
        self._closed: OrderedDict[str, SessionCore] = OrderedDict()
        self.open_turns = 0
        self.settled: Counter[str] = Counter()
        self.settled_listeners: list[Callable[[str, str], None]] = []
        self.settling = Bell()
        """Rings whenever something was committed, and when the stage has closed."""
        self.host_commits: set[HostCommit] = set()
        """Those that are not settled."""
        self.best_effort_dropped = 0
        self.bounded_dropped = 0
        self._supervisor = supervisor
        self._observe = observe
        self._sessions_started = 0
        self._highest_turn = 0

    # -- for the stage

    def start(self, params: SessionParams) -> SessionCore:
        self._check_places()
        name = params.session_id
        if name in self.sessions:
            raise SessionInUse(f"A session named {name} is open.")
        if name is None:
            self._sessions_started += 1
            name, first_number = f"s{self.epoch}-{self._sessions_started:06d}", 1
        else:  # a name may be used again in the same epoch, a turn id may not: number on from the highest
            first_number = self._highest_turn + 1
        return self._open(name, params.about, first_number, params.remote_models)

    def resume(self, session_id: str, *, remote_models: bool, about: Mapping[str, JsonValue]) -> SessionCore:
        check_text("A session id", session_id)
        if session_id in self.sessions:
            return self.sessions[session_id]
        epoch = epoch_of_session(session_id)
        if epoch is None:
            SessionParams(session_id=session_id)  # raises if it cannot be a name given by the host
        elif epoch >= self.epoch:
            raise UnknownSession(f"There is no open session {session_id}.")
        self._check_places()
        return self._open(session_id, about, self._highest_turn + 1, remote_models)

    def find(self, session_id: str) -> SessionCore:
        check_text("A session id", session_id)
        try:
            return self.sessions[session_id]
        except KeyError:
            raise UnknownSession(f"There is no open session {session_id[:128]!r}.") from None

    def find_closed(self, session_id: str) -> SessionCore:
        check_text("A session id", session_id)
        try:
            return self._closed[session_id]
        except KeyError:
            raise UnknownSession(f"No session {session_id[:128]!r} was closed lately.") from None

    def close_all(self, reason: InterruptReason) -> None:
        for session in list(self.sessions.values()):
            session.begin_close(reason)

    def abandon_all(self, reason: DetachReason) -> None:
        for session in list(self.sessions.values()):
            session.abandon(reason)
        for commit in list(self.host_commits):
            commit.lose_sight()

    # -- for sessions

    def check_turn(self, params: TurnParams) -> None:
        self._check_open()
        if self._supervisor.is_suspended:
            raise Busy("The stage does not know whether the ledger is still its own. Ask again.")
        # A turn whose actors ignore its cancel is committed and still runs: it counts until its task has ended.
        if max(self.open_turns, self._supervisor.running_turns) >= self.limits.max_open_turns:
            raise Busy(f"The stage has {self.limits.max_open_turns} turns that are not done yet (max_open_turns).")
        cast = self._supervisor.cast
        if params.workload is not None and cast.workloads.get(params.workload) is None:
            known = listed(cast.workloads.names)
            raise InvalidCommand(f"There is no workload {params.workload[:64]!r}; registered: {known}.")
        if params.persona is not None:
            self.persona(params.persona)
        if len(params.approvals) > self.limits.max_intents_per_turn:
            raise InvalidCommand("The turn answers more approvals than it may stage intents (max_intents_per_turn).")
        if params.model is not None:
            self.check_model(params.model)

    def persona(self, name: str | None) -> Persona:
        cast = self._supervisor.cast
        if name is not None and name not in cast.personas:
            raise InvalidCommand(f"There is no persona {name[:64]!r}; there are: {listed(cast.personas)}.")
        return cast.persona(name)

    def check_model(self, model_id: str) -> None:
        self._check_open()
        check_text("A model id", model_id)
        models = self._supervisor.cast.models
        if model_id not in models:
            raise InvalidCommand(f"There is no model {model_id[:64]!r}; registered: {listed(models)}.")

    def turn_begun(self, number: int) -> None:
        self.open_turns += 1
        self._highest_turn = max(self._highest_turn, number)

    def turn_settled(self, turn: Turn) -> None:
        self.open_turns -= 1
        self.settling.ring()
        self.settled[outcome_of(turn)] += 1
        self._trace(turn)
        if self.settled_listeners:
            self._call_listeners(turn)
        self._call_observer(turn)

    def turn_in_doubt(self, turn: Turn) -> None:
        self._trace(turn)

    def session_closed(self, session: SessionCore) -> None:
        del self.sessions[session.session_id]
        self._closed[session.session_id] = session
        if len(self._closed) > self.limits.replay_sessions:
            self._closed.pop(self._next_to_drop()).drop_turns()

    def _next_to_drop(self) -> str:
        if not self._supervisor.is_divided:
            return next(iter(self._closed))
        return eviction_candidate(dict.fromkeys(self._closed, 1), owner_of)

    def subscriber_gone(self, outbox: Outbox) -> None:
        gone = outbox.statistics()
        self.best_effort_dropped += gone.best_effort_dropped
        self.bounded_dropped += gone.bounded_dropped

    def _call_observer(self, turn: Turn) -> None:
        if self._observe is None:
            return
        with contained(partial(report, log, "the observer failed")):
            self._observe(summarize(turn))

    def _call_listeners(self, turn: Turn) -> None:
        for listener in self.settled_listeners:
            with contained(partial(report, log, "a listener to settled turns failed")):
                listener(turn.session_id, turn.turn_id)

    def _trace(self, turn: Turn) -> None:
        if self.tracer is not None:
            self.tracer.trace(turn.replay)

    def _open(
        self, session_id: str, about: Mapping[str, JsonValue], first_number: int, remote_models: bool | None
    ) -> SessionCore:
        agreed = self._supervisor.cast.remote_models if remote_models is None else remote_models
        session = SessionCore(self, self._supervisor, session_id, written_about(about), first_number, agreed)
        self._closed.pop(session_id, None)
        self.sessions[session_id] = session
        return session

    def _check_places(self) -> None:
        self._check_open()
        if len(self.sessions) >= self.limits.max_sessions:
            raise Busy(f"The stage has {self.limits.max_sessions} sessions already (max_sessions).")

    def _check_open(self) -> None:
        if not self._supervisor.is_open:
            raise SessionClosed("The stage is closing.")
