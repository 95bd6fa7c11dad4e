"""The stage: where sessions live, turns run, and nothing outlives the block.

Three nurseries, inside out: turns, tools, the committer. Leaving the block interrupts every turn (`shutdown`),
lets running tools go, and waits until the last commit is durable, or until `shutdown_deadline`: a commit that
is in doubt then is not announced, and its subscribers are detached with `commit_unknown`.

A turn that fails takes nothing else with it. The host's own exception leaves the block as it is.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import trio
from attrs import frozen
from trio.lowlevel import enable_ki_protection

from footlights.authority.ledger.protocol import Ledger, MemoryLedger
from footlights.errors import InvalidCommand, LedgerInUse
from footlights.events import InterruptReason
from footlights.limits import Limits
from footlights.params import SessionParams
from footlights.session.session import InteractionSession
from footlights.stage.registry import SessionRegistry
from footlights.stage.supervisor import Supervisor
from footlights.stream.outbox import DetachReason
from footlights.trace.files import TraceFiles
from footlights.trace.tracer import Tracer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from footlights.authority.visibility import User
    from footlights.cast import Cast
    from footlights.models.pool import ModelStatus
    from footlights.turn.lifecycle import TurnState
    from footlights.turn.summary import TurnSummary
    from footlights.turn.turn import WallClock


@frozen
class StageStatistics:
    """What a stage has open, running and waiting, beside the limits."""

    sessions: int
    max_sessions: int
    open_turns: int
    max_open_turns: int
    turns_by_state: Mapping[TurnState, int]
    turns_running: int
    commits_waiting: int
    max_commits_waiting: int
    tools_running: int
    max_running_tools: int
    subscribers: int
    best_effort_dropped: int
    bounded_dropped: int
    events_waiting: int
    """Events that subscribers have not taken yet, as they count against their limits."""
    bytes_waiting: int
    """What those take."""
    turns_settled: Mapping[str, int]
    """How many turns ended how: by commit outcome, or by the reason of their interruption."""
    turns_untraced: int
    """How many turns had to be left out of the trace; 0 if there is none."""


class Stage:
    """Where sessions live and turns run. Made by `open_stage`."""

    def __init__(self, supervisor: Supervisor, registry: SessionRegistry) -> None:
        self._supervisor = supervisor
        self._registry = registry

    @enable_ki_protection
    def start(self, params: SessionParams | None = None) -> InteractionSession:
        """Start a session.

        Raises:
            SessionClosed: the stage is closing.
            Busy: the stage has `max_sessions` sessions.
            InvalidCommand: a session of that name is open, or these are no `SessionParams`.
        """
        params = SessionParams() if params is None else params
        if not isinstance(params, SessionParams):  # pyright: ignore[reportUnnecessaryIsInstance] - a host need not be typed
            raise InvalidCommand(f"params must be SessionParams, and not {type(params).__name__}.")
        return InteractionSession(self._registry.start(params))

    def session(self, session_id: str) -> InteractionSession:
        """The open session with this id. Raises `UnknownSession`."""
        return InteractionSession(self._registry.find(session_id))

    def closed_session(self, session_id: str) -> InteractionSession:
        """A session that was closed not long ago, for one who comes back with a cursor and has not seen its end.

        The last `replay_sessions` are kept. Raises `UnknownSession`.
        """
        return InteractionSession(self._registry.find_closed(session_id))

    @enable_ki_protection
    def resume(self, session_id: str, *, remote_models: bool = False) -> InteractionSession:
        """The session with this id; opened again if it was one of an earlier epoch, or has a name of the host's.

        What it had agreed to is not kept: one that is opened again speaks to no model elsewhere unless `remote_models`
        says so, whatever the default of the cast is.

        Raises `UnknownSession` for a number that this epoch has not given out or whose session is closed, and what
        `start` raises.
        """
        return InteractionSession(self._registry.resume(session_id, remote_models=remote_models))

    @property
    def epoch(self) -> int:
        """Which opening of its ledger this is. The ids that it gives out carry it."""
        return self._registry.epoch

    @property
    def world(self) -> Any:
        """What is true: a copy of the world as it was committed last."""
        return self._supervisor.committed_world.view()

    def world_for(self, user: User) -> Any:
        """What this user may see of the world, as the cast's `visibility` decides."""
        return self._supervisor.cast.visibility(self.world, user)

    @property
    def models(self) -> tuple[ModelStatus, ...]:
        """How the models are doing, in the order of the cast."""
        return self._supervisor.pool.statistics()

    @property
    def personas(self) -> tuple[str, ...]:
        """Who may speak, in the order of the cast."""
        return tuple(self._supervisor.cast.personas)

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of what turns may call, in the order of the cast."""
        return tuple(self._supervisor.cast.tools)

    def prewarm(self, model_id: str) -> None:
        """Begin to load a model, so that the first who wants it need not wait. Raises `InvalidCommand`."""
        self._registry.check_model(model_id)
        self._supervisor.pool.prewarm(model_id)

    @property
    def ledger(self) -> Ledger:
        """Where this stage's commits are kept."""
        return self._supervisor.ledger

    @property
    def limits(self) -> Limits:
        """What it bears."""
        return self._registry.limits

    @property
    def open_sessions(self) -> int:
        """How many sessions are open."""
        return len(self._registry.sessions)

    @property
    def open_turns(self) -> int:
        """How many turns are not settled."""
        return self._registry.open_turns

    def divide(self, *, is_divided: bool) -> None:
        """Say whether several owners share the stage: then none of them gets all tools, or all that is remembered.

        Sessions whose ids begin with the same `name:` are one owner's, as in approvals.
        """
        self._supervisor.divide(is_divided=is_divided)

    def call_when_settled(self, callback: Callable[[str, str], None]) -> None:
        """From now on call this with the session and the id of each turn that is settled. It must be short."""
        self._registry.settled_listeners.append(callback)

    def statistics(self) -> StageStatistics:
        """What is open and waiting, and the limits. It walks every session."""
        supervisor, registry = self._supervisor, self._registry
        by_state: Counter[TurnState] = Counter()
        subscribers = events_waiting = bytes_waiting = 0
        best_effort_dropped, bounded_dropped = registry.best_effort_dropped, registry.bounded_dropped
        # Ten thousand sessions are walked while nobody else can run: nothing is made for each.
        for session in registry.sessions.values():
            for turn in session.open_turns:
                by_state[turn.state] += 1
            for subscription in session.subscriptions:
                subscribers += not subscription.observer
                events, size = subscription.outbox.waiting
                best_effort, bounded = subscription.outbox.dropped
                events_waiting += events
                bytes_waiting += size
                best_effort_dropped += best_effort
                bounded_dropped += bounded
        return StageStatistics(
            sessions=len(registry.sessions),
            max_sessions=registry.limits.max_sessions,
            open_turns=registry.open_turns,
            max_open_turns=registry.limits.max_open_turns,
            turns_by_state=MappingProxyType(dict(by_state)),
            turns_running=supervisor.running_turns,
            commits_waiting=supervisor.commits_waiting,
            max_commits_waiting=registry.limits.max_open_turns,
            tools_running=supervisor.running_tools,
            max_running_tools=registry.limits.max_running_tools,
            subscribers=subscribers,
            best_effort_dropped=best_effort_dropped,
            bounded_dropped=bounded_dropped,
            events_waiting=events_waiting,
            bytes_waiting=bytes_waiting,
            turns_settled=MappingProxyType(dict(registry.settled)),
            turns_untraced=0 if registry.tracer is None else registry.tracer.dropped,
        )


@asynccontextmanager
async def open_stage(
    cast: Cast,
    *,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    limits: Limits | None = None,
    trace: str | os.PathLike[str] | TraceFiles | None = None,
    wall_clock: WallClock = time.time,
    observe: Callable[[TurnSummary], None] | None = None,
) -> AsyncGenerator[Stage, None]:
    """Open a stage for a cast.

    `ledger` is a file, made if it is not there, or a ledger of your own. Without one, commits are kept in memory only.
    Raises `LedgerInUse` for one that another stage has open.
    `trace` is a directory in which to write `interaction_trace.jsonl`, or `TraceFiles`. Without it, nothing is traced.
    `observe` is told of every turn that is settled, at once, by a plain call that should be short.
    """
    files = trace if trace is None or isinstance(trace, TraceFiles) else TraceFiles(trace)
    async with (
        _opened(ledger) as its_ledger,
        _open(cast, its_ledger, limits or Limits(), files, wall_clock, observe) as stage,
    ):
        yield stage


@asynccontextmanager
async def _opened(ledger: Ledger | str | os.PathLike[str] | None) -> AsyncGenerator[Ledger, None]:
    if ledger is None:
        yield MemoryLedger()
    elif isinstance(ledger, str | os.PathLike):
        from footlights.authority.ledger.sqlite.ledger import SqliteLedger  # only who keeps a file needs SQLite

        async with SqliteLedger(ledger) as durable:
            yield durable
    elif id(ledger) in _in_use:
        raise LedgerInUse("Another stage uses this ledger object. One stage at a time may open it.")
    else:
        _in_use.add(id(ledger))
        try:
            yield ledger
        finally:
            _in_use.remove(id(ledger))


_in_use: set[int] = set()
"""The ids of the ledger objects that open stages of this process hold, of whatever kind they are."""


@asynccontextmanager
async def _open(
    cast: Cast,
    ledger: Ledger,
    limits: Limits,
    files: TraceFiles | None,
    wall_clock: WallClock,
    observe: Callable[[TurnSummary], None] | None,
) -> AsyncGenerator[Stage, None]:
    opening = await ledger.begin_epoch(cast.world)
    supervisor = Supervisor(cast, ledger, opening.world, limits)
    tracer = None if files is None else _tracer(files, opening.epoch, limits)
    registry = SessionRegistry(supervisor, opening.epoch, wall_clock, tracer, observe)
    host_error: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            # Not nursery.start: cancelled meanwhile, it would wait for ever for a task that is shielded.
            nursery.start_soon(_run, supervisor, registry, name="stage")
            if tracer is not None:
                nursery.start_soon(tracer.run, name="tracer")
            try:
                await supervisor.opened.wait()
                yield Stage(supervisor, registry)
            except BaseException as error:  # noqa: BLE001 - carried around the nursery, which would wrap it
                host_error = error
            supervisor.closing.set()
            host_error = await _wait_out(supervisor.closed, host_error)
            if tracer is not None:
                host_error = await _wait_out(tracer.closed, host_error)
    except BaseExceptionGroup as crash:
        if host_error is None or isinstance(host_error, trio.Cancelled):
            raise
        raise BaseExceptionGroup("the stage failed, and so did its host", [host_error, crash]) from None
    if host_error is not None:
        raise host_error


def _tracer(files: TraceFiles, epoch: int, limits: Limits) -> Tracer:
    # The ids of a first epoch may be in the files already: a ledger in memory begins with it every time.
    return Tracer(files, fresh=epoch == 1, shutdown_deadline=limits.shutdown_deadline)


@enable_ki_protection
async def _run(supervisor: Supervisor, registry: SessionRegistry) -> None:
    try:
        await supervisor.run(partial(registry.close_all, InterruptReason.SHUTDOWN))
    finally:
        # What is still open now is in doubt: the committer ran out of time, or died.
        registry.close_all(InterruptReason.SHUTDOWN)
        registry.abandon_all(DetachReason.COMMIT_UNKNOWN)
        if registry.tracer is not None:
            registry.tracer.close()


async def _wait_out(closed: trio.Event, host_error: BaseException | None) -> BaseException | None:
    """Close in order, whoever is impatient. A Ctrl-C meanwhile becomes the host's error, and keeps the old one."""
    while not closed.is_set():
        try:
            with trio.CancelScope(shield=True):
                await closed.wait()
        except KeyboardInterrupt as interrupt:
            interrupt.__context__ = host_error
            host_error = interrupt
    return host_error
