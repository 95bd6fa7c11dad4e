"""Every seam where a host's code runs inside a turn, against everything that such code can raise.

The promise: the turn is interrupted and fails closed, its neighbour commits, and the stage goes on. Only a
`KeyboardInterrupt` leaves the stage (test_keyboard_interrupt.py).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import trio
from attrs import evolve, frozen

from footlights import (
    CommitFinal,
    CommitOutcome,
    Fact,
    Intent,
    IntentType,
    InteractionContext,
    InterruptReason,
    Persona,
    Tool,
    ToolContext,
    ToolError,
    ToolRequest,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    WarmState,
    open_stage,
)
from footlights.authority import JsonWorld, accept, patch
from footlights.testing import only, payloads, take_turn
from footlights.testing.faults import failing_load, failing_model, raising_tool
from footlights_actors import Call, Pause, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from trio.testing import MockClock

    from footlights import Cast, Model, ModelChoice, Output, Prompt, StreamEvent
    from footlights.authority import Ruling
    from footlights.events import JsonValue


def count_rooms(world: dict[str, int], intents: tuple[Intent, ...]) -> Ruling:
    return accept(patch.replace("/rented", world["rented"] + len(intents))) if intents else accept()


def rent() -> Intent:
    return Intent(IntentType.TURN_FINALIZE, "a room")


@frozen
class Renting:
    """A workload that stages an intent, waits for the others, and ends as it is told to."""

    end: Callable[[], None] = lambda: None

    async def run(self, context: InteractionContext) -> None:
        context.request_commit(rent())
        await trio.sleep(1)
        self.end()


def inn(model: Model) -> Cast:
    return standard_cast(
        model, world=JsonWorld({"rented": 0}), rules={"count": count_rooms}, workloads={"neighbour": Renting()}
    )


def quiet_model() -> ScriptedModel:
    return ScriptedModel(lambda _: [Say("Welcome."), Pause(1), Say("Come in.")])


def raising(error: BaseException) -> Callable[..., Any]:
    def happen(*_: object) -> Any:
        raise error

    return happen


# -- the seams


def model_fails(error: BaseException) -> Cast:
    return inn(failing_model(quiet_model(), after_tokens=1, error=error))


def load_fails(error: BaseException) -> Cast:
    return inn(failing_load(quiet_model(), error=error))


def warm_state_fails(error: BaseException) -> Cast:
    class Moody(ScriptedModel):
        hot = True

        @property
        def warm_state(self) -> WarmState:
            raise error

    return inn(Moody(lambda _: [Say("Welcome.")]))


def choice_fails(error: BaseException) -> Cast:
    def choose(query: object) -> ModelChoice:
        raise error

    return evolve(inn(quiet_model()), choose_model=choose)


def facts_fail(error: BaseException) -> Cast:
    def facts(*_: object) -> tuple[Fact, ...]:
        raise error

    return evolve(inn(quiet_model()), personas={"innkeeper": Persona(facts=facts)})


def tool_fails(error: BaseException) -> Cast:
    return _with_tool(raising_tool(error=error))


def tool_fails_after_staging(error: BaseException) -> Cast:
    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        context.request_commit(rent())
        await trio.lowlevel.checkpoint()
        raise error

    return _with_tool(Tool(name="staging", run=run))


def key_fails(error: BaseException) -> Cast:
    return _with_tool(evolve(raising_tool(), idempotency_key=raising(error)))


def arguments_fail(error: BaseException) -> Cast:
    return _with_tool(evolve(raising_tool(), read_arguments=raising(error)))


def workload_fails(error: BaseException) -> Cast:
    cast = inn(quiet_model())
    cast.workloads.register("failing", Renting(raising(error)))
    return cast


def _with_tool(tool: Tool) -> Cast:
    model = ScriptedModel(lambda prompt: [Say("Done.")] if prompt.exchanges else [Call(tool.name)])
    return evolve(inn(model), tools={tool.name: tool})


MODEL, TOOL, WORKLOAD = InterruptReason.MODEL_ERROR, InterruptReason.TOOL_ERROR, InterruptReason.WORKLOAD_ERROR
SEAMS: dict[Callable[[BaseException], Cast], set[InterruptReason]] = {
    model_fails: {MODEL},
    load_fails: {MODEL},
    warm_state_fails: {MODEL, WORKLOAD},
    choice_fails: {WORKLOAD},
    facts_fail: {WORKLOAD},
    tool_fails: {TOOL},
    tool_fails_after_staging: {TOOL},
    key_fails: {TOOL},
    arguments_fail: {TOOL},
    workload_fails: {WORKLOAD},
}


# -- the failures


async def kept_cancel() -> BaseException:
    """A `Cancelled` of a scope that is long closed."""
    kept: BaseException | None = None
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as error:
            kept = error
    assert kept is not None
    return kept


async def of_type(kind: type[BaseException]) -> BaseException:
    await trio.lowlevel.checkpoint()
    return kind("a secret that somebody said")


FAILURES = {
    "an exception": lambda: of_type(ValueError),
    "sys.exit": lambda: of_type(SystemExit),
    "a generator's exit": lambda: of_type(GeneratorExit),
    "asyncio's cancel": lambda: of_type(asyncio.CancelledError),
    "a kept cancel": kept_cancel,
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("seam", SEAMS)
async def test_what_a_turn_raises_interrupts_that_turn_and_no_other(
    seam: Callable[[BaseException], Cast], failure: str, quiet_clock: MockClock
) -> None:
    error = await FAILURES[failure]()
    async with open_stage(seam(error)) as stage:
        neighbour = stage.start()
        safe = neighbour.begin_turn("Me first.", TurnParams(workload="neighbour"))
        workload = "failing" if seam is workload_fails else None
        session = stage.start()
        events = await take_turn(session, "A room?", TurnParams(workload=workload))
        after = await take_turn(session, "And now?", TurnParams(workload="neighbour"))
        assert (await neighbour.finalize(safe).wait()).commit_outcome is CommitOutcome.OK
        assert stage.world == {"rented": 2}
    assert only(events, TurnInterrupted).reason in SEAMS[seam]
    assert only(events, CommitFinal).commit_outcome is CommitOutcome.FAIL_CLOSED
    assert only(after, CommitFinal).commit_outcome is CommitOutcome.OK


async def leave_a_scope_open() -> None:
    """As an async generator does that has a deadline around its `yield`, and is dropped before its end."""
    await trio.lowlevel.checkpoint()
    trio.CancelScope().__enter__()


class Careless(ScriptedModel):
    """Leaves a cancel scope open while it loads, or while it speaks."""

    def __init__(self, where: str) -> None:
        super().__init__(lambda _: [Say("Done.")], warm_state=WarmState.COLD if where == "load" else WarmState.HOT)
        self._where = where

    async def load(self, report: Callable[[float], None]) -> None:
        await super().load(report)
        await leave_a_scope_open()

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        if self._where == "tool" and not prompt.exchanges:
            yield ToolRequest("careless", {})
        elif self._where == "model":
            await leave_a_scope_open()
        yield "Done."


@pytest.mark.parametrize("where", ["tool", "model", "load", "workload"])
async def test_a_cancel_scope_that_is_left_open_hurts_no_other_turn(where: str, quiet_clock: MockClock) -> None:
    async def run(arguments: Mapping[str, JsonValue], context: ToolContext) -> JsonValue:
        await leave_a_scope_open()
        return None

    class Work:
        async def run(self, context: InteractionContext) -> None:
            await leave_a_scope_open()

    cast = evolve(inn(Careless(where)), tools={"careless": Tool(name="careless", run=run)})
    cast.workloads.register("careless", Work())
    async with open_stage(cast) as stage:
        neighbour = stage.start()
        safe = neighbour.begin_turn("Me first.", TurnParams(workload="neighbour"))
        workload = "careless" if where == "workload" else None
        events = await take_turn(stage.start(), "A room?", TurnParams(workload=workload))
        assert (await neighbour.finalize(safe).wait()).commit_outcome is CommitOutcome.OK
        assert stage.world == {"rented": 1}
    assert only(events, TurnInterrupted).reason in {MODEL, TOOL, WORKLOAD}


class _Unprintable(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise SystemExit


class Unprintable(Exception, metaclass=_Unprintable):
    pass


class Exiting(ToolError):
    def __str__(self) -> str:
        raise SystemExit


@pytest.mark.parametrize("error", [Unprintable(), Exiting()], ids=["its name", "its text"])
async def test_an_error_that_cannot_be_told_hurts_no_other_turn(error: Exception, quiet_clock: MockClock) -> None:
    async with open_stage(tool_fails(error)) as stage:
        events = await take_turn(stage.start(), "A room?")
        after = await take_turn(stage.start(), "And now?", TurnParams(workload="neighbour"))
    assert len(payloads(events, CommitFinal)) == 1
    assert only(after, CommitFinal).commit_outcome is CommitOutcome.OK


async def test_an_unload_that_exits_stays_in_the_pool() -> None:
    class Stubborn(ScriptedModel):
        async def unload(self) -> None:
            raise SystemExit(3)

    async with open_stage(inn(Stubborn(lambda _: [Say("Hi.")], warm_state=WarmState.COLD))) as stage:
        events = await take_turn(stage.start(), "A room?")
    assert payloads(events, TurnFinal)


async def test_an_observer_that_exits_harms_no_commit() -> None:
    def observe(_: object) -> None:
        raise SystemExit(3)

    async with open_stage(inn(quiet_model()), observe=observe) as stage:
        session = stage.start()
        for _ in range(2):
            events = await take_turn(session, "Hello?", TurnParams(workload="neighbour"))
            assert only(events, CommitFinal).commit_outcome is CommitOutcome.OK


# -- a deadline of the driver's own that expires while somebody else runs


class Deadlined(ScriptedModel):
    """A driver with a deadline around its `yield`: it expires in the generator actor, which waits for others."""

    def __init__(self, clock: MockClock) -> None:
        super().__init__(lambda _: ())
        self._clock = clock

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
        with trio.fail_after(0.01):
            for word in range(100):
                self._clock.jump(0.001)
                yield f"{word} "


async def test_a_driver_that_runs_out_of_its_own_time_commits_nothing(quiet_clock: MockClock) -> None:
    async with open_stage(inn(Deadlined(quiet_clock))) as stage:
        events: list[StreamEvent] = await take_turn(stage.start(), "A room?")
    assert only(events, TurnInterrupted).reason is InterruptReason.MODEL_ERROR
    assert only(events, CommitFinal).commit_outcome is CommitOutcome.FAIL_CLOSED
