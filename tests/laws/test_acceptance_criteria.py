"""The nine acceptance criteria of the stream events requirements, one test each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from footlights import (
    CommitFinal,
    CommitOutcome,
    EventType,
    Intent,
    IntentType,
    InteractionContext,
    InterruptReason,
    Limits,
    MemoryLedger,
    ModelLoading,
    StreamEvent,
    TokenDelta,
    Tool,
    ToolContext,
    ToolReturn,
    TurnInterrupted,
    TurnParams,
    WarmState,
    draft_event,
    open_stage,
)
from footlights.authority import patch, recompute_digest
from footlights.authority.rules import Ruling, accept, refuse
from footlights.testing import only, payloads, take_turn
from footlights_actors import Call, Flood, Line, Say, ScriptedModel, standard_cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio.testing import MockClock

    from footlights import Cast, Prompt
    from footlights.events import JsonValue

ET = EventType
MUST_DELIVER = [ET.TURN_ACCEPTED, ET.TURN_FINAL, ET.COMMIT_FINAL]


async def rent(arguments: Mapping[str, JsonValue], context: ToolContext) -> ToolReturn:
    await trio.sleep(0.2)
    context.request_commit(Intent(IntentType.TOOL_RESULT, "rent", arguments.get("room")))
    return ToolReturn({"ok": True}, "The room is yours.")


def rooms(world: dict[str, str], intents: tuple[Intent, ...]) -> Ruling:
    wanted = [str(intent.payload) for intent in intents if intent.ref == "rent"]
    taken = [room for room in wanted if world.get(room) != "free"]
    if taken:
        return refuse("room_taken", "That room is not free.", "rent")
    return accept(*(patch.replace(f"/{room}", "taken") for room in wanted))


def inn(*, cold: bool = False, room: str = "attic") -> Cast:
    def script(prompt: Prompt) -> list[Line]:
        return (
            [Say("Let me see what I have."), Call("rent", {"room": room})] if not prompt.exchanges else [Say(" Done.")]
        )

    model = ScriptedModel(
        script, pace=0.01, warm_state=WarmState.COLD if cold else WarmState.HOT, load_seconds=1.0, load_steps=4
    )
    world: dict[str, JsonValue] = {"attic": "free", "cellar": "taken"}
    return standard_cast(model, tools=[Tool(name="rent", run=rent)], world=world, rules={"rooms": rooms})


def types(events: list[StreamEvent]) -> list[EventType]:
    return [event.event_type for event in events]


@pytest.mark.shows("core-1", "core-15", "core-44", "core-78")
async def test_1_client_receives_immediate_turn_accepted_and_subsequent_lifecycle_events(
    quiet_clock: MockClock,
) -> None:
    async with open_stage(inn(cold=True)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            before = trio.current_time()
            turn_id = session.begin_turn("A room?")
            first = await anext(stream)
            assert first.event_type is ET.TURN_ACCEPTED
            assert trio.current_time() == before, "accepted in the same instant, before any model was loaded"
            rest = [event async for event in stream.until_commit(turn_id)]
        order = list(dict.fromkeys(types(rest)))
        assert order == [
            ET.MODEL_SELECTED,
            ET.MODEL_LOADING,
            ET.MODEL_READY,
            ET.TOKEN_DELTA,
            ET.TOOL_CALL_STARTED,
            ET.TOOL_CALL_RESULT,
            ET.TURN_FINAL,
            ET.COMMIT_FINAL,
        ]


@pytest.mark.shows("core-16", "core-29", "core-30", "core-79")
async def test_2_cancel_stops_generation_and_emits_a_deterministic_interruption(quiet_clock: MockClock) -> None:
    async def interrupted() -> list[EventType]:
        async with open_stage(inn()) as stage:
            session = stage.start()
            async with session.subscribe() as stream:
                turn_id = session.begin_turn("A room?")
                seen: list[StreamEvent] = []
                async for event in stream.until_commit(turn_id):
                    seen.append(event)
                    if event.seq == 4:
                        assert session.cancel(turn_id) == (turn_id,)
                        at = trio.current_time()
                assert trio.current_time() == at, "nothing waited for the model"
        assert only(seen, TurnInterrupted).reason is InterruptReason.CANCELED
        return types(seen)

    assert await interrupted() == await interrupted()


@pytest.mark.shows("feed-17", "core-25", "core-28", "core-42", "core-80")
async def test_3_no_world_state_mutation_from_partial_streamed_output(quiet_clock: MockClock) -> None:
    async with open_stage(inn()) as stage:
        session = stage.start()
        before = stage.world
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("A room?")
            async for event in stream.until_commit(turn_id):
                if event.event_type is not ET.COMMIT_FINAL:
                    assert stage.world == before
                if event.event_type is ET.TOOL_CALL_RESULT:
                    session.cancel(turn_id)
        assert stage.world == before, "an interrupted turn commits nothing, though its tool had succeeded"


@pytest.mark.shows("core-2", "core-22", "core-63", "core-81")
async def test_4_finalized_turn_commits_with_provenance_and_fails_closed(quiet_clock: MockClock) -> None:
    ledger = MemoryLedger()
    async with open_stage(inn(), ledger=ledger) as stage:
        session = stage.start()
        turns = [await take_turn(session, "A room?") for _ in range(2)]
        accepted, refused = (only(events, CommitFinal) for events in turns)
        assert accepted.commit_outcome is CommitOutcome.OK
        assert stage.world == {"attic": "taken", "cellar": "taken"}
        assert refused.commit_outcome is CommitOutcome.FAIL_CLOSED
        assert [issue.code for issue in refused.issues] == ["room_taken"]

        first, second = [await ledger.find(session.session_id, events[0].turn_id) for events in turns]
        assert first is not None
        assert second is not None
        assert recompute_digest(first) == accepted.commit_digest
        assert recompute_digest(second) == refused.commit_digest
        assert (first.previous, second.previous) == (None, accepted.commit_digest)


@pytest.mark.shows("core-48", "core-50", "core-82")
async def test_5_extension_workload_participates_without_internal_apis(quiet_clock: MockClock) -> None:
    class Fortune:
        async def run(self, context: InteractionContext) -> None:
            ext: JsonValue = {"namespace": "ext.acme.fortune", "data": {"card": "The Tower"}}
            context.emit_event(draft_event("token_delta", {"delta": f"You asked: {context.input}", "ext": ext}))
            context.request_commit(Intent(IntentType.DECISION, "told"))
            assert not context.is_canceled()
            await trio.sleep(0.1)

    def told(world: dict[str, int], intents: tuple[Intent, ...]) -> Ruling:
        return accept(patch.replace("/told", world["told"] + len(intents)))

    cast = standard_cast(workloads={"fortune": Fortune()}, world={"told": 0}, rules={"told": told})
    async with open_stage(cast) as stage:
        session = stage.start()
        events = await take_turn(session, "Will it rain?", TurnParams(workload="fortune"))
        assert types(events) == [ET.TURN_ACCEPTED, ET.TOKEN_DELTA, ET.TURN_FINAL, ET.COMMIT_FINAL]
        assert stage.world == {"told": 1}


@pytest.mark.shows("core-70", "core-75", "core-83")
async def test_6_must_deliver_events_arrive_in_order_under_a_tiny_buffer(quiet_clock: MockClock) -> None:
    tiny = Limits(best_effort_max_events_per_turn=1, bounded_max_events_per_turn=1, max_bytes_per_turn_queue=1)
    async with open_stage(inn(cold=True), limits=tiny) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("A room?")
            await session.finalize(turn_id).wait()
            events = [event async for event in stream.until_commit(turn_id)]
    assert [event.event_type for event in events if event.event_type in MUST_DELIVER] == MUST_DELIVER
    seqs = [event.seq for event in events]
    assert seqs == sorted(set(seqs))


@pytest.mark.shows("core-13", "core-74", "core-77", "core-84")
async def test_7_dropped_deltas_are_declared(quiet_clock: MockClock) -> None:
    cast = standard_cast(ScriptedModel(lambda prompt: [Flood("x", 100), Say("end")]))
    async with open_stage(cast, limits=Limits(best_effort_max_events_per_turn=10)) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("Talk.")
            await session.finalize(turn_id).wait()
            events = [event async for event in stream.until_commit(turn_id)]
            assert stream.statistics().best_effort_dropped == 101 - 10
    got = {event.seq for event in events}
    declared = [r for event in events for r in event.payload.dropped_seq_ranges]
    missing = {seq for r in declared for seq in range(r.start_seq, r.end_seq + 1)}
    assert got | missing == set(range(events[-1].seq + 1))
    assert not got & missing
    text = "".join(payload.delta for payload in payloads(events, TokenDelta))
    assert text == "x" * 10, "what fits is joined, not lost"


@pytest.mark.shows("core-6", "core-10", "core-85")
async def test_8_mono_ts_ms_is_non_decreasing_while_ordering_stays_seq_based(quiet_clock: MockClock) -> None:
    async with open_stage(inn(cold=True)) as stage:
        events = await take_turn(stage.start(), "A room?")
    stamps = [event.mono_ts_ms for event in events]
    assert stamps == sorted(stamps)
    assert len(set(stamps)) < len(stamps), "several events share a stamp: only seq tells them apart"
    assert [event.seq for event in events] == list(range(len(events)))


@pytest.mark.shows("core-68", "core-86")
async def test_9_model_loading_is_emitted_within_50_ms_of_selection(quiet_clock: MockClock) -> None:
    async with open_stage(inn(cold=True)) as stage:
        events = await take_turn(stage.start(), "A room?")
    selected = next(event for event in events if event.event_type is ET.MODEL_SELECTED)
    loading = next(event for event in events if event.event_type is ET.MODEL_LOADING)
    assert payloads(events, ModelLoading)[0].cold_start
    assert loading.mono_ts_ms == selected.mono_ts_ms, "on the virtual clock: no time at all"
    ready = next(event for event in events if event.event_type is ET.MODEL_READY)
    assert ready.mono_ts_ms - loading.mono_ts_ms == 1000
