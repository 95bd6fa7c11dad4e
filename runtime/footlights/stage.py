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

from footlights.authority.ledger import Ledger, MemoryLedger
from footlights.authority.sqlite_ledger import SqliteLedger
from footlights.events import InterruptReason
from footlights.limits import Limits
from footlights.outbox import DetachReason
from footlights.registry import SessionRegistry
from footlights.session import InteractionSession
from footlights.supervision import Supervisor

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from footlights.cast import Cast
    from footlights.lifecycle import TurnState
    from footlights.params import SessionParams
    from footlights.turn import WallClock


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
    turns_settled: Mapping[str, int]
    """How many turns ended how: by commit outcome, or by the reason of their interruption."""


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
            InvalidCommand: a session of that name is open.
        """
        return InteractionSession(self._registry.start(None if params is None else params.session_id))

    def session(self, session_id: str) -> InteractionSession:
        """The open session with this id. Raises `UnknownSession`."""
        return InteractionSession(self._registry.find(session_id))

    @enable_ki_protection
    def resume(self, session_id: str) -> InteractionSession:
        """The session with this id; opened again if it was one of an earlier epoch, or has a name of the host's.

        Raises `UnknownSession` for a number that this epoch has not given out or whose session is closed, and what
        `start` raises.
        """
        return InteractionSession(self._registry.resume(session_id))

    @property
    def world(self) -> Any:
        """What is true: a copy of the world as it was committed last."""
        return self._supervisor.committed_world.view()

    @property
    def ledger(self) -> Ledger:
        """Where this stage's commits are kept."""
        return self._supervisor.ledger

    def statistics(self) -> StageStatistics:
        """What is open and waiting, and the limits. It walks every session."""
        supervisor, registry = self._supervisor, self._registry
        sessions = [session.statistics() for session in registry.sessions.values()]
        subscribers = [outbox for session in sessions for outbox in session.subscribers]
        by_state: Counter[TurnState] = Counter()
        for session in sessions:
            by_state.update(session.turns_by_state)
        return StageStatistics(
            sessions=len(sessions),
            max_sessions=registry.limits.max_sessions,
            open_turns=registry.open_turns,
            max_open_turns=registry.limits.max_open_turns,
            turns_by_state=MappingProxyType(dict(by_state)),
            turns_running=supervisor.running_turns,
            commits_waiting=supervisor.commits_waiting,
            max_commits_waiting=registry.limits.max_open_turns,
            tools_running=supervisor.running_tools,
            max_running_tools=registry.limits.max_running_tools,
            subscribers=len(subscribers),
            best_effort_dropped=registry.best_effort_dropped + sum(each.best_effort_dropped for each in subscribers),
            bounded_dropped=registry.bounded_dropped + sum(each.bounded_dropped for each in subscribers),
            turns_settled=MappingProxyType(dict(registry.settled)),
        )


@asynccontextmanager
async def open_stage(
    cast: Cast,
    *,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    limits: Limits | None = None,
    wall_clock: WallClock = time.time,
) -> AsyncGenerator[Stage, None]:
    """Open a stage for a cast.

    `ledger` is a file, made if it is not there, or a ledger of your own. Without one, commits are kept in memory only.
    """
    async with _opened(ledger) as its_ledger, _open(cast, its_ledger, limits or Limits(), wall_clock) as stage:
        yield stage


@asynccontextmanager
async def _opened(ledger: Ledger | str | os.PathLike[str] | None) -> AsyncGenerator[Ledger, None]:
    if ledger is None:
        yield MemoryLedger()
    elif isinstance(ledger, str | os.PathLike):
        async with SqliteLedger(ledger) as durable:
            yield durable
    else:
        yield ledger


@asynccontextmanager
async def _open(cast: Cast, ledger: Ledger, limits: Limits, wall_clock: WallClock) -> AsyncGenerator[Stage, None]:
    opening = await ledger.begin_epoch(cast.world)
    supervisor = Supervisor(cast, ledger, opening.world, limits)
    registry = SessionRegistry(supervisor, opening.epoch, wall_clock)
    host_error: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            # Not nursery.start: cancelled meanwhile, it would wait for ever for a task that is shielded.
            nursery.start_soon(supervisor.run, partial(registry.close_all, InterruptReason.SHUTDOWN), name="stage")
            try:
                await supervisor.opened.wait()
                yield Stage(supervisor, registry)
            except BaseException as error:  # noqa: BLE001 - carried around the nursery, which would wrap it
                host_error = error
            host_error = await _close(supervisor, host_error)
    except BaseExceptionGroup as crash:
        if host_error is None or isinstance(host_error, trio.Cancelled):
            raise
        raise BaseExceptionGroup("the stage failed, and so did its host", [host_error, crash]) from None
    finally:
        # What is still open now is in doubt: the committer ran out of time, or died.
        registry.close_all(InterruptReason.SHUTDOWN)
        registry.abandon_all(DetachReason.COMMIT_UNKNOWN)
    if host_error is not None:
        raise host_error


async def _close(supervisor: Supervisor, host_error: BaseException | None) -> BaseException | None:
    """Close in order, whoever is impatient. A Ctrl-C meanwhile becomes the host's error, and keeps the old one."""
    supervisor.closing.set()
    while not supervisor.closed.is_set():
        try:
            with trio.CancelScope(shield=True):
                await supervisor.closed.wait()
        except KeyboardInterrupt as interrupt:
            interrupt.__context__ = host_error
            host_error = interrupt
    return host_error
