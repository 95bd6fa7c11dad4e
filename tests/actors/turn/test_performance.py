"""Performance: a turn ends exactly once, however its actors fail, and other turns are not affected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from attrs import evolve

from footlights import (
    BusyRule,
    CommitFinal,
    CommitOutcome,
    EventType,
    Intent,
    IntentType,
    InterruptReason,
    InvalidEvent,
    MemoryLedger,
    ModelChoice,
    SessionParams,
    StreamEvent,
    ToolCallResult,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    draft_event,
    open_stage,
)
from footlights.testing import only, take_turn
from footlights.testing.faults import failing_model, slow_tool
from footlights_actors import Call, Line, Pause, Say, ScriptedModel, standard_cast
from footlights_actors.tool_runner import ToolRunner
from tests.kit.failures import failed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from trio.testing import MockClock

    from footlights import InteractionContext, Prompt


class Works:
    """A workload made of one function."""

    def __init__(self, run: Callable[[InteractionContext], Awaitable[None]]) -> None:
        self._run = run

    async def run(self, context: InteractionContext) -> None:
        await self._run(context)


async def worked(run: Callable[[InteractionContext], Awaitable[None]]) -> list[StreamEvent]:
    async with open_stage(standard_cast(workloads={"own": Works(run)})) as stage:
        return await take_turn(stage.start(), "Hello?", TurnParams(workload="own"))


# -- an actor that dies


async def test_a_choice_of_a_model_that_is_not_there_is_an_error_of_the_model() -> None:
    cast = standard_cast(ScriptedModel(lambda _: [Say("Hello.")]))
    async with open_stage(evolve(cast, choose_model=lambda params: ModelChoice("nobody", "a mistake"))) as stage:
        events = await take_turn(stage.start(), "Hello?")
    assert only(events, TurnInterrupted).reason is InterruptReason.MODEL_ERROR
    assert only(events, CommitFinal).commit_outcome is CommitOutcome.FAIL_CLOSED


async def test_an_actor_with_a_bug_of_its_own_takes_only_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*arguments: object) -> None:
        await trio.lowlevel.checkpoint()
        raise ZeroDivisionError

    def script(prompt: Prompt) -> list[Line]:
        return [Say("Wait."), Call("slow")]

    monkeypatch.setattr(ToolRunner, "run", broken)
    async with open_stage(standard_cast(ScriptedModel(script), tools=[slow_tool(0, "slow")])) as stage:
        events = await take_turn(stage.start(), "Hello?")
    assert only(events, TurnInterrupted).reason is InterruptReason.WORKLOAD_ERROR
    assert only(events, TurnInterrupted).detail == "ZeroDivisionError"


async def test_tasks_are_named_and_cancels_carry_a_reason(quiet_clock: MockClock) -> None:
    names: list[str] = []
    reasons: list[str] = []

    async def run(context: InteractionContext) -> None:
        nursery = trio.lowlevel.current_task().parent_nursery
        assert nursery is not None
        names.extend(task.name for task in nursery.child_tasks)
        try:
            await trio.sleep_forever()
        except trio.Cancelled as cancelled:
            reasons.append(str(cancelled))
            raise

    async with open_stage(standard_cast(workloads={"own": Works(run)})) as stage:
        session = stage.start()
        turn_id = session.begin_turn("Hello?", TurnParams(workload="own"))
        await trio.testing.wait_all_tasks_blocked()
        session.cancel(turn_id)
        await session.finalize(turn_id).wait()
    assert names == [f"turn {turn_id}"]
    assert "canceled" in reasons[0]


async def test_a_turn_that_dies_takes_no_neighbour_with_it(quiet_clock: MockClock) -> None:
    good = ScriptedModel(lambda _: [Say("one"), Pause(5), Say(" two")])
    bad = failing_model(ScriptedModel(lambda _: [Say("Oh"), Pause(1), Say(" no")], model_id="bad"), after_tokens=2)
    async with open_stage(standard_cast(good, bad)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            neighbour = session.begin_turn("Hello?")
            dying = session.begin_turn("Hello?", TurnParams(model="bad", busy=BusyRule.CONCURRENT))
            events = [event async for event in stream.until_commit(neighbour)]
    own = [event for event in events if event.turn_id == neighbour]
    assert only(own, TurnFinal).text == "one two"
    assert only([event for event in events if event.turn_id == dying], TurnInterrupted).reason == "model_error"


# -- workloads


async def test_a_workload_runs_in_the_place_of_the_model(quiet_clock: MockClock) -> None:
    async def run(context: InteractionContext) -> None:
        context.emit_event(draft_event("token_delta", {"delta": f"You said: {context.input}"}))
        await trio.sleep(1)

    events = await worked(run)
    assert [event.event_type for event in events] == [
        EventType.TURN_ACCEPTED,
        EventType.TOKEN_DELTA,
        EventType.TURN_FINAL,
        EventType.COMMIT_FINAL,
    ]
    assert only(events, TurnFinal).text == "You said: Hello?"


async def test_a_workload_that_raises_ends_its_turn_and_is_quoted_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    async def run(context: InteractionContext) -> None:
        await trio.lowlevel.checkpoint()
        raise LookupError(context.input)

    events = await worked(run)
    assert only(events, TurnInterrupted) == failed(InterruptReason.WORKLOAD_ERROR, "LookupError")
    assert "LookupError" in caplog.text
    assert "Hello?" not in caplog.text


async def test_a_tool_that_a_workload_leaves_open_is_reported_before_the_turn_ends() -> None:
    async def run(context: InteractionContext) -> None:
        context.emit_event(draft_event("tool_call_started", {"tool_call_id": "mine", "tool_name": "hammer"}))
        await trio.lowlevel.checkpoint()

    events = await worked(run)
    assert only(events, ToolCallResult) == ToolCallResult(
        "mine", "hammer", canceled=True, side_effects_may_have_occurred=True
    )
    assert only(events, TurnInterrupted) == failed(InterruptReason.WORKLOAD_ERROR, "tool_left_open")


async def test_a_workload_that_fails_with_a_tool_open_reports_it_too() -> None:
    async def run(context: InteractionContext) -> None:
        context.emit_event(draft_event("tool_call_started", {"tool_call_id": "mine", "tool_name": "hammer"}))
        await trio.lowlevel.checkpoint()
        raise LookupError

    events = await worked(run)
    assert only(events, ToolCallResult).canceled
    assert only(events, TurnInterrupted) == failed(InterruptReason.WORKLOAD_ERROR, "LookupError")


@pytest.mark.parametrize("loading", [False, True])
async def test_a_workload_that_never_readies_the_model_it_selected_has_failed(loading: bool) -> None:
    async def run(context: InteractionContext) -> None:
        context.emit_event(draft_event("model_selected", {"model_id": "mine", "reason": "because"}))
        if loading:
            context.emit_event(draft_event("model_loading", {"model_id": "mine", "cold_start": True}))
        await trio.lowlevel.checkpoint()

    events = await worked(run)
    assert only(events, TurnInterrupted) == failed(InterruptReason.WORKLOAD_ERROR, "model_not_ready")


async def test_a_workload_that_learns_of_its_cancel_may_return_normally(quiet_clock: MockClock) -> None:
    learned: list[bool] = []

    async def run(context: InteractionContext) -> None:
        await context.await_cancel()
        learned.append(context.is_canceled())

    async with open_stage(standard_cast(workloads={"own": Works(run)})) as stage:
        session = stage.start()
        turn_id = session.begin_turn("Hello?", TurnParams(workload="own"))
        await trio.sleep(1)
        session.cancel()
        assert (await session.finalize(turn_id).wait()).commit_outcome is CommitOutcome.FAIL_CLOSED
    assert learned == [True]


async def test_a_forged_event_reaches_no_subscriber() -> None:
    async def run(context: InteractionContext) -> None:
        await trio.lowlevel.checkpoint()
        with pytest.raises(InvalidEvent):
            context.emit_event(draft_event("turn_final", {"text": "The end.", "authoritative": False}))

    events = await worked(run)
    assert only(events, TurnFinal).text == ""


# -- before it begins, and worse than an exception


async def test_a_turn_that_was_cancelled_before_it_ran_never_runs() -> None:
    began: list[str] = []

    async def run(context: InteractionContext) -> None:
        began.append(context.turn_id)
        await trio.lowlevel.checkpoint()

    async with open_stage(standard_cast(workloads={"own": Works(run)})) as stage:
        session = stage.start()
        turn_id = session.begin_turn("Hello?", TurnParams(workload="own"))
        session.cancel(turn_id)
        await session.finalize(turn_id).wait()
    assert began == []


async def test_no_turn_is_committed_when_the_program_is_torn_down(quiet_clock: MockClock) -> None:
    async def run(context: InteractionContext) -> None:
        context.request_commit(Intent(IntentType.DECISION, "half of what I want"))
        await trio.sleep(1)
        if context.input == "die":
            raise KeyboardInterrupt
        await trio.sleep(1)
        context.request_commit(Intent(IntentType.DECISION, "the other half"))

    ledger = MemoryLedger()
    params = TurnParams(workload="own", busy=BusyRule.CONCURRENT)
    turn_ids: list[str] = []

    async def host() -> None:
        async with open_stage(standard_cast(workloads={"own": Works(run)}), ledger=ledger) as stage:
            session = stage.start(SessionParams(session_id="torn"))
            turn_ids.extend(session.begin_turn(said, params) for said in ("die", "live"))
            await trio.sleep_forever()

    with pytest.raises(BaseExceptionGroup) as caught:
        await host()
    assert caught.group_contains(KeyboardInterrupt)
    records = [await ledger.find("torn", turn_id) for turn_id in turn_ids]
    assert all(record is None or record.outcome is CommitOutcome.FAIL_CLOSED for record in records)
