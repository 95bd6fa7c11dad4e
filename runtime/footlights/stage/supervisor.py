"""Supervisor: the nurseries in which everything of a stage runs, and its orderly shutdown.

Four nurseries, inside out: turns, tools, model loads, the committer. Shutdown stops the turns, cancels the tools and
the loads, and waits until the last commit is durable, or until `shutdown_deadline`. A turn that fails takes nothing
else with it.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

import trio
from trio.lowlevel import enable_ki_protection

from footlights.errors import IllegalTransition
from footlights.events import InterruptReason
from footlights.failure_texts import MODEL_NOT_READY, TOOL_LEFT_OPEN, known
from footlights.failures import contained, explain, leaves, report
from footlights.fair_share import FairShare
from footlights.ids import owner_of
from footlights.turn.timeline import Part

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from footlights.authority.ledger.protocol import Ledger
    from footlights.authority.world import World
    from footlights.cast import Cast
    from footlights.limits import Limits
    from footlights.stage.host_commits import HostCommit
    from footlights.turn.turn import Turn

log = logging.getLogger("footlights")


class Supervisor:
    """Satisfies `footlights.cast.Services`."""

    def __init__(self, cast: Cast, ledger: Ledger, world: World, limits: Limits) -> None:
        self.cast = cast
        """The cast of the next turn. A turn keeps the one that it began with."""
        self.ledger = ledger
        self.limits = limits
        self.running_turns = 0
        self.running_tools = 0
        self._tools_of: dict[str, int] = {}
        self.divide(is_divided=False)
        self.opened = trio.Event()
        self.closing = trio.Event()
        self.closed = trio.Event()
        self.is_suspended = False
        """Whether its lease of the ledger may have run out. Then no turn begins."""
        self.pool = cast.make_pool(cast.models)
        self._committer = cast.make_committer(ledger, world, limits)
        self._watchdog = cast.make_watchdog(limits)
        self._graces: dict[Turn, trio.CancelScope] = {}
        self._turns: trio.Nursery | None = None
        self._tools: trio.Nursery | None = None

    @property
    def committed_world(self) -> World:
        return self._committer.world

    @property
    def commits_waiting(self) -> int:
        return self._committer.waiting

    @property
    def overdue_rule(self) -> str | None:
        return self._committer.overdue_rule

    @property
    def is_open(self) -> bool:
        return self.opened.is_set() and not self.closing.is_set()

    def divide(self, *, is_divided: bool) -> None:
        """Set whether several owners share the stage. The ids of their sessions begin with their names."""
        self.is_divided = is_divided
        limit = self.limits.max_running_tools
        self._share_of_tools = FairShare("running tools", "max_running_tools", limit, None, is_divided)

    # -- called by sessions and actors

    def run_turn(self, turn: Turn) -> None:
        assert self._turns is not None
        assert turn.context is not None
        start_soon = self._turns.start_soon
        turn.context.run(lambda: start_soon(self._perform, turn, name=f"turn {turn.turn_id}"))

    def give_grace(self, turn: Turn) -> None:
        """Give the open tools of an interrupted turn `tool_cancel_grace` seconds to end."""
        assert self._turns is not None
        scope = self._graces[turn] = trio.CancelScope()
        self._turns.start_soon(self._end_tools_after_grace, turn, scope, name=f"grace of {turn.turn_id}")

    def judge_turn(self, turn: Turn) -> None:
        grace = self._graces.pop(turn, None)
        if grace is not None:
            grace.cancel(reason="the turn has ended")
        self._committer.submit_nowait(turn)

    def judge_host(self, commit: HostCommit) -> None:
        self._committer.submit_nowait(commit)

    def start_tool(self, run: Callable[[], Awaitable[None]], name: str, session_id: str) -> None:
        assert self._tools is not None
        owner = owner_of(session_id)
        self._share_of_tools.check(self._tools_of.get(owner, 0), self.running_tools)
        self.running_tools += 1
        self._tools_of[owner] = self._tools_of.get(owner, 0) + 1
        self._tools.start_soon(self._run_tool, run, owner, name=name)

    # -- the tasks

    @enable_ki_protection
    async def run(self, stop_turns: Callable[[], None]) -> None:
        """Run until `closing` is set and everything has ended; then `closed` is set, also after a crash.

        Shielded from cancellation, so that a cancelled host still gets an orderly shutdown.
        """
        try:
            with trio.CancelScope(shield=True):
                async with trio.open_nursery() as committing:
                    hold = getattr(self.ledger, "hold", None)  # a `LeasedLedger` has it
                    run = self._committer.run if hold is None else partial(self._commit_while_holding, hold)
                    committing.start_soon(run, name="committer")
                    async with trio.open_nursery() as loads:
                        self.pool.open(loads)
                        async with trio.open_nursery() as self._tools:
                            self._tools.start_soon(self._watchdog.run, name="watchdog")
                            async with trio.open_nursery() as self._turns:
                                self.opened.set()
                                try:
                                    await self.closing.wait()
                                finally:  # also after a crash, so that no turn begins any more
                                    self.closing.set()
                                    stop_turns()
                            self._tools.cancel_scope.cancel(reason="the stage closes")
                        loads.cancel_scope.cancel(reason="the stage closes")
                    committing.start_soon(self.pool.close, name="model pool")
                    self._committer.close()
                    committing.cancel_scope.deadline = trio.current_time() + self.limits.shutdown_deadline
        finally:
            self.closing.set()
            self.closed.set()

    async def _commit_while_holding(self, hold: Callable[[Callable[[bool], None]], Awaitable[None]]) -> None:
        """Run the committer, and hold the ledger until the last commit is durable."""
        async with trio.open_nursery() as holding:
            holding.start_soon(hold, self._suspend, name="lease of the ledger")
            await self._committer.run()
            holding.cancel_scope.cancel(reason="the last commit is durable")

    def _suspend(self, is_doubtful: bool) -> None:
        self.is_suspended = is_doubtful

    @enable_ki_protection
    async def _perform(self, turn: Turn) -> None:
        """The supervision boundary of a turn: every failure inside ends here, in one terminal event."""
        self.running_turns += 1
        self._watchdog.watch(turn)
        try:
            with contained(partial(_fail, turn)), turn.scope:
                if not turn.is_interrupted:
                    turn.wait_for(Part.MODEL_CHOICE if turn.params.workload is None else Part.WORKLOAD)
                    await turn.cast.perform(turn, self)
                    _finish(turn)
        finally:
            self.running_turns -= 1
            self._watchdog.unwatch(turn)
            # A KeyboardInterrupt tears the stage, and a stage that is torn cancels its turns.
            turn.stop(InterruptReason.SHUTDOWN)
            turn.abandon_tools()

    @enable_ki_protection
    async def _end_tools_after_grace(self, turn: Turn, scope: trio.CancelScope) -> None:
        """End an interrupted turn in time, even if its tool runner does not react to the cancel."""
        with scope:
            await trio.sleep(self.limits.tool_cancel_grace)
            turn.abandon_tools()

    @enable_ki_protection
    async def _run_tool(self, run: Callable[[], Awaitable[None]], owner: str) -> None:
        try:
            await run()
        finally:
            self.running_tools -= 1
            self._tools_of[owner] -= 1
            if not self._tools_of[owner]:
                del self._tools_of[owner]


def _finish(turn: Turn) -> None:
    if turn.lifecycle.open_tools:
        turn.stop(InterruptReason.WORKLOAD_ERROR, TOOL_LEFT_OPEN, known(TOOL_LEFT_OPEN))
    elif not turn.finish():
        turn.stop(InterruptReason.WORKLOAD_ERROR, MODEL_NOT_READY, known(MODEL_NOT_READY))


def _fail(turn: Turn, error: BaseException) -> None:
    # An actor that was about to emit when its turn was interrupted: the lifecycle table refuses the event.
    overtaken = turn.is_interrupted and all(isinstance(leaf, IllegalTransition) for leaf in leaves(error))
    turn.stop(*explain(error))
    if not overtaken:
        report(log, f"{turn.turn_id} of {turn.session_id} failed", error)
