"""Watchdog: no turn is silent or runs for longer than its limits, and no turn within them is interrupted."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from attrs import evolve

from footlights import (
    BusyRule,
    InterruptReason,
    Limits,
    StreamEvent,
    ToolCallResult,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    WarmState,
    draft_event,
    open_stage,
)
from footlights.failure_texts import known
from footlights.testing import only, payloads, take_turn
from footlights.testing.faults import deaf_tool, hanging_tool, stalling_load, stalling_model
from footlights_actors import Call, Pause, Say, ScriptedModel, Stall, standard_cast

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from trio.testing import MockClock

    from footlights import Cast, InteractionContext, Model, Output, Prompt, Tool

LIMITS = Limits(load_timeout=50, stall_timeout=10, turn_timeout=100, tool_cancel_grace=0.25)


async def played(cast: Cast, params: TurnParams | None = None) -> list[StreamEvent]:
    async with open_stage(cast, limits=LIMITS) as stage:
        return await take_turn(stage.start(), "Hello?", params)


def ending(events: list[StreamEvent]) -> tuple[InterruptReason | None, float]:
    """Why the turn ended early, if it did, and after how many seconds."""
    reasons = [payload.reason for payload in payloads(events, TurnInterrupted)]
    return reasons[0] if reasons else None, (events[-2].mono_ts_ms - events[0].mono_ts_ms) / 1000


def hello(pace: float = 0.0) -> ScriptedModel:
    return ScriptedModel(lambda _: [Say("one two three")], pace=pace)


@pytest.mark.parametrize(
    ("model", "after", "code"),
    [
        (stalling_model(hello(), after_tokens=2), 10, "stall_timeout"),
        (stalling_load(hello()), 50, "load_timeout"),
    ],
    ids=["generating", "loading"],
)
async def test_a_model_that_is_silent_too_long_ends_its_turn(
    quiet_clock: MockClock, model: Model, after: float, code: str
) -> None:
    events = await played(standard_cast(model))
    assert ending(events) == (InterruptReason.STALLED, after)
    assert only(events, TurnInterrupted).error == known(code)


async def test_a_load_may_be_held_to_less_time_than_silence(quiet_clock: MockClock) -> None:
    limits = evolve(LIMITS, load_timeout=4)
    slow_choice = ScriptedModel(lambda _: [Say("Hello.")], warm_state=WarmState.COLD, load_seconds=45, load_steps=1)
    async with open_stage(standard_cast(slow_choice), limits=limits) as stage:
        events = await take_turn(stage.start(), "Hello?")
    assert ending(events) == (InterruptReason.STALLED, 4)


async def test_a_model_that_took_long_to_load_may_be_silent_no_longer_than_any_other(quiet_clock: MockClock) -> None:
    slow = ScriptedModel(lambda _: [Stall()], warm_state=WarmState.COLD, load_seconds=45, load_steps=1)
    assert ending(await played(standard_cast(slow))) == (InterruptReason.STALLED, 45 + 10)


async def test_a_sign_of_life_is_not_silence_and_is_not_said(quiet_clock: MockClock) -> None:
    class Thinking(ScriptedModel):
        async def generate(self, prompt: Prompt) -> AsyncGenerator[Output, None]:
            for _ in range(5):
                await trio.sleep(9)
                yield ""
            yield "Hm."

    events = await played(standard_cast(Thinking(lambda _: [])))
    assert only(events, TurnFinal) == TurnFinal("Hm.", output_tokens=1)


@pytest.mark.parametrize("tool", [hanging_tool("tool"), deaf_tool(60, "tool")], ids=["hanging", "deaf"])
async def test_a_tool_that_is_silent_too_long_ends_its_turn_after_its_grace(quiet_clock: MockClock, tool: Tool) -> None:
    events = await played(standard_cast(ScriptedModel(lambda _: [Call("tool")]), tools=[tool]))
    assert ending(events) == (InterruptReason.STALLED, 10.25)
    assert [result.canceled for result in payloads(events, ToolCallResult)] == [True]


async def test_a_workload_is_watched_like_a_model(quiet_clock: MockClock) -> None:
    class Silent:
        async def run(self, context: InteractionContext) -> None:
            await trio.sleep(5)
            context.emit_event(draft_event("token_delta", {"delta": "Hm."}))
            await trio.sleep_forever()

    events = await played(standard_cast(workloads={"silent": Silent()}), TurnParams(workload="silent"))
    assert ending(events) == (InterruptReason.STALLED, 15)


async def test_every_sign_of_life_counts(quiet_clock: MockClock) -> None:
    events = await played(standard_cast(hello(pace=9.9)))
    assert only(events, TurnFinal).text == "one two three"


async def test_load_progress_is_a_sign_of_life(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [], warm_state=WarmState.COLD, load_seconds=60, load_steps=10)
    assert ending(await played(standard_cast(model))) == (None, 60)


async def test_who_waits_for_a_load_that_is_under_way_is_not_stalled(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [], warm_state=WarmState.COLD, load_seconds=60, load_steps=10)
    async with open_stage(standard_cast(model), limits=LIMITS) as stage:
        first, second = stage.start(), stage.start()
        handles = [session.finalize(session.begin_turn("Hello?")) for session in (first, second)]
        assert [(await handle.wait()).commit_outcome.value for handle in handles] == ["ok", "ok"]


async def test_a_turn_that_runs_too_long_is_ended_however_lively(quiet_clock: MockClock) -> None:
    talk = ScriptedModel(lambda _: [Say("blah " * 1000)], pace=1)
    assert ending(await played(standard_cast(talk))) == (InterruptReason.TIMEOUT, 100)


async def test_a_turn_is_not_blamed_for_the_time_it_waited_in_the_queue(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [Say("a "), Pause(9), Say("b "), Pause(9), Say("c")])
    async with open_stage(standard_cast(model), limits=LIMITS) as stage:
        session = stage.start()
        session.begin_turn("First.")
        events = await take_turn(session, "Second.")
    assert only(events, TurnFinal).text == "a b c"
    assert trio.current_time() == pytest.approx(36)


async def test_the_end_of_one_turn_is_not_the_end_of_its_neighbour(quiet_clock: MockClock) -> None:
    cast = standard_cast(hello(pace=8), stalling_model(ScriptedModel(lambda _: [], model_id="mute"), after_tokens=0))
    async with open_stage(cast, limits=LIMITS) as stage:
        session = stage.start()
        mute = session.begin_turn("Hello?", TurnParams(model="mute"))
        neighbour = session.begin_turn("Hello?", TurnParams(busy=BusyRule.CONCURRENT))
        assert (await session.finalize(mute).wait()).commit_outcome == "fail_closed"
        assert (await session.finalize(neighbour).wait()).commit_outcome == "ok"


async def test_a_turn_that_ends_in_time_leaves_no_watchdog_behind(quiet_clock: MockClock) -> None:
    began = trio.current_time()
    assert ending(await played(standard_cast(hello()))) == (None, 0)
    assert trio.current_time() == began


async def test_who_begins_while_a_stopped_turn_still_cleans_up_is_watched_too(quiet_clock: MockClock) -> None:
    class Slow:
        async def run(self, context: InteractionContext) -> None:
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.sleep(20)

    cast = standard_cast(stalling_model(hello(), after_tokens=0), workloads={"slow": Slow()})
    async with open_stage(cast, limits=LIMITS) as stage:
        slow, session = stage.start(), stage.start()
        turn_id = slow.begin_turn("Hello?", TurnParams(workload="slow"))
        await slow.finalize(turn_id).wait()
        assert ending(await take_turn(session, "Hello?")) == (InterruptReason.STALLED, 10)


async def test_a_watchdog_without_any_patience_still_lets_others_run(quiet_clock: MockClock) -> None:
    class Loading:
        async def run(self, context: InteractionContext) -> None:
            context.emit_event(draft_event("model_selected", {"model_id": "m", "reason": "default"}))
            await trio.lowlevel.checkpoint()
            context.emit_event(draft_event("model_ready", {"model_id": "m", "warm_state": "hot", "load_ms": 0}))

    cast = standard_cast(workloads={"loading": Loading()})
    async with open_stage(cast, limits=Limits(stall_timeout=0)) as stage:
        events = await take_turn(stage.start(), "Hello?", TurnParams(workload="loading"))
    assert ending(events)[0] in {None, InterruptReason.STALLED}


async def test_a_turn_that_has_ended_is_not_kept_by_its_watchdog(quiet_clock: MockClock) -> None:
    gone: list[str] = []

    class Remembered:
        async def run(self, context: InteractionContext) -> None:
            turn = context._turn  # pyright: ignore[reportPrivateUsage]
            weakref.finalize(turn, gone.append, turn.turn_id)

    cast = standard_cast(stalling_model(hello(), after_tokens=0), workloads={"remembered": Remembered()})
    async with open_stage(cast, limits=evolve(LIMITS, replay_turns=0)) as stage:
        stage.start().begin_turn("Hello?")
        session = stage.start()
        turn_ids = [session.begin_turn("Hello?", TurnParams(workload="remembered")) for _ in range(3)]
        await session.finalize(turn_ids[-1]).wait()
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        assert gone[:2] == turn_ids[:2]  # the committer has the last one in hand until the next comes
