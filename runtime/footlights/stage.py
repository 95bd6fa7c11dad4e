"""The stage: where sessions live, turns run, and nothing outlives the block.

Three nurseries, inside out: turns, tools, the committer. Leaving the block interrupts every turn (`shutdown`),
lets running tools go, and waits until the last commit is durable, or until `shutdown_deadline`: a commit that
is in doubt then is not announced, and its subscribers are detached with `commit_unknown`.

A turn that fails takes nothing else with it. The host's own exception leaves the block as it is.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio
from attrs import frozen
from trio.lowlevel import enable_ki_protection

from footlights.authority.ledger import Ledger, MemoryLedger
from footlights.authority.record import commit_final
from footlights.errors import Busy, IllegalTransition, InvalidCommand, SessionClosed, UnknownSession
from footlights.events import InterruptReason
from footlights.failures import describe, explain
from footlights.limits import Limits
from footlights.outbox import DetachReason, Outbox
from footlights.session import InteractionSession

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from footlights.authority.world import World
    from footlights.cast import Cast
    from footlights.events import CommitFinal
    from footlights.lifecycle import TurnState
    from footlights.params import SessionParams, TurnParams
    from footlights.turn import Turn, WallClock

log = logging.getLogger("footlights")


@frozen
class StageStatistics:
    sessions: int
    max_sessions: int
    open_turns: int
    max_open_turns: int
    turns_by_state: Mapping[TurnState, int]
    turns_running: int
    commits_waiting: int
    tools_running: int
    max_running_tools: int
    subscribers: int
    best_effort_dropped: int
    bounded_dropped: int
    turns_settled: Mapping[str, int]
    """How many turns ended how: by commit outcome, or by the reason of their interruption."""


class Stage:
    """Made by `open_stage`. Satisfies `footlights.cast.Services` and `footlights.session.SessionHost`."""

    def __init__(self, cast: Cast, ledger: Ledger, epoch: int, limits: Limits, wall_clock: WallClock) -> None:
        self.cast = cast
        self.ledger = ledger
        self.limits = limits
        self.wall_clock = wall_clock
        self.epoch = epoch
        self._committer = cast.make_committer(ledger, cast.world, cast.rules, limits)
        self._sessions: dict[str, InteractionSession] = {}
        self._sessions_started = 0
        self._highest_turn = 0
        self._open_turns = 0
        self._running_turns = 0
        self._running_tools = 0
        self._graces: dict[Turn, trio.CancelScope] = {}
        self._settled: Counter[str] = Counter()
        self._best_effort_dropped = 0
        self._bounded_dropped = 0
        self._turns: trio.Nursery | None = None
        self._tools: trio.Nursery | None = None
        self._closing = trio.Event()
        self._closed = trio.Event()

    # -- for hosts

    @enable_ki_protection
    def start(self, params: SessionParams | None = None) -> InteractionSession:
        """Start a session.

        Raises:
            SessionClosed: the stage is closing.
            Busy: the stage has `max_sessions` sessions.
            InvalidCommand: a session of that name is open.
        """
        self._check_open()
        if len(self._sessions) >= self.limits.max_sessions:
            raise Busy(f"The stage has {self.limits.max_sessions} sessions already (max_sessions).")
        name = None if params is None else params.session_id
        if name in self._sessions:
            raise InvalidCommand(f"A session named {name} is open.")
        self._sessions_started += 1
        session = (
            InteractionSession(self, f"s{self.epoch}-{self._sessions_started:06d}", first_number=1)
            if name is None
            # A name may come back in the same epoch, a turn id never: so it counts on from above all others.
            else InteractionSession(self, name, first_number=self._highest_turn + 1)
        )
        self._sessions[session.session_id] = session
        return session

    def session(self, session_id: str) -> InteractionSession:
        """The open session with this id. Raises `UnknownSession`."""
        try:
            return self._sessions[session_id]
        except KeyError:
            raise UnknownSession(f"There is no open session {session_id[:128]!r}.") from None

    @property
    def world(self) -> Any:
        """What is true: a copy of the world as it was committed last."""
        return self._committer.world.view()

    def statistics(self) -> StageStatistics:
        sessions = [session.statistics() for session in self._sessions.values()]
        subscribers = [outbox for session in sessions for outbox in session.subscribers]
        by_state: Counter[TurnState] = Counter()
        for session in sessions:
            by_state.update(session.turns_by_state)
        return StageStatistics(
            sessions=len(sessions),
            max_sessions=self.limits.max_sessions,
            open_turns=self._open_turns,
            max_open_turns=self.limits.max_open_turns,
            turns_by_state=by_state,
            turns_running=self._running_turns,
            commits_waiting=self._committer.waiting,
            tools_running=self._running_tools,
            max_running_tools=self.limits.max_running_tools,
            subscribers=len(subscribers),
            best_effort_dropped=self._best_effort_dropped + sum(outbox.best_effort_dropped for outbox in subscribers),
            bounded_dropped=self._bounded_dropped + sum(outbox.bounded_dropped for outbox in subscribers),
            turns_settled=Counter(self._settled),
        )

    # -- for sessions

    def check_turn(self, params: TurnParams) -> None:
        self._check_open()
        if self._open_turns >= self.limits.max_open_turns:
            raise Busy(f"The stage has {self.limits.max_open_turns} turns that are not committed yet (max_open_turns).")
        if params.workload is not None and self.cast.workloads.get(params.workload) is None:
            known = ", ".join(self.cast.workloads.names) or "none"
            raise InvalidCommand(f"There is no workload {params.workload[:64]!r}; registered: {known}.")
        if params.model is not None and params.model not in self.cast.models:
            known = ", ".join(self.cast.models) or "none"
            raise InvalidCommand(f"There is no model {params.model[:64]!r}; registered: {known}.")

    def turn_begun(self, number: int) -> None:
        self._open_turns += 1
        self._highest_turn = max(self._highest_turn, number)

    def run_turn(self, turn: Turn) -> None:
        assert self._turns is not None
        assert turn.context is not None
        start_soon = self._turns.start_soon
        turn.context.run(lambda: start_soon(self._perform, turn, name=f"turn {turn.turn_id}"))

    def give_grace(self, turn: Turn) -> None:
        assert self._turns is not None
        scope = self._graces[turn] = trio.CancelScope()
        self._turns.start_soon(self._end_tools_after_grace, turn, scope, name=f"grace of {turn.turn_id}")

    def judge_turn(self, turn: Turn) -> None:
        grace = self._graces.pop(turn, None)
        if grace is not None:
            grace.cancel(reason="the turn has ended")
        self._committer.submit_nowait(turn)

    def turn_settled(self, turn: Turn) -> None:
        self._open_turns -= 1
        if turn.interruption is not None:
            self._settled[turn.interruption.reason] += 1
        elif turn.commit is not None:
            self._settled[turn.commit.commit_outcome] += 1

    def session_closed(self, session: InteractionSession) -> None:
        del self._sessions[session.session_id]

    def subscriber_gone(self, outbox: Outbox) -> None:
        gone = outbox.statistics()
        self._best_effort_dropped += gone.best_effort_dropped
        self._bounded_dropped += gone.bounded_dropped

    async def find_commit(self, session_id: str, turn_id: str) -> CommitFinal | None:
        record = await self.ledger.find(session_id, turn_id)
        return None if record is None else commit_final(record)

    # -- for actors

    @property
    def committed_world(self) -> World:
        return self._committer.world

    @property
    def running_turns(self) -> int:
        return self._running_turns

    def start_tool(self, run: Callable[[], Awaitable[None]], name: str) -> None:
        assert self._tools is not None
        if self._running_tools >= self.limits.max_running_tools:
            raise Busy(f"{self.limits.max_running_tools} tools are running already (max_running_tools).")
        self._running_tools += 1
        self._tools.start_soon(self._run_tool, run, name=name)

    # -- inside

    def _check_open(self) -> None:
        if self._turns is None or self._closing.is_set():
            raise SessionClosed("The stage is closing.")

    @enable_ki_protection
    async def _perform(self, turn: Turn) -> None:
        """The supervision boundary of a turn: whatever happens inside, it ends here in one terminal event."""
        self._running_turns += 1
        try:
            with turn.scope:
                if not turn.is_interrupted:
                    await self.cast.perform(turn, self)
                    self._finish(turn)
        except* Exception as errors:  # noqa: BLE001 - see above
            self._fail(turn, errors)
        finally:
            self._running_turns -= 1
            # Whatever else tore the turn tears the stage: nothing half done may look finished.
            turn.stop(InterruptReason.SHUTDOWN)
            turn.abandon_tools()

    def _finish(self, turn: Turn) -> None:
        if turn.lifecycle.open_tools:
            turn.stop(InterruptReason.WORKLOAD_ERROR, "tool_left_open")
        elif not turn.finish():
            turn.stop(InterruptReason.WORKLOAD_ERROR, "model_not_ready")

    def _fail(self, turn: Turn, errors: ExceptionGroup[Exception]) -> None:
        if turn.is_interrupted:
            # An interruption overtakes what an actor was about to emit; the table refuses that, rightly.
            left = errors.split(IllegalTransition)[1]
        else:
            left = errors
            turn.stop(*explain(errors))
        if left is not None:
            log.error("%s of %s failed: %s", turn.turn_id, turn.session_id, describe(left))

    @enable_ki_protection
    async def _end_tools_after_grace(self, turn: Turn, scope: trio.CancelScope) -> None:
        """An interrupted turn ends in time, even if whoever runs its tools does not care."""
        with scope:
            await trio.sleep(self.limits.tool_cancel_grace)
            turn.abandon_tools()

    @enable_ki_protection
    async def _run_tool(self, run: Callable[[], Awaitable[None]]) -> None:
        try:
            await run()
        finally:
            self._running_tools -= 1

    @enable_ki_protection
    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        # Shielded: a cancelled host still closes in order, because `open_stage` asks for it.
        try:
            with trio.CancelScope(shield=True):
                async with trio.open_nursery() as committing:
                    committing.start_soon(self._committer.run, name="committer")
                    async with trio.open_nursery() as self._tools:
                        async with trio.open_nursery() as self._turns:
                            task_status.started()
                            await self._closing.wait()
                            for session in list(self._sessions.values()):
                                session.begin_close(InterruptReason.SHUTDOWN)
                        self._tools.cancel_scope.cancel(reason="the stage closes")
                    self._committer.close()
                    committing.cancel_scope.deadline = trio.current_time() + self.limits.shutdown_deadline
        finally:
            for session in list(self._sessions.values()):
                session.begin_close(InterruptReason.SHUTDOWN)
                session.abandon(DetachReason.COMMIT_UNKNOWN)
            self._closed.set()

    async def close(self) -> None:
        self._closing.set()
        with trio.CancelScope(shield=True):
            await self._closed.wait()


@asynccontextmanager
async def open_stage(
    cast: Cast,
    *,
    ledger: Ledger | None = None,
    limits: Limits | None = None,
    wall_clock: WallClock = time.time,
) -> AsyncGenerator[Stage, None]:
    """Open a stage for a cast. Without a `ledger`, commits are kept in memory only."""
    ledger = MemoryLedger() if ledger is None else ledger
    stage = Stage(cast, ledger, await ledger.begin_epoch(), limits or Limits(), wall_clock)
    host_error: BaseException | None = None
    async with trio.open_nursery() as nursery:
        await nursery.start(stage.run, name="stage")
        try:
            yield stage
        except BaseException as error:  # noqa: BLE001 - carried around the nursery, which would wrap it
            host_error = error
        await stage.close()
    if host_error is not None:
        raise host_error
