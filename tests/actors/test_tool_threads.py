"""Tools that are plain functions run in threads; and tools of every kind, cancelled at every point."""

from __future__ import annotations

import sys
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from footlights import (
    CommitOutcome,
    EventType,
    Intent,
    IntentType,
    InterruptReason,
    MemoryLedger,
    SideEffects,
    StreamEvent,
    Tool,
    ToolCallResult,
    ToolCallStarted,
    ToolContext,
    ToolError,
    TurnFinal,
    TurnInterrupted,
    open_stage,
    tool,
)
from footlights.authority import ToolRecord, ToolState, accept, patch
from footlights.testing import Gate, cancel_everywhere, only, payloads, take_turn
from footlights.tools import decorator as tool_decorator
from footlights_actors import Call, Say, ScriptedModel, standard_cast
from tests.kit.failures import failed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trio.testing import MockClock

    from footlights import Cast, Ledger, Prompt
    from footlights.authority import Ruling
    from footlights.testing import Trial
    from footlights_actors import Line

GRACE = 0.25


def count_results(world: dict[str, int], intents: tuple[Intent, ...]) -> Ruling:
    return accept(patch.replace("/results", world["results"] + len(intents))) if intents else accept()


def cast_asking_for(*tools: Tool) -> Cast:
    """All of them at once, and then tells what came back."""

    def script(prompt: Prompt) -> Sequence[Line]:
        if not prompt.exchanges:
            return [Call(each.name) for each in tools]
        return [Say("; ".join(each.error or str(each.value) for each in prompt.exchanges))]

    return standard_cast(
        ScriptedModel(script), tools=tools, world={"results": 0}, rules={"count_results": count_results}
    )


async def played(*tools: Tool, ledger: Ledger | None = None) -> list[StreamEvent]:
    async with open_stage(cast_asking_for(*tools), ledger=ledger) as stage:
        return await take_turn(stage.start(), "Do it.")


def stage_one(context: ToolContext) -> None:
    context.request_commit(Intent(IntentType.TOOL_RESULT, context.tool_call_id))


# -- in a thread

GUEST: ContextVar[str] = ContextVar("GUEST")


async def test_a_plain_function_runs_in_a_thread_of_the_tools_with_the_context_of_its_turn(
    quiet_clock: MockClock,
) -> None:
    loop = threading.get_ident()

    @tool(side_effects=SideEffects.NONE)
    def look() -> dict[str, object]:
        borrowed = trio.from_thread.run_sync(lambda: trio.to_thread.current_default_thread_limiter().borrowed_tokens)
        return {
            "elsewhere": threading.get_ident() != loop,
            "guest": GUEST.get(),
            "name": threading.current_thread().name,
            "borrowed": borrowed,
        }

    GUEST.set("Mirel")
    events = await played(look)
    seen = {"elsewhere": True, "guest": "Mirel", "name": "tool look", "borrowed": 0}
    assert only(events, TurnFinal).text == str(seen)


async def test_a_thread_may_read_the_world_and_stage_intents(quiet_clock: MockClock) -> None:
    @tool
    def count(context: ToolContext) -> int:
        stage_one(context)
        stage_one(context)
        results: int = context.world["results"]
        return results

    async with open_stage(cast_asking_for(count)) as stage:
        events = await take_turn(stage.start(), "Do it.")
        assert stage.world == {"results": 2}
    assert only(events, TurnFinal).text == "0"


async def test_an_error_of_a_thread_is_reported_like_any_other(quiet_clock: MockClock) -> None:
    @tool
    def refuse() -> None:
        raise ToolError("No room is free.")

    @tool
    def crash() -> None:
        raise ValueError("what the player said")

    assert only(await played(refuse), TurnFinal).text == "No room is free."
    crashed = await played(crash)
    assert only(crashed, TurnInterrupted) == failed(InterruptReason.TOOL_ERROR, "ValueError")


async def test_a_thread_that_wants_to_end_the_program_ends_its_turn(quiet_clock: MockClock) -> None:
    @tool
    def leave() -> None:
        sys.exit("what the player said")

    events = await played(leave)
    assert only(events, TurnInterrupted) == failed(InterruptReason.TOOL_ERROR, "SystemExit")


async def test_a_thread_that_answers_with_a_coroutine_ends_its_turn(quiet_clock: MockClock) -> None:
    async def later() -> None:
        raise AssertionError

    @tool
    def promise() -> object:
        return later()

    events = await played(promise)
    assert only(events, TurnInterrupted) == failed(InterruptReason.TOOL_ERROR, "invalid_registration")


async def test_threads_that_are_too_many_wait_for_their_turn(
    quiet_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_decorator, "MAX_THREADS", 1)
    gate = Gate()
    began: list[str] = []

    @tool
    def first() -> None:
        began.append("first")
        gate.wait()

    @tool
    def second() -> None:
        began.append("second")
        gate.wait()

    async with open_stage(cast_asking_for(first, second)) as stage:
        session = stage.start()
        turn_id = session.begin_turn("Do it.")
        await trio.sleep(1)
        assert len(began) == 1
        gate.open()
        assert (await session.finalize(turn_id).wait()).commit_outcome is CommitOutcome.OK
    assert sorted(began) == ["first", "second"]


# -- a thread cannot be stopped


def waiting_at(gate: Gate, timeout: float | None) -> Tool:
    @tool(timeout=timeout, idempotency_key=lambda _: "key")
    def wait(context: ToolContext) -> str:
        gate.wait()
        stage_one(context)
        return "done"

    return wait


async def test_a_thread_that_takes_too_long_is_answered_and_runs_on_under_the_stage(quiet_clock: MockClock) -> None:
    gate, ledger = Gate(), MemoryLedger()
    async with open_stage(cast_asking_for(waiting_at(gate, 1.0)), ledger=ledger) as stage:
        events = await take_turn(stage.start(), "Do it.")
        assert only(events, TurnFinal).text == "The tool took longer than it may."
        assert stage.statistics().tools_running == 1
        assert await ledger.begin_tool("wait:key") == ToolRecord("wait:key", ToolState.STARTED)
        gate.open()
        await trio.sleep(1)
        assert stage.statistics().tools_running == 0
        assert await ledger.begin_tool("wait:key") == ToolRecord("wait:key", ToolState.OK)
        assert stage.world == {"results": 0}
    assert [result.error and result.error.code for result in payloads(events, ToolCallResult)] == ["tool_timeout"]


async def test_an_interrupted_turn_leaves_its_thread_behind(quiet_clock: MockClock) -> None:
    gate, ledger = Gate(), MemoryLedger()
    async with (
        open_stage(cast_asking_for(waiting_at(gate, None)), ledger=ledger) as stage,
        (session := stage.start()).subscribe() as stream,
    ):
        turn_id = session.begin_turn("Do it.")
        await trio.sleep(1)
        cancelled_at = trio.current_time()
        session.cancel(turn_id)
        events = [event async for event in stream.until_commit(turn_id)]
        assert trio.current_time() - cancelled_at == pytest.approx(GRACE)
        assert stage.statistics().tools_running == 1
        gate.open()
        await trio.sleep(1)
        assert stage.statistics().tools_running == 0
        assert stage.world == {"results": 0}
    result = only(events, ToolCallResult)
    assert (result.canceled, result.side_effects_may_have_occurred) == (True, True)
    assert await ledger.begin_tool("wait:key") == ToolRecord("wait:key", ToolState.OK)


@pytest.mark.parametrize("timeout", [None, 0.5])
@pytest.mark.parametrize("side_effects", [SideEffects.IMMEDIATE, SideEffects.MARKED])
async def test_a_stage_that_closes_leaves_its_threads_behind(
    quiet_clock: MockClock, side_effects: SideEffects, timeout: float | None
) -> None:
    gate, ledger, ended = Gate(), MemoryLedger(), threading.Event()

    @tool(timeout=timeout, side_effects=side_effects, idempotency_key=lambda _: "key")
    def hang(context: ToolContext) -> None:
        gate.wait()
        stage_one(context)
        ended.set()

    async with open_stage(cast_asking_for(hang), ledger=ledger) as stage:
        stage.start().begin_turn("Do it.")
        await trio.sleep(1)
        assert stage.statistics().tools_running == 1
        left_at = trio.current_time()
    assert trio.current_time() - left_at <= GRACE
    assert not ended.is_set()
    gate.open()
    await trio.sleep(1)
    assert ended.is_set()
    assert stage.world == {"results": 0}
    assert await ledger.begin_tool("hang:key") == ToolRecord("hang:key", ToolState.STARTED)


async def test_a_call_whose_time_is_up_while_it_waits_for_a_thread_never_begins(
    quiet_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_decorator, "MAX_THREADS", 1)
    gate = Gate()
    began: list[str] = []

    @tool(timeout=1.0)
    def first() -> None:
        began.append("first")
        gate.wait()

    @tool(timeout=1.0)
    def second() -> None:
        began.append("second")
        gate.wait()

    async with open_stage(cast_asking_for(first, second)) as stage:
        await take_turn(stage.start(), "Do it.")
        assert stage.statistics().tools_running == 1
        gate.open()
        await trio.sleep(1)
        assert stage.statistics().tools_running == 0
    assert len(began) == 1


# -- cancelled everywhere


@tool(cancel_safe=True, side_effects=SideEffects.MARKED, timeout=0.5)
async def quick(context: ToolContext) -> None:
    await trio.sleep(0.02)
    context.begin_side_effects()
    await trio.sleep(0.02)
    stage_one(context)


@tool(timeout=0.05)
async def late(context: ToolContext) -> None:
    stage_one(context)
    await trio.sleep(2)


@tool(timeout=0.05)
async def deaf(context: ToolContext) -> None:
    with trio.CancelScope(shield=True):
        await trio.sleep(0.4)
    stage_one(context)


@tool(timeout=0.5)
def threaded(context: ToolContext) -> None:
    assert context.world == {"results": 0}
    stage_one(context)


@pytest.mark.parametrize(
    "tools",
    [(quick,), (late,), (deaf,), (threaded,), (quick, late, threaded), (deaf, threaded)],
    ids=lambda tools: "-".join(each.name for each in tools),
)
def test_every_call_is_answered_once_wherever_its_turn_is_cancelled(tools: tuple[Tool, ...]) -> None:
    in_time = sum(each.name in ("quick", "threaded") for each in tools)

    async def scenario(trial: Trial) -> None:
        async with (
            open_stage(cast_asking_for(*tools), wall_clock=trio.current_time) as stage,
            (session := stage.start()).subscribe() as stream,
        ):
            turn_id = session.begin_turn("Do it.")
            trial.aim(lambda: session.cancel(turn_id))
            events = [event async for event in stream.until_commit(turn_id)]
            trial.disarm()
            began = {each.tool_call_id for each in payloads(events, ToolCallStarted)}
            assert sorted(each.tool_call_id for each in payloads(events, ToolCallResult)) == sorted(began)
            interrupted = any(event.event_type is EventType.TURN_INTERRUPTED for event in events)
            assert stage.world == {"results": 0 if interrupted else in_time}
            await trio.sleep(5)
            assert stage.statistics().tools_running == 0

    assert cancel_everywhere(scenario, orders=2, pairs=20).points > 10


def test_a_host_that_is_cancelled_anywhere_leaves_no_thread_and_no_task() -> None:
    async def scenario() -> None:
        await played(threaded, late, quick)

    assert cancel_everywhere(scenario, orders=2).points > 10
