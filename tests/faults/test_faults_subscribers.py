"""Subscribers that stall or vanish affect no other, and the faulty ledger fails only when a test says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from footlights import (
    BudgetConfig,
    Detached,
    DetachReason,
    EventType,
    LedgerUnavailable,
    Limits,
    MemoryLedger,
    StreamEvent,
    TokenDelta,
    open_stage,
)
from footlights.authority import CommitRecord, JsonWorld, JudgeRequest, RuleBook, ToolRecord, ToolState, judge
from footlights.testing import payloads, take_turn
from footlights.testing.faults import FlakyLedger, flooding_model, stalled_subscriber, vanishing_subscriber
from footlights_actors import Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from trio.testing import MockClock

    from footlights import InteractionSession


def text_of(events: list[StreamEvent]) -> str:
    return "".join(payload.delta for payload in payloads(events, TokenDelta))


# -- subscribers


@pytest.mark.shows("core-69")
async def test_a_stalled_subscriber_costs_no_more_than_its_limits_and_slows_no_other() -> None:
    model = flooding_model(ScriptedModel(lambda _: [Say("The end.")]), tokens=10_000, token="blah ")
    limits = Limits(best_effort_max_events_per_turn=100)  # more than two bursts of a model that never waits
    cast = standard_cast(model, budget=BudgetConfig(dialogue_max=20_000))
    async with open_stage(cast, limits=limits) as stage:
        session = stage.start()
        async with stalled_subscriber(session) as stalled:
            events = await take_turn(session, "Hello?")
            waiting = stalled.statistics()
    assert text_of(events) == "blah " * 10_000 + "The end."
    assert waiting.best_effort_waiting == 100
    assert waiting.best_effort_dropped == 10_002 - 100
    assert waiting.must_deliver_waiting == 3


async def test_a_stalled_subscriber_is_let_go_and_may_resume(quiet_clock: MockClock) -> None:
    model = ScriptedModel(lambda _: [Say("one two three")], pace=3)
    async with open_stage(standard_cast(model), limits=Limits(stall_detach=4)) as stage:
        session = stage.start()
        async with stalled_subscriber(session) as stalled:
            await take_turn(session, "Hello?")
            with pytest.raises(Detached) as caught:
                await anext(stalled)
        assert caught.value.reason == DetachReason.STALLED
        async with session.subscribe(after=stalled.cursor) as resumed:
            events = await resumed.receive_batch()
    assert text_of(events) == "one two three"
    assert events[-1].event_type is EventType.COMMIT_FINAL


@pytest.mark.parametrize("after_events", [0, 1, 3])
async def test_a_subscriber_that_vanishes_is_not_a_cancel_and_can_come_back(
    quiet_clock: MockClock, after_events: int
) -> None:
    model = ScriptedModel(lambda _: [Say("one two three")], pace=1)
    taken: list[StreamEvent] = []

    async def vanish(session: InteractionSession, task_status: trio.TaskStatus[None]) -> None:
        taken.extend(await vanishing_subscriber(session, after_events, task_status))

    async with open_stage(standard_cast(model)) as stage, trio.open_nursery() as nursery:
        session = stage.start()
        await nursery.start(vanish, session)
        events = await take_turn(session, "Hello?")
        assert len(taken) == after_events
        assert session.statistics().subscribers == ()
        cursor = {event.turn_id: event.seq for event in taken}
        async with session.subscribe(after=cursor) as resumed:
            rest = await resumed.receive_batch()
    assert text_of(taken + rest) == text_of(events) == "one two three"
    assert [event.event_type for event in rest[-2:]] == [EventType.TURN_FINAL, EventType.COMMIT_FINAL]


# -- the ledger

WORLD = JsonWorld({})


def commit(turn_id: str, previous: str | None = None) -> CommitRecord:
    return judge(JudgeRequest("s", turn_id, None), WORLD, RuleBook(), previous).record


async def test_a_flaky_ledger_refuses_the_chosen_appends_and_keeps_the_others() -> None:
    ledger = FlakyLedger(MemoryLedger(), failing_appends={2})
    first = commit("t1")
    await ledger.append([first], WORLD)
    second = commit("t2", first.commit_digest)
    with pytest.raises(LedgerUnavailable):
        await ledger.append([second], WORLD)
    assert await ledger.find("s", "t2") is None
    assert await ledger.last_digests(["s"]) == {"s": first.commit_digest}
    await ledger.append([second], WORLD)
    assert await ledger.find("s", "t2") == second
    assert ledger.appends == 3


async def test_an_unavailable_ledger_writes_nothing_until_it_is_back() -> None:
    ledger = FlakyLedger(MemoryLedger())
    assert (await ledger.begin_epoch(WORLD)).epoch == 1
    await ledger.begin_tool("a")
    ledger.available = False
    for write in (ledger.append([commit("t1")], WORLD), ledger.begin_tool("b"), ledger.complete_tool("a", "ok")):
        with pytest.raises(LedgerUnavailable):
            await write
    ledger.available = True
    assert await ledger.begin_tool("b") is None
    assert await ledger.begin_tool("a") == ToolRecord("a", ToolState.STARTED)


async def test_a_slow_ledger_takes_its_time_and_a_cancelled_write_has_no_effect(quiet_clock: MockClock) -> None:
    ledger = FlakyLedger(MemoryLedger(), delay=5)
    with trio.move_on_after(4):
        await ledger.append([commit("t1")], WORLD)
    assert await ledger.last_digests(["s"]) == {}
    await ledger.append([commit("t1")], WORLD)
    assert (await ledger.last_digests(["s"])).keys() == {"s"}
    assert trio.current_time() == pytest.approx(9)
