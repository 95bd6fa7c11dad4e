"""Random programs against a stage with random limits, down to one.

Whatever players, subscribers and hosts do, in whatever order: every stream is lawful, and every subscriber
that was not detached sees turn_accepted, the terminal and commit_final of every turn that was open while it
was attached.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import pytest
import trio
import trio.testing
from attrs import Factory, define, frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from footlights import (
    Busy,
    BusyRule,
    Detached,
    EventType,
    InteractionSession,
    InvalidCommand,
    Limits,
    Mode,
    ModelError,
    SessionClosed,
    Stage,
    StreamEvent,
    Subscription,
    Tool,
    ToolContext,
    TurnParams,
    WarmState,
    laws,
    open_stage,
)
from footlights_actors import Call, Fail, Flood, Line, Say, ScriptedModel, Stall, standard_cast
from footlights_kit.points import RunLimits
from footlights_kit.trial import Case, Trial, perform

if TYPE_CHECKING:
    from collections.abc import Mapping

    from footlights import Prompt
    from footlights.events import JsonValue

TERMINAL = {EventType.TURN_FINAL, EventType.TURN_INTERRUPTED}


# -- the cast: the input says what happens

SCRIPTS: Mapping[str, list[Line]] = {
    "talk": [Say("Good evening to you, traveller.")],
    "flood": [Flood("x", 60)],
    "tool": [Say("Wait."), Call("quick"), Call("deaf")],
    "fail": [Say("Oh"), Fail(ModelError("broken"))],
    "stall": [Say("Well"), Stall()],
}


def script(prompt: Prompt) -> list[Line]:
    return [Say(" Done.")] if prompt.exchanges else SCRIPTS[prompt.user]


async def quick(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    await trio.to_thread.run_sync(lambda: None)
    return True


async def deaf(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
    with trio.CancelScope(shield=True):
        await trio.sleep(0.4)
    return True


# -- programs


@frozen
class Begin:
    session: int
    said: str
    busy: BusyRule
    mode: Mode


@frozen
class Cancel:
    session: int
    turn: int | None


@frozen
class Subscribe:
    session: int


@frozen
class Leave:
    subscriber: int


@frozen
class Resume:
    subscriber: int


@frozen
class Stop:
    """The subscriber takes nothing until it is told to go on."""

    subscriber: int


@frozen
class GoOn:
    subscriber: int


@frozen
class Hear:
    session: int
    turn: int
    seq: int


@frozen
class Close:
    session: int


@frozen
class Wait:
    seconds: float


Op: TypeAlias = Begin | Cancel | Subscribe | Leave | Resume | Stop | GoOn | Hear | Close | Wait

few = st.integers(0, 3)
which = st.integers(0, 1)
begins = st.builds(Begin, which, st.sampled_from(sorted(SCRIPTS)), st.sampled_from(BusyRule), st.sampled_from(Mode))
waits = st.builds(Wait, st.sampled_from([0.0, 0.005, 0.03, 0.2, 1.5]))
OPS: st.SearchStrategy[Op] = st.one_of(
    begins,
    waits,
    begins,
    waits,
    st.builds(Subscribe, which),
    st.builds(Cancel, which, st.none() | few),
    st.builds(Leave, few),
    st.builds(Resume, few),
    st.builds(Stop, few),
    st.builds(GoOn, few),
    st.builds(Hear, which, few, st.integers(0, 12)),
    st.builds(Close, which),
)


def limit(*tight: float, usual: float) -> st.SearchStrategy[float]:
    return st.sampled_from([usual, *tight, usual, usual])


LIMITS = st.builds(
    Limits,
    best_effort_max_events_per_turn=limit(1, 2, 3, usual=256),
    bounded_max_events_per_turn=limit(1, 2, 3, usual=128),
    max_bytes_per_turn_queue=limit(1, 300, usual=1_000_000),
    max_turn_text_bytes=limit(1, 30, usual=500_000),
    max_turn_events=limit(1, 6, usual=1_000),
    max_queued_turns=limit(0, 1, usual=16),
    max_concurrent_turns=limit(1, usual=16),
    max_open_turns=limit(1, 2, usual=1_000),
    max_subscribers=limit(1, 2, usual=16),
    max_turns_per_subscriber=limit(1, 2, usual=100),
    replay_turns=limit(0, 1, usual=4),
    stall_timeout=st.just(1.0),
    stall_detach=limit(0.1, usual=30.0),
    tool_cancel_grace=limit(0.0, usual=0.25),
)


# -- running them


@define(eq=False)
class Subscriber:
    session: InteractionSession
    got: list[StreamEvent] = Factory(list["StreamEvent"])
    must_see: set[str] = Factory(set[str])
    scope: trio.CancelScope = Factory(trio.CancelScope)
    may_read: trio.Event = Factory(trio.Event)
    cursor: Mapping[str, int] | None = None
    attached: bool = False

    async def read(self, task_status: trio.TaskStatus[None]) -> None:
        """Attach, and read until the session is closed, or until it is told to leave, or let go."""
        self.scope = trio.CancelScope()
        stream = self.session.subscribe(self.cursor)
        try:
            with self.scope:
                async with stream:
                    self.attached = True
                    self.must_see = {turn.turn_id for turn in self.session._core._open.values()}
                    task_status.started()
                    await self._take_all(stream)
                    assert stream.is_exhausted
                    self._check_complete()
        except (Busy, SessionClosed):
            task_status.started()
        except Detached:
            pass
        self.attached = False
        self.cursor = stream.cursor

    async def _take_all(self, stream: Subscription) -> None:
        while True:
            await self.may_read.wait()
            try:
                self.got.append(await anext(stream))
            except StopAsyncIteration:
                return

    def _check_complete(self) -> None:
        for turn_id in self.must_see:
            seen = [event.event_type for event in self.got if event.turn_id == turn_id]
            assert seen[0] is EventType.TURN_ACCEPTED
            assert seen[-2] in TERMINAL
            assert seen[-1] is EventType.COMMIT_FINAL


@define
class Machine:
    stage: Stage
    nursery: trio.Nursery
    sessions: list[InteractionSession]
    turns: list[list[str]]
    subscribers: list[Subscriber] = Factory(list["Subscriber"])

    async def run(self, op: Op) -> None:
        match op:
            case Begin(number, said, busy, mode):
                self._begin(number, said, TurnParams(busy=busy, mode=mode))
            case Cancel(number, None):
                self.sessions[number].cancel()
            case Cancel(number, turn) if turn is not None and turn < len(self.turns[number]):
                self.sessions[number].cancel(self.turns[number][turn])
            case Subscribe(number):
                await self._attach(Subscriber(self.sessions[number]))
            case Leave(number) if number < len(self.subscribers):
                self.subscribers[number].scope.cancel()
                await trio.testing.wait_all_tasks_blocked()
            case Resume(number) if number < len(self.subscribers) and not self.subscribers[number].attached:
                await self._attach(self.subscribers.pop(number))
            case Stop(number) if number < len(self.subscribers) and self.subscribers[number].may_read.is_set():
                self.subscribers[number].may_read = trio.Event()
            case GoOn(number) if number < len(self.subscribers):
                self.subscribers[number].may_read.set()
            case Hear(number, turn, seq) if turn < len(self.turns[number]):
                self._hear(number, turn, seq)
            case Close(number):
                await self.sessions[number].close()
            case Wait(seconds):
                await trio.sleep(seconds)
            case _:
                pass

    async def wait_for_every_turn(self) -> None:
        for session, turns in zip(self.sessions, self.turns, strict=True):
            for turn_id in turns:
                await session.finalize(turn_id).wait()

    def _begin(self, number: int, said: str, params: TurnParams) -> None:
        session = self.sessions[number]
        try:
            turn_id = session.begin_turn(said, params)
        except (Busy, SessionClosed):
            return
        self.turns[number].append(turn_id)
        for subscriber in self.subscribers:
            if subscriber.attached and subscriber.session is session:
                subscriber.must_see.add(turn_id)

    def _hear(self, number: int, turn: int, seq: int) -> None:
        with suppress(InvalidCommand):
            self.sessions[number].heard(self.turns[number][turn], seq)

    async def _attach(self, subscriber: Subscriber) -> None:
        if subscriber.got or subscriber.cursor is not None:
            subscriber.cursor = subscriber.cursor or {}
        subscriber.may_read.set()
        self.subscribers.append(subscriber)
        await self.nursery.start(subscriber.read)


async def run_program(program: list[Op], limits: Limits, patient: bool) -> None:
    """Run it with one subscriber to each session from the start. A patient host lets every turn end by itself."""
    model = ScriptedModel(script, pace=0.01, warm_state=WarmState.COLD, load_seconds=0.05, load_steps=3)
    cast = standard_cast(model, tools=[Tool(name="quick", run=quick), Tool(name="deaf", run=deaf)])
    async with trio.open_nursery() as nursery:  # noqa: SIM117 - subscribers outlive the stage
        async with open_stage(cast, limits=limits, wall_clock=trio.current_time) as stage:
            sessions = [stage.start(), stage.start()]
            machine = Machine(stage, nursery, sessions, [[], []])
            for op in [Subscribe(0), Subscribe(1), *program]:
                await machine.run(op)
            for subscriber in machine.subscribers:
                subscriber.may_read.set()
            if patient:
                await machine.wait_for_every_turn()
            for session in sessions:
                await session.close()
            assert stage.statistics().open_turns == 0
    for subscriber in machine.subscribers:
        # What it got before it left and after it came back is one stream, as long as the turns were retained.
        if limits.replay_turns == 4 and len(machine.turns[sessions.index(subscriber.session)]) <= 4:
            assert laws.check(subscriber.got, complete=False) == []


@pytest.mark.shows("core-4", "core-7", "core-9", "core-12", "core-33")
@given(st.lists(OPS, min_size=4, max_size=40), LIMITS, st.booleans(), st.integers(0, 3))
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_happens_streams_are_lawful_and_complete(
    program: list[Op], limits: Limits, patient: bool, order: int
) -> None:
    async def scenario(trial: Trial) -> None:
        await run_program(program, limits, patient)

    run = perform(scenario, Case(order), RunLimits(max_points=100_000))
    if run.error is not None:
        raise run.error
