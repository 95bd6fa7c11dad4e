"""Stage: the runtime that a host opens, with its sessions and turns, until the block ends.

Leaving the block interrupts every turn (`shutdown`), cancels running tools, and waits until the last commit is durable,
or until `shutdown_deadline`. A commit that is in doubt then is not announced: its subscribers are detached with
`commit_unknown`.

A turn that fails takes nothing else with it. The host's own exception leaves the block unchanged.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import trio
from attrs import frozen
from trio.lowlevel import enable_ki_protection

from footlights.authority.ledger.memory import MemoryLedger
from footlights.authority.world_part import WorldPart, part_of
from footlights.bad_return import check_kind
from footlights.cast import Cast
from footlights.errors import (
    CommitUnknown,
    Detached,
    InvalidCommand,
    LedgerFenced,
    LedgerInUse,
    RegistrationError,
    SessionClosed,
)
from footlights.events import InterruptReason
from footlights.failures import contained, leaves, report
from footlights.limits import Limits
from footlights.params import SessionParams
from footlights.session.session import InteractionSession
from footlights.stage.cast_changes import added, removed
from footlights.stage.host_commits import HostCommits
from footlights.stage.registry import SessionRegistry
from footlights.stage.supervisor import Supervisor
from footlights.stream.commit_feed import CommitFeed
from footlights.stream.ledger_tail import LedgerTail
from footlights.stream.outbox import DetachReason
from footlights.stream.past_worlds import PastWorlds
from footlights.stream.user_feed import UserFeed
from footlights.trace.files import TraceFiles
from footlights.trace.tracer import Tracer

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence

    from footlights.authority.intents import Intent
    from footlights.authority.ledger.protocol import Ledger
    from footlights.authority.rules import Rule
    from footlights.authority.visibility import User
    from footlights.events import CommitFinal, JsonValue
    from footlights.models.pool import ModelStatus
    from footlights.models.prompts import Persona
    from footlights.notebooks.notebooks import Notebooks
    from footlights.tools.tool import Tool
    from footlights.turn.lifecycle import TurnState
    from footlights.turn.summary import TurnSummary
    from footlights.turn.timeline import TurnPart
    from footlights.turn.turn import WallClock


_NOTHING: Mapping[str, Any] = MappingProxyType({})

log = logging.getLogger("footlights")


@frozen
class StageStatistics:
    """The sessions, turns, tools and subscribers of a stage, beside their limits."""

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
    """Events in all outboxes, as they count against the limits."""
    bytes_waiting: int
    """Their bytes."""
    bytes_retained: int
    """Memory that finished turns take which are kept for resuming subscribers, also those of closed sessions."""
    replay_bytes: int
    turns_settled: Mapping[str, int]
    """Settled turns by commit outcome, or by the reason of their interruption."""
    turns_untraced: int
    """Turns that were left out of the trace; 0 without one."""


@frozen
class OpenTurn:
    """A turn that is not settled, at one moment. It holds nothing that was said."""

    session_id: str
    turn_id: str
    persona: str
    state: TurnState
    accepted_ms: int
    now_ms: int
    """The moment, on the same clock."""
    events: int
    """Events so far."""
    parts: tuple[TurnPart, ...]
    """The parts of its time so far."""


class Stage:
    """The runtime of one game: sessions and their turns. Made by `open_stage`."""

    def __init__(self, supervisor: Supervisor, registry: SessionRegistry, *, ignores_world: bool) -> None:
        self._supervisor = supervisor
        self._registry = registry
        self._ignores_world = ignores_world
        self._host_commits = HostCommits(supervisor, registry)
        self._past = PastWorlds(supervisor.ledger, None if ignores_world else supervisor.cast.world)

    @enable_ki_protection
    def start(self, params: SessionParams | None = None) -> InteractionSession:
        """Start a session.

        Raises:
            SessionClosed: the stage is closing.
            Busy: the stage has `max_sessions` sessions.
            SessionInUse: a session of that name is open.
            InvalidCommand: these are no `SessionParams`.
        """
        params = SessionParams() if params is None else params
        if not isinstance(params, SessionParams):  # pyright: ignore[reportUnnecessaryIsInstance] - a host need not be typed
            raise InvalidCommand(f"params must be SessionParams, and not {type(params).__name__}.")
        return InteractionSession(self._registry.start(params))

    def session(self, session_id: str) -> InteractionSession:
        """The open session with this id. Raises `UnknownSession`."""
        return InteractionSession(self._registry.find(session_id))

    def closed_session(self, session_id: str) -> InteractionSession:
        """A session that was closed lately, for a subscriber that resumes and has not seen its end.

        The last `replay_sessions` are kept. Raises `UnknownSession`.
        """
        return InteractionSession(self._registry.find_closed(session_id))

    @enable_ki_protection
    def resume(
        self, session_id: str, *, remote_models: bool = False, about: Mapping[str, JsonValue] = _NOTHING
    ) -> InteractionSession:
        """The session with this id; opened again if it is from an earlier epoch, or was named by the host.

        A name that was never used is opened as well: names are the host's, a stage keeps no list of them, and a session
        without a commit has left nothing in the ledger.

        Consent is not kept: a session that is opened again uses no remote model unless `remote_models` is true,
        whatever the default of the cast. Nor is what the host said about the player, so `about` says it again, as in
        `SessionParams`. A session that is open stays as it is.

        Raises `UnknownSession` for an id that this epoch has not given out or whose session is closed, and the errors
        of `start`.
        """
        return InteractionSession(self._registry.resume(session_id, remote_models=remote_models, about=about))

    async def commit(self, intents: Sequence[Intent], why: str) -> CommitFinal:
        """Have the rules judge intents of the host itself, outside of sessions, and wait until that is durable.

        No turn, and so no player, can interrupt it, and no stream shows it; `commits` does. A call that is cancelled
        while it waits for a place changes nothing. Later the commit is decided all the same.
        `why` is recorded, with 1 to 256 printable characters. It must quote neither people nor models.

        Raises:
            InvalidCommand: an intent or `why` is invalid.
            TooLarge: there are more intents, or larger ones, than one turn may stage.
            SessionClosed: the stage is closing, and nothing was committed.
            CommitUnknown: the stage closed while the commit was in doubt. After a restart, `commits` tells.
        """
        return await self._host_commits.commit(intents, why)

    def commits(self, *, after: str | None = None, under: str = "") -> CommitFeed:
        """The commits that change the world, in their order: after that commit, or from now on, without end.

        `after` is the id of any commit in the ledger, also of before a restart, or `genesis` for all of them. `under`
        is a JSON pointer: only changes of that part of the world. Raises `InvalidCommand` for one that is no pointer.
        """
        return CommitFeed(self._tail(after), under)

    def commits_for(self, user: User, *, after: str | None = None, under: str = "") -> UserFeed:
        """What this user sees change in that part of the world, as the cast's `visibility` decides at each commit.

        The same as `commits` otherwise. A commit of which he sees nothing is passed in silence.
        """
        return UserFeed(self._tail(after), self._past, self._supervisor.cast.visibility, user, under)

    def _tail(self, after: str | None) -> LedgerTail:
        return LedgerTail(self._supervisor, self._registry.settling, after)

    @property
    def is_open(self) -> bool:
        """Whether it takes sessions, turns and commits. Not while it closes, nor after it has failed."""
        return self._supervisor.is_open

    @property
    def epoch(self) -> int:
        """The number of times that the ledger was opened. Ids of sessions and turns contain it."""
        return self._registry.epoch

    @property
    def world(self) -> Any:
        """The world as it was committed last, read-only; a copy of it is `world.copy()`."""
        return self._supervisor.committed_world.view()

    @property
    def ignores_world(self) -> bool:
        """Whether the ledger took in another initial world than the one of the cast, which is then not used."""
        return self._ignores_world

    async def world_after(self, commit_id: str, path: str = "", user: User | None = None) -> WorldPart:
        """What `world_at` gave after this commit of the ledger, as the cast's `visibility` of now shows it.

        It is made again from the changes since the nearest world that is known. Raises `InvalidCommand` if the ledger
        has no such commit, or if more than 4,096 commits lie between.
        """
        position = await self._supervisor.ledger.position_of(commit_id)
        if position is None:
            raise InvalidCommand("The ledger has no commit with that id.")
        world = await self._past.at(position)
        self._past.note(position, world)
        whole = world.view()
        return part_of(whole, whole if user is None else self._supervisor.cast.visibility(whole, user), path)

    def world_for(self, user: User) -> Any:
        """The part of the world that this user may see, as the cast's `visibility` decides."""
        return self._supervisor.cast.visibility(self.world, user)

    def world_at(self, path: str, user: User | None = None) -> WorldPart:
        """The part of the world at this JSON pointer, as this user may see it; whole, without a user.

        Raises `InvalidCommand` if nothing is there, and `TooLarge` if it takes more than 1,000,000 bytes.
        """
        whole = self.world
        return part_of(whole, whole if user is None else self._supervisor.cast.visibility(whole, user), path)

    @property
    def models(self) -> tuple[ModelStatus, ...]:
        """The state of each model, in the order of the cast."""
        return self._supervisor.pool.statistics()

    @property
    def personas(self) -> tuple[str, ...]:
        """The names of the personas, in the order of the cast."""
        return tuple(self._supervisor.cast.personas)

    def persona(self, name: str | None) -> Persona:
        """The persona of that name; the first for None. Raises `InvalidCommand` if there is none."""
        return self._registry.persona(name)

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules, in the order of the cast."""
        return tuple(self._supervisor.cast.rules)

    @property
    def overdue_rule(self) -> str | None:
        """The rule that has not returned a second after its budget, or `the world` for one of the host's own kind.

        None if there is none. Until it returns no turn is committed, and the last ones that ended wait.
        """
        return self._supervisor.overdue_rule

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools, in the order of the cast."""
        return tuple(self._supervisor.cast.tools)

    def tools_of(self, persona: str | None) -> dict[str, str]:
        """The tools that this persona may use, with their descriptions. Raises `InvalidCommand` if there is none."""
        may_use = self.persona(persona).may_use
        return {each.name: each.description for each in self._supervisor.cast.tools.values() if may_use(each.name)}

    @enable_ki_protection
    def add(
        self,
        *,
        personas: Mapping[str, Persona] = _NOTHING,
        tools: Iterable[Tool] = (),
        rules: Mapping[str, Rule] = _NOTHING,
    ) -> None:
        """Add personas, tools and rules to the cast: all of them, for the turns that begin from now on.

        A turn that has begun, or waits in its session, keeps what there was. Rules are asked after those that there
        are. Raises `RegistrationError` for a name that is used, and for what a cast refuses; then nothing is added.
        """
        self._supervisor.cast = added(self._supervisor.cast, personas, tools, rules)

    @enable_ki_protection
    def remove(
        self, *, personas: Collection[str] = (), tools: Collection[str] = (), rules: Collection[str] = ()
    ) -> None:
        """Take personas, tools and rules away, by their names: all of them, for the turns that begin from now on.

        A turn that has begun, or waits in its session, keeps them. Raises `RegistrationError` for an unknown name, for
        the last persona, and for a tool that a persona that stays has; then nothing is removed.
        """
        self._supervisor.cast = removed(self._supervisor.cast, personas, tools, rules)

    @property
    def notebooks(self) -> Notebooks | None:
        """What characters remember of players; None if they remember nothing."""
        return self._supervisor.cast.notebooks

    def prewarm(self, model_id: str) -> None:
        """Begin to load a model, so that the first turn need not wait for it. Raises `InvalidCommand`."""
        self._registry.check_model(model_id)
        self._supervisor.pool.prewarm(model_id)

    @property
    def ledger(self) -> Ledger:
        """The ledger that keeps this stage's commits."""
        return self._supervisor.ledger

    @property
    def limits(self) -> Limits:
        """The limits of this stage."""
        return self._registry.limits

    @property
    def open_sessions(self) -> int:
        """How many sessions are open."""
        return len(self._registry.sessions)

    def watch_turns(self, limit: int) -> list[OpenTurn]:
        """At most so many of the turns that are not settled. It visits them, and nothing is noted between two calls."""
        turns = (turn for session in self._registry.sessions.values() for turn in session.open_turns)
        now = self._registry.clock()
        return [
            OpenTurn(
                turn.session_id,
                turn.turn_id,
                turn.persona_name,
                turn.state,
                turn.accepted_ms,
                int(now * 1000),
                turn.replay.next_seq,
                turn.timeline.parts(now),
            )
            for turn in islice(turns, limit)
        ]

    @property
    def open_turns(self) -> int:
        """How many turns are not settled."""
        return self._registry.open_turns

    def divide(self, *, is_divided: bool) -> None:
        """Set whether several owners share the stage: then no owner gets all running tools or all retained sessions.

        Sessions whose ids begin with the same `name:` are one owner's, as in approvals.
        """
        self._supervisor.divide(is_divided=is_divided)

    def call_when_settled(self, callback: Callable[[str, str], None]) -> None:
        """Call this with the session id and the turn id of each turn that is settled from now on. It must be quick."""
        self._registry.settled_listeners.append(callback)

    def statistics(self) -> StageStatistics:
        """Count what is open and waiting. It walks every session."""
        supervisor, registry = self._supervisor, self._registry
        by_state: Counter[TurnState] = Counter()
        subscribers = events_waiting = bytes_waiting = 0
        best_effort_dropped, bounded_dropped = registry.best_effort_dropped, registry.bounded_dropped
        # Ten thousand sessions are walked without a checkpoint, so no object is made for each.
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
            bytes_retained=registry.retention.bytes,
            replay_bytes=registry.limits.replay_bytes,
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

    `ledger` is the path of a file, created if it does not exist, the URL of a world in PostgreSQL, or a ledger object.
    Without one, commits are kept in
    memory only. Raises `LedgerInUse` for a ledger that another stage has open. If another stage takes the ledger over
    later, the stage closes and the block raises `LedgerFenced`.
    Raises `RegistrationError` for a cast or limits that are none, and outside of trio.
    `trace` is the directory of `interaction_trace.jsonl`, or `TraceFiles`. Without it, nothing is traced.
    `observe` is called with a summary of each turn as soon as it is settled. It must be quick.
    """
    if not trio.lowlevel.in_trio_run():
        raise RegistrationError(
            "open_stage needs trio: use trio.run in place of asyncio.run. In a program on asyncio, use "
            "footlights_transports.embed.asyncio."
        )
    check_kind("The cast of a stage", cast, Cast)
    limits = Limits() if limits is None else limits
    check_kind("The limits of a stage", limits, Limits)
    files = trace if trace is None or isinstance(trace, TraceFiles) else TraceFiles(trace)
    async with (
        _opened(ledger) as its_ledger,
        _open(cast, its_ledger, limits, files, wall_clock, observe) as stage,
    ):
        yield stage


@asynccontextmanager
async def _opened(ledger: Ledger | str | os.PathLike[str] | None) -> AsyncGenerator[Ledger, None]:
    if ledger is None:
        yield MemoryLedger()
    elif isinstance(ledger, str | os.PathLike):
        from footlights.authority.ledger.names import ledger_at  # a stage without a file needs none of it

        async with ledger_at(ledger) as durable:
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
"""The ids of the ledger objects that open stages of this process use."""


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
    ignores_world = opening.initial_digest not in (None, cast.world.digest())
    supervisor = Supervisor(cast, ledger, opening.world, limits)
    tracer = None if files is None else _tracer(files, opening.epoch, limits)
    registry = SessionRegistry(supervisor, opening.epoch, wall_clock, tracer, observe)
    sweeping = trio.CancelScope()
    host_error: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            # Not nursery.start: if it were cancelled, it would wait forever for the shielded task.
            nursery.start_soon(_run, supervisor, registry, name="stage")
            if tracer is not None:
                nursery.start_soon(tracer.run, name="tracer")
            if cast.notebooks is not None:
                registry.settled_listeners.append(cast.notebooks.turn_settled)
                nursery.start_soon(_sweep_notes, cast.notebooks, supervisor, opening.epoch, sweeping, name="notebooks")
            try:
                await supervisor.opened.wait()
                yield Stage(supervisor, registry, ignores_world=ignores_world)
            except BaseException as error:  # noqa: BLE001 - carried around the nursery, which would wrap it
                host_error = error
            supervisor.closing.set()
            host_error = await _wait_out(supervisor.closed, host_error)
            sweeping.cancel(reason="the stage is closed")
            if tracer is not None:
                host_error = await _wait_out(tracer.closed, host_error)
    except BaseExceptionGroup as crash:
        if isinstance(host_error, _CONSEQUENCES) and (fenced := _fenced(crash)) is not None:
            raise fenced from host_error
        if host_error is None or isinstance(host_error, trio.Cancelled):
            raise
        raise BaseExceptionGroup("the stage failed, and so did its host", [host_error, crash]) from None
    if host_error is not None:
        raise host_error


_CONSEQUENCES = (type(None), trio.Cancelled, CommitUnknown, Detached, SessionClosed)
"""What a host gets in the block because the stage closes."""


def _fenced(crash: BaseExceptionGroup) -> LedgerFenced | None:
    """The one error to raise if nothing failed but that the ledger has another owner, which several tasks may find."""
    found = [error for error in leaves(crash) if not isinstance(error, trio.Cancelled)]
    if not all(isinstance(error, LedgerFenced) for error in found):
        return None
    return LedgerFenced(*found[0].args)


def _tracer(files: TraceFiles, epoch: int, limits: Limits) -> Tracer:
    # A ledger in memory begins with epoch 1 every time, so the files may hold these ids already.
    return Tracer(files, fresh=epoch == 1, shutdown_deadline=limits.shutdown_deadline)


async def _sweep_notes(notebooks: Notebooks, supervisor: Supervisor, epoch: int, scope: trio.CancelScope) -> None:
    """The supervision boundary of the note store: what fails there leaves words behind, and harms no turn."""
    with contained(partial(report, log, "the notebooks are not swept any more")), scope:
        await notebooks.run(lambda: supervisor.committed_world.view(), epoch)


@enable_ki_protection
async def _run(supervisor: Supervisor, registry: SessionRegistry) -> None:
    try:
        await supervisor.run(partial(registry.close_all, InterruptReason.SHUTDOWN))
    finally:
        # Turns that are still open are in doubt: the committer ran out of time, or crashed.
        registry.close_all(InterruptReason.SHUTDOWN)
        registry.abandon_all(DetachReason.COMMIT_UNKNOWN)
        registry.settling.ring()
        if registry.tracer is not None:
            registry.tracer.close()


async def _wait_out(closed: trio.Event, host_error: BaseException | None) -> BaseException | None:
    """Wait for orderly shutdown, shielded from cancellation.

    A Ctrl-C meanwhile becomes the host's error, with the earlier one as its context.
    """
    while not closed.is_set():
        try:
            with trio.CancelScope(shield=True):
                await closed.wait()
        except KeyboardInterrupt as interrupt:
            interrupt.__context__ = host_error
            host_error = interrupt
    return host_error
