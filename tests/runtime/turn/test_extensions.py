"""A workload can stream, ask for commits and learn of a cancel, and cannot do anything else to its stream."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

import pytest
import trio
import trio.testing

from footlights import (
    Busy,
    CommitFinal,
    CommitOutcome,
    EventType,
    Ext,
    ExtensionManager,
    IllegalTransition,
    Intent,
    IntentType,
    InteractionContext,
    InterruptReason,
    InvalidCommand,
    InvalidEvent,
    Limits,
    Payload,
    RegistrationError,
    SeqRange,
    StreamEvent,
    TokenDelta,
    TooLarge,
    ToolCallResult,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    draft_event,
    open_stage,
)
from footlights.authority import patch
from footlights.authority.rules import Ruling, accept
from footlights_actors import standard_cast
from tests.kit.failures import failed

Run: TypeAlias = Callable[[InteractionContext], Coroutine[Any, Any, None]]

RESULT = {"tool_call_id": "c1", "tool_name": "sweep", "canceled": False}


class Scene:
    """A workload that is one function."""

    def __init__(self, run: Run) -> None:
        self.run = run


async def play(
    run: Run, *, limits: Limits | None = None, cancel_after: float | None = None, ruling: Ruling | None = None
) -> list[StreamEvent]:
    """All that a turn of this workload emits, canceled after so many seconds."""
    rules = {} if ruling is None else {"house": lambda *_: ruling}
    async with open_stage(standard_cast(workloads={"scene": Scene(run)}, rules=rules), limits=limits) as stage:
        session = stage.start()
        async with session.subscribe() as stream:
            turn_id = session.begin_turn("Well?", TurnParams(workload="scene"))
            if cancel_after is not None:
                await trio.sleep(cancel_after)
                session.cancel(turn_id)
            return [event async for event in stream.until_commit(turn_id)]


def handmade(event_type: EventType | str, payload: object) -> StreamEvent:
    """What a workload may build without asking `draft_event`."""
    return StreamEvent("9.9", "stolen", "forged", 77, -1, event_type, payload)  # type: ignore[arg-type]  # so it may


def types_of(events: list[StreamEvent]) -> list[EventType]:
    return [event.event_type for event in events]


BEGIN_AND_END = [EventType.TURN_ACCEPTED, EventType.TURN_FINAL, EventType.COMMIT_FINAL]


# -- emitting


async def test_the_envelope_is_the_runtimes_whatever_the_workload_writes_there() -> None:
    async def run(context: InteractionContext) -> None:
        context.emit_event(handmade(EventType.TOKEN_DELTA, TokenDelta("Hm.", 500)))
        context.emit_event(handmade(EventType.TOKEN_DELTA, TokenDelta("!", 500, ext=Ext("ext.acme.mood", 1))))

    events = await play(run)
    assert [(e.schema_v, e.session_id, e.turn_id, e.seq) for e in events] == [
        ("1.0", "s1-000001", "t1-000001", seq) for seq in range(5)
    ]
    assert [event.payload for event in events[1:3]] == [
        TokenDelta("Hm.", 0),
        TokenDelta("!", 3, ext=Ext("ext.acme.mood", 1)),
    ]


async def test_a_workload_may_report_models_and_tools_of_its_own() -> None:
    async def run(context: InteractionContext) -> None:
        context.emit_event(draft_event("model_selected", {"model_id": "m", "reason": "mine"}))
        context.emit_event(draft_event("model_loading", {"model_id": "m", "cold_start": True}))
        context.emit_event(draft_event("model_ready", {"model_id": "m", "warm_state": "cold", "load_ms": 3}))
        context.emit_event(draft_event("tool_call_started", {"tool_call_id": "c1", "tool_name": "sweep"}))
        context.emit_event(draft_event("tool_call_result", RESULT))

    assert types_of(await play(run)) == [
        EventType.TURN_ACCEPTED,
        EventType.MODEL_SELECTED,
        EventType.MODEL_LOADING,
        EventType.MODEL_READY,
        EventType.TOOL_CALL_STARTED,
        EventType.TOOL_CALL_RESULT,
        EventType.TURN_FINAL,
        EventType.COMMIT_FINAL,
    ]


class Sneaky(Payload):
    pass


FORGERIES = [
    handmade(EventType.TURN_ACCEPTED, TurnAccepted()),
    handmade(EventType.TURN_FINAL, TurnFinal("The end.")),
    handmade(EventType.TURN_INTERRUPTED, TurnInterrupted(InterruptReason.CANCELED)),
    handmade(EventType.COMMIT_FINAL, CommitFinal("0" * 64, CommitOutcome.OK)),
    handmade("commit_final", CommitFinal("0" * 64, CommitOutcome.OK)),
    handmade(EventType.TOKEN_DELTA, CommitFinal("0" * 64, CommitOutcome.OK)),
    handmade(EventType.TOKEN_DELTA, TokenDelta("a", 0, dropped_seq_ranges=(SeqRange(0, 9),))),
    handmade(EventType.TOKEN_DELTA, TokenDelta("a", 0, ext=Ext("acme", 1))),
    handmade(EventType.TOKEN_DELTA, TokenDelta("a", 0, ext=Ext("ext.acme.mood", object()))),  # type: ignore[arg-type]
    handmade(EventType.TOKEN_DELTA, TokenDelta("\ud83c", 0)),
    handmade(EventType.TOKEN_DELTA, Sneaky()),
    handmade(EventType.TOOL_CALL_RESULT, ToolCallResult("c1", "sweep", canceled=True)),
    handmade(EventType.TOKEN_DELTA, {"delta": "a", "offset": 0, "mood": 1}),
    handmade("unheard_of", TokenDelta("a", 0)),
]


@pytest.mark.shows("core-51", "core-52")
@pytest.mark.parametrize("forgery", FORGERIES)
async def test_what_is_not_a_workloads_to_say_raises_and_never_reaches_the_stream(forgery: StreamEvent) -> None:
    async def run(context: InteractionContext) -> None:
        with pytest.raises(InvalidEvent):
            context.emit_event(forgery)

    assert types_of(await play(run)) == BEGIN_AND_END


@pytest.mark.parametrize("forgery", FORGERIES[:5])
async def test_a_workload_that_insists_on_a_forgery_ends_its_turn_lawfully(forgery: StreamEvent) -> None:
    async def run(context: InteractionContext) -> None:
        context.emit_event(forgery)

    events = await play(run)
    assert types_of(events) == [EventType.TURN_ACCEPTED, EventType.TURN_INTERRUPTED, EventType.COMMIT_FINAL]
    assert events[1].payload == failed(InterruptReason.WORKLOAD_ERROR, "invalid_event")


async def test_what_a_thread_says_raises_and_never_reaches_the_stream() -> None:
    async def run(context: InteractionContext) -> None:
        word = draft_event(EventType.TOKEN_DELTA, {"delta": "Hm."})
        for _ in range(2):
            with pytest.raises(RuntimeError, match="async context"):
                await trio.to_thread.run_sync(context.emit_event, word)
            context.emit_event(word)

    events = await play(run)
    assert [event.payload.text for event in events if isinstance(event.payload, TurnFinal)] == ["Hm.Hm."]


async def test_what_is_too_large_raises_and_never_reaches_the_stream() -> None:
    async def run(context: InteractionContext) -> None:
        big = {"namespace": "ext.acme.mood", "data": "x" * 200}
        with pytest.raises(TooLarge):
            context.emit_event(draft_event("token_delta", {"delta": "a", "ext": big}))
        with pytest.raises(TooLarge):
            context.emit_event(draft_event("token_delta", {"delta": "x" * 101}))

    assert types_of(await play(run, limits=Limits(max_event_bytes=200, max_turn_text_bytes=100))) == BEGIN_AND_END


@pytest.mark.parametrize(
    ("event_type", "payload"),
    [
        ("model_ready", {"model_id": "m", "warm_state": "hot", "load_ms": 0}),
        ("model_loading", {"model_id": "m", "cold_start": True}),
        ("tool_call_result", RESULT),
    ],
)
async def test_what_comes_out_of_turn_raises_and_never_reaches_the_stream(
    event_type: str, payload: dict[str, object]
) -> None:
    async def run(context: InteractionContext) -> None:
        with pytest.raises(IllegalTransition):
            context.emit_event(draft_event(event_type, payload))

    assert types_of(await play(run)) == BEGIN_AND_END


async def test_nothing_more_can_be_said_when_the_turn_is_over() -> None:
    kept: list[InteractionContext] = []

    async def run(context: InteractionContext) -> None:
        await trio.lowlevel.checkpoint()
        kept.append(context)

    await play(run)
    with pytest.raises(IllegalTransition):
        kept[0].emit_event(draft_event("token_delta", {"delta": "And another thing!"}))
    with pytest.raises(IllegalTransition):
        kept[0].request_commit(Intent(IntentType.DECISION, "room-3"))


async def test_a_workload_that_leaves_something_open_is_interrupted(quiet_clock: trio.testing.MockClock) -> None:
    async def tool(context: InteractionContext) -> None:
        context.emit_event(draft_event("tool_call_started", {"tool_call_id": "c1", "tool_name": "sweep"}))

    async def model(context: InteractionContext) -> None:
        context.emit_event(draft_event("model_selected", {"model_id": "m", "reason": "mine"}))

    for run, detail in ((tool, "tool_left_open"), (model, "model_not_ready")):
        events = await play(run)
        assert events[-2].payload == failed(InterruptReason.WORKLOAD_ERROR, detail)


async def test_a_workload_knows_its_turn_and_the_world() -> None:
    seen: list[object] = []

    async def run(context: InteractionContext) -> None:
        seen.extend((context.session_id, context.turn_id, context.input, context.world))

    async with open_stage(standard_cast(workloads={"scene": Scene(run)}, world={"rooms": 3})) as stage:
        session = stage.start()
        await session.finalize(session.begin_turn("Well?", TurnParams(workload="scene"))).wait()
    assert seen == ["s1-000001", "t1-000001", "Well?", {"rooms": 3}]


# -- asking for commits


@pytest.mark.shows("feed-14", "core-25")
async def test_a_request_is_judged_when_the_turn_ends() -> None:
    async def run(context: InteractionContext) -> None:
        context.request_commit(Intent(IntentType.DECISION, "room-3", {"taken": True}))

    events = await play(run, ruling=accept(patch.add("/room", 3)))
    assert isinstance(events[-1].payload, CommitFinal)
    assert events[-1].payload.commit_outcome is CommitOutcome.OK


@pytest.mark.shows("feed-13")
@pytest.mark.parametrize(
    "intent",
    [
        Intent(IntentType.DECISION, ""),
        Intent(IntentType.DECISION, "x" * 257),
        Intent(IntentType.DECISION, "room-3", None, "no digest"),
    ],
)
async def test_a_request_that_cannot_be_judged_is_refused(intent: Intent) -> None:
    async def run(context: InteractionContext) -> None:
        with pytest.raises(InvalidCommand):
            context.request_commit(intent)

    assert types_of(await play(run)) == BEGIN_AND_END


async def test_a_workload_may_ask_only_so_often() -> None:
    async def run(context: InteractionContext) -> None:
        context.request_commit(Intent(IntentType.DECISION, "room-3"))
        with pytest.raises(Busy):
            context.request_commit(Intent(IntentType.DECISION, "room-4"))

    assert types_of(await play(run, limits=Limits(max_intents_per_turn=1))) == BEGIN_AND_END


# -- learning of a cancel


@pytest.mark.shows("core-50")
async def test_await_cancel_returns_normally_and_the_next_checkpoint_is_cancelled(
    quiet_clock: trio.testing.MockClock,
) -> None:
    seen: list[object] = []

    async def run(context: InteractionContext) -> None:
        seen.append(context.is_canceled())
        await context.await_cancel()
        seen.append(context.is_canceled())
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled:
            seen.append("cancelled")
            raise

    events = await play(run, cancel_after=1.0)
    assert seen == [False, True, "cancelled"]
    assert events[-2].payload == TurnInterrupted(InterruptReason.CANCELED)


async def test_await_cancel_returns_inside_a_shielded_scope(quiet_clock: trio.testing.MockClock) -> None:
    seen: list[float] = []

    async def run(context: InteractionContext) -> None:
        with trio.CancelScope(shield=True):
            await context.await_cancel()
            await trio.sleep(2.0)
            await context.await_cancel()
            seen.append(trio.current_time())

    began = trio.current_time()
    await play(run, cancel_after=1.0)
    assert [round(at - began, 3) for at in seen] == [3.0]


async def test_await_cancel_may_be_waited_for_by_many(quiet_clock: trio.testing.MockClock) -> None:
    returned: list[int] = []

    async def run(context: InteractionContext) -> None:
        async def watch(number: int) -> None:
            await context.await_cancel()
            returned.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(3):
                nursery.start_soon(watch, number)

    await play(run, cancel_after=1.0)
    assert sorted(returned) == [0, 1, 2]


async def test_await_cancel_gives_way_to_a_cancel_of_the_workloads_own(quiet_clock: trio.testing.MockClock) -> None:
    seen: list[bool] = []

    async def run(context: InteractionContext) -> None:
        with trio.move_on_after(1.0) as scope:
            await context.await_cancel()
        seen.append(scope.cancelled_caught)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(context.await_cancel)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        seen.append(context.is_canceled())

    assert types_of(await play(run)) == BEGIN_AND_END
    assert seen == [True, False]


async def test_a_workload_that_goes_on_after_a_cancel_is_refused_quietly(
    quiet_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def run(context: InteractionContext) -> None:
        await context.await_cancel()
        context.emit_event(draft_event("token_delta", {"delta": "As I was saying"}))

    events = await play(run, cancel_after=1.0)
    assert types_of(events) == [EventType.TURN_ACCEPTED, EventType.TURN_INTERRUPTED, EventType.COMMIT_FINAL]
    assert caplog.records == []


async def test_a_failure_after_a_cancel_is_logged_without_its_words_and_changes_nothing(
    quiet_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def run(context: InteractionContext) -> None:
        await context.await_cancel()
        raise ValueError("my name is Edda")

    events = await play(run, cancel_after=1.0)
    assert events[-2].payload == TurnInterrupted(InterruptReason.CANCELED)
    assert "ValueError at test_extensions.py" in caplog.text
    assert "Edda" not in caplog.text


async def test_everything_but_waiting_for_a_cancel_is_a_plain_call() -> None:
    async def run(context: InteractionContext) -> None:
        with trio.testing.assert_no_checkpoints():
            context.emit_event(draft_event("token_delta", {"delta": "Hm."}))
            context.request_commit(Intent(IntentType.DECISION, "room-3"))
            context.is_canceled()

    events = await play(run, ruling=accept())
    assert isinstance(events[-2].payload, TurnFinal)


# -- registering


@pytest.mark.parametrize("name", ["", "Dance", "7up", "a b", "a" * 65, "\u00e9"])
def test_a_workload_needs_a_plain_name(name: str) -> None:
    manager = ExtensionManager()
    with pytest.raises(RegistrationError):
        manager.register(name, Scene(InteractionContext.await_cancel))
    assert manager.names == ()


@pytest.mark.shows("core-49")
def test_two_workloads_cannot_share_a_name() -> None:
    first = Scene(InteractionContext.await_cancel)
    manager = ExtensionManager({"dance": first})
    with pytest.raises(RegistrationError):
        manager.register("dance", Scene(InteractionContext.await_cancel))
    assert manager.get("dance") is first
    assert manager.get("sing") is None
    assert manager.names == ("dance",)
