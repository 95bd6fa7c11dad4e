"""Every call on a turn either happens completely, or raises and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest
import trio
import trio.testing

from footlights import (
    Busy,
    CommitFinal,
    CommitOutcome,
    ErrorInfo,
    EventType,
    Ext,
    Heard,
    IllegalTransition,
    Intent,
    IntentType,
    InterruptReason,
    InvalidEvent,
    Limits,
    ModelLoading,
    ModelReady,
    ModelSelected,
    StreamEvent,
    TokenDelta,
    TooLarge,
    ToolCallResult,
    ToolCallStarted,
    TurnAccepted,
    TurnFinal,
    TurnInterrupted,
    TurnParams,
    TurnState,
    WarmState,
)
from footlights.authority.intents import NOTHING_KNOWN
from footlights.stream.outbox import Outbox
from footlights.testing import payloads
from footlights.turn.timeline import CommitTimes
from footlights.turn.turn import Clock, Turn, WallClock
from footlights_actors import standard_cast

CANCELED, STALLED = InterruptReason.CANCELED, InterruptReason.STALLED
ASKED = ToolCallStarted("c1", "rent_room")
ANSWERED = ToolCallResult("c1", "rent_room", canceled=False)
ABANDONED = ToolCallResult("c1", "rent_room", canceled=True, side_effects_may_have_occurred=True)
COMMIT = CommitFinal("0" * 64, CommitOutcome.OK)
INTENT = Intent(IntentType.DECISION, "room-3")

Action: TypeAlias = Callable[[Turn], object]


def settle(turn: Turn) -> None:
    now = trio.current_time()
    turn.settle(COMMIT, CommitTimes(now, now))


class Host:
    """The least that a turn can live in: one subscriber, and a note of what it was told."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.wall = 1_000.0
        self.remote_models = False
        self.about = NOTHING_KNOWN
        self.outbox = Outbox(self.limits, lambda: None, lambda _: None)
        self.outboxes: tuple[Outbox, ...] = (self.outbox,)
        self.clock: Clock = trio.current_time
        self.wall_clock: WallClock = lambda: self.wall
        self.told: list[str] = []
        self.graced: list[str] = []

    def turn_stopping(self, turn: Turn) -> None:
        self.graced.append(turn.turn_id)

    def turn_ended(self, turn: Turn) -> None:
        self.told.append(f"ended {turn.state}")

    def turn_settled(self, turn: Turn) -> None:
        self.told.append(f"settled {turn.state}")

    def turn(self) -> Turn:
        return Turn(self, standard_cast(), "s1", "t1-000001", "A room?", TurnParams())

    def taken(self) -> list[StreamEvent]:
        return list(iter(self.outbox.take, None))


def begun(*before: Action, limits: Limits | None = None) -> tuple[Host, Turn]:
    """A turn that was accepted, runs, and got so far; its events until then are taken."""
    host = Host(limits)
    turn = host.turn()
    turn.accept(0)
    turn.run()
    for step in before:
        step(turn)
    host.taken()
    return host, turn


def stage(turn: Turn, intent: Intent) -> None:
    turn.reserve_intent(9)
    turn.staged.append(intent)


def facts(turn: Turn) -> object:
    return (
        turn.state,
        turn.replay.next_seq,
        turn.replay.text,
        turn.replay.kept_events,
        dict(turn.lifecycle.open_tools),
        list(turn.staged),
        turn.interruption,
        turn.commit,
        turn.scope.cancel_called,
    )


# -- the stream


@pytest.mark.shows("core-3", "core-10", "core-11")
async def test_the_runtime_fills_the_envelope(autojump_clock: trio.testing.MockClock) -> None:
    host = Host()
    turn = host.turn()
    turn.accept(2)
    turn.run()
    await trio.sleep(1.5)
    host.wall = 1_001.5
    turn.say("Good evening.")
    began = host.taken()
    assert began[0].payload == TurnAccepted(turns_ahead=2)
    assert [(e.schema_v, e.session_id, e.turn_id, e.seq) for e in began] == [
        ("1.0", "s1", "t1-000001", 0),
        ("1.0", "s1", "t1-000001", 1),
    ]
    assert began[1].mono_ts_ms - began[0].mono_ts_ms == 1500
    assert [e.wall_ts for e in began] == [1_000.0, 1_001.5]


async def test_offsets_count_code_points() -> None:
    host, turn = begun()
    offsets: list[int] = []
    for delta in ("日本", "\U0001f3ad", "e\u0301", "."):
        turn.say(delta)
        (event,) = host.taken()
        assert isinstance(event.payload, TokenDelta)
        offsets.append(event.payload.offset)
    assert offsets == [0, 2, 3, 5]


async def test_nothing_said_is_no_event() -> None:
    host, turn = begun()
    turn.say("")
    assert host.taken() == []
    assert turn.state is TurnState.RUNNING


@pytest.mark.shows("core-1", "core-17")
async def test_the_final_event_carries_the_whole_text_and_no_authority() -> None:
    host, turn = begun()
    for delta in ("Good ", "evening."):
        turn.say(delta)
    assert turn.finish()
    final = host.taken()[-1].payload
    assert final == TurnFinal("Good evening.", authoritative=False)
    assert host.told == ["ended final"]


async def test_the_first_loading_event_has_a_better_place_than_progress() -> None:
    host, turn = begun()
    turn.emit(ModelSelected("m", "default"))
    turn.emit(ModelLoading("m", cold_start=True))
    turn.emit(ModelLoading("m", cold_start=True, progress=0.5))
    turn.emit(ModelLoading("m", cold_start=True, progress=1.0))
    turn.emit(ModelReady("m", WarmState.COLD, 20))
    statistics = host.outbox.statistics()
    assert (statistics.bounded_waiting, statistics.best_effort_waiting) == (3, 2)


async def test_a_delta_with_an_extensions_data_is_given_back_as_it_was() -> None:
    host, turn = begun()
    payload = TokenDelta("!", 0, ext=Ext("ext.acme.mood", {"glad": True}))
    turn.say_with_ext(payload)
    turn.say("?")
    assert [event.payload for event in host.taken()] == [payload, TokenDelta("?", 1)]
    assert turn.replay.kept_events == 2


# -- refusals

LOADING: list[Action] = [lambda turn: turn.emit(ModelSelected("m", "default"))]
READY: list[Action] = [*LOADING, lambda turn: turn.emit(ModelReady("m", WarmState.HOT, 0))]
SPEAKING: list[Action] = [*READY, lambda turn: turn.say("Good evening.")]
AWAY = ErrorInfo("model_unreachable", "It is away.")
FALLBACK = ModelSelected("n", "fallback", AWAY)
SAYING: list[Action] = [lambda turn: turn.say("Good evening.")]
ASKING: list[Action] = [*SAYING, lambda turn: turn.start_tool(ASKED), lambda turn: stage(turn, INTENT)]
STOPPING: list[Action] = [*ASKING, lambda turn: turn.stop(CANCELED)]
INTERRUPTED: list[Action] = [*STOPPING, lambda turn: turn.end_tool(ABANDONED)]
FINAL: list[Action] = [*SAYING, lambda turn: turn.finish()]
COMMITTED: list[Action] = [*FINAL, settle]


@pytest.mark.parametrize(
    ("before", "action"),
    [
        (SAYING, lambda turn: turn.accept(0)),
        (SAYING, lambda turn: turn.emit(ModelLoading("m", cold_start=True))),
        (SAYING, lambda turn: turn.emit(ModelReady("m", WarmState.HOT, 0))),
        (SAYING, lambda turn: turn.end_tool(ANSWERED)),
        (SAYING, settle),
        (LOADING, lambda turn: turn.say("too early")),
        (LOADING, lambda turn: turn.start_tool(ASKED)),
        (ASKING, lambda turn: turn.start_tool(ASKED)),
        (ASKING, lambda turn: turn.end_tool(ToolCallResult("c2", "rent_room", canceled=False))),
        (STOPPING, lambda turn: turn.say("too late")),
        (STOPPING, lambda turn: turn.reserve_intent(9)),
        (INTERRUPTED, lambda turn: turn.say("too late")),
        (INTERRUPTED, lambda turn: turn.end_tool(ABANDONED)),
        (FINAL, lambda turn: turn.say("too late")),
        (FINAL, lambda turn: turn.say_with_ext(TokenDelta("!", 0, ext=Ext("ext.acme.mood", None)))),
        (FINAL, lambda turn: turn.reserve_intent(9)),
        (FINAL, lambda turn: turn.emit(ModelSelected("m", "again"))),
        (SAYING, lambda turn: turn.emit(FALLBACK)),
        (SPEAKING, lambda turn: turn.emit(FALLBACK)),
        (ASKING, lambda turn: turn.emit(FALLBACK)),
        (COMMITTED, settle),
        (COMMITTED, lambda turn: turn.reserve_intent(9)),
    ],
)
async def test_what_may_not_happen_now_changes_nothing(before: list[Action], action: Action) -> None:
    host, turn = begun(*before)
    known = facts(turn)
    with pytest.raises(IllegalTransition):
        action(turn)
    assert facts(turn) == known
    assert host.taken() == []


@pytest.mark.parametrize(
    "action",
    [
        lambda turn: turn.say("half \ud83c"),
        lambda turn: turn.say_with_ext(TokenDelta("half \ud83c", 0, ext=Ext("ext.acme.mood", None))),
        lambda turn: turn.start_tool(ToolCallStarted("c1", "\ud83c")),
        lambda turn: turn.emit(ModelSelected("m", "\ud83c")),
    ],
)
async def test_what_json_cannot_say_never_enters_the_stream(action: Action) -> None:
    host, turn = begun()
    known = facts(turn)
    with pytest.raises(InvalidEvent):
        action(turn)
    assert facts(turn) == known
    assert host.taken() == []


@pytest.mark.parametrize("before", [[], LOADING, READY], ids=["running", "loading", "ready"])
async def test_a_model_is_replaced_until_it_has_begun(before: list[Action]) -> None:
    host, turn = begun(*before)
    turn.emit(FALLBACK)
    turn.emit(ModelReady("n", WarmState.HOT, 0))
    turn.say("Good evening.")
    assert host.taken()[0].payload == FALLBACK


@pytest.mark.parametrize(
    "selected",
    [
        ModelSelected("n", "fallback"),
        ModelSelected("n", "default", AWAY),
        ModelSelected("m", "fallback", AWAY),
    ],
    ids=["nothing was wrong", "nothing is replaced", "by itself"],
)
async def test_a_fallback_that_makes_no_sense_is_refused_and_changes_nothing(selected: ModelSelected) -> None:
    host, turn = begun(*READY)
    known = facts(turn)
    with pytest.raises(InvalidEvent):
        turn.emit(selected)
    assert facts(turn) == known
    assert host.taken() == []


@pytest.mark.parametrize("delta", ["1234", "é12", "日4", "\U0001f3ad"])
async def test_a_turn_may_say_just_as_many_bytes_as_its_limit(delta: str) -> None:
    _, turn = begun(limits=Limits(max_turn_text_bytes=7))
    turn.say("abc")
    turn.say(delta)
    known = facts(turn)
    with pytest.raises(TooLarge):
        turn.say("x")
    with pytest.raises(TooLarge):
        turn.say_with_ext(TokenDelta("x", 0, ext=Ext("ext.acme.mood", None)))
    assert facts(turn) == known


async def test_a_limit_of_text_is_found_in_the_middle_of_a_flood() -> None:
    _, turn = begun(limits=Limits(max_turn_text_bytes=5_000))
    for _ in range(1_000):
        turn.say("word ")
    with pytest.raises(TooLarge):
        turn.say("!")


async def test_a_turn_with_too_many_events_can_still_end_its_tools_and_itself() -> None:
    host, turn = begun(limits=Limits(max_turn_events=2))
    turn.start_tool(ASKED)
    known = facts(turn)
    with pytest.raises(TooLarge):
        turn.start_tool(ToolCallStarted("c2", "rent_room"))
    assert facts(turn) == known
    turn.end_tool(ANSWERED)
    assert turn.finish()
    settle(turn)
    assert [event.seq for event in host.taken()] == [1, 2, 3, 4]


async def test_text_is_not_counted_as_events() -> None:
    _, turn = begun(limits=Limits(max_turn_events=1))
    for _ in range(5):
        turn.say("word ")
    assert turn.replay.text == "word " * 5


# -- intents


async def test_a_turn_takes_only_so_many_intents() -> None:
    _, turn = begun(limits=Limits(max_intents_per_turn=2))
    turn.reserve_intent(9)
    turn.reserve_intent(9)
    with pytest.raises(Busy):
        turn.reserve_intent(9)


async def test_the_intents_of_a_turn_take_only_so_many_bytes() -> None:
    _, turn = begun(limits=Limits(max_intent_bytes_per_turn=20))
    turn.reserve_intent(9)
    with pytest.raises(TooLarge, match="max_intent_bytes_per_turn"):
        turn.reserve_intent(12)
    turn.reserve_intent(11)


async def test_what_was_staged_is_discarded_when_the_turn_is_stopped() -> None:
    _, turn = begun()
    stage(turn, INTENT)
    turn.stop(CANCELED)
    assert turn.staged == []


async def test_what_was_staged_is_kept_when_the_turn_is_finished() -> None:
    _, turn = begun()
    stage(turn, INTENT)
    turn.finish()
    assert turn.staged == [INTENT]


# -- how it ends


async def test_a_stop_says_so_at_once_and_cancels_what_runs() -> None:
    host, turn = begun()
    turn.say("Good")
    assert turn.stop(STALLED, "quiet")
    assert host.taken()[-1].payload == TurnInterrupted(STALLED, "quiet")
    assert turn.scope.cancel_called
    assert turn.has_ended
    assert turn.is_interrupted
    assert (host.told, host.graced) == (["ended interrupted"], [])


async def test_only_the_first_stop_wins() -> None:
    host, turn = begun()
    assert turn.stop(STALLED)
    known = facts(turn)
    assert not turn.stop(CANCELED)
    assert not turn.finish()
    assert facts(turn) == known
    assert host.told == ["ended interrupted"]


@pytest.mark.parametrize("before", [FINAL, COMMITTED])
async def test_a_stop_after_the_end_changes_nothing(before: list[Action]) -> None:
    _, turn = begun(*before)
    known = facts(turn)
    assert not turn.stop(CANCELED)
    assert facts(turn) == known


async def test_a_stopped_turn_says_no_more_while_it_waits_for_a_tool() -> None:
    host, turn = begun()
    turn.start_tool(ASKED)
    turn.say("Let me see")
    turn.stop(CANCELED)
    with pytest.raises(IllegalTransition):
        turn.say(" what is free.")
    assert [event.event_type for event in host.taken()] == [EventType.TOOL_CALL_STARTED, EventType.TOKEN_DELTA]
    assert turn.replay.text == "Let me see"


async def test_a_stopped_turn_waits_for_its_last_tool_and_then_ends() -> None:
    host, turn = begun()
    turn.start_tool(ASKED)
    turn.start_tool(ToolCallStarted("c2", "light_fire"))
    assert turn.stop(CANCELED)
    assert not turn.has_ended
    assert host.graced == [turn.turn_id]
    turn.end_tool(ABANDONED)
    assert host.told == []
    turn.end_tool(ToolCallResult("c2", "light_fire", canceled=False))
    assert [event.event_type for event in host.taken()][-2:] == [
        EventType.TOOL_CALL_RESULT,
        EventType.TURN_INTERRUPTED,
    ]
    assert host.told == ["ended interrupted"]


async def test_abandoned_tools_are_all_reported_and_the_turn_ends() -> None:
    host, turn = begun()
    turn.start_tool(ASKED)
    harmless = ToolCallResult("c2", "light_fire", canceled=True, side_effects_may_have_occurred=False)
    turn.start_tool(ToolCallStarted("c2", "light_fire"), lambda: harmless)
    turn.stop(CANCELED)
    turn.abandon_tools()
    results = payloads(host.taken(), ToolCallResult)
    assert [(each.tool_call_id, each.canceled, each.side_effects_may_have_occurred) for each in results] == [
        ("c1", True, True),
        ("c2", True, False),
    ]
    assert turn.has_ended


@pytest.mark.parametrize("before", [LOADING, ASKING])
async def test_a_turn_with_something_open_is_not_finished(before: list[Action]) -> None:
    host, turn = begun(*before)
    known = facts(turn)
    assert not turn.finish()
    assert facts(turn) == known
    assert host.told == []


@pytest.mark.shows("core-9")
async def test_settling_is_the_last_event_and_wakes_every_waiter() -> None:
    host, turn = begun()
    turn.finish()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn.settled.wait)
        await trio.testing.wait_all_tasks_blocked()
        settle(turn)
    assert host.taken()[-1].payload == COMMIT
    assert host.told == ["ended final", "settled committed"]
    await turn.settled.wait()


async def test_waiting_for_an_unknown_commit_raises_commit_unknown() -> None:
    _, turn = begun()
    turn.finish()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn.settled.wait)
        await trio.testing.wait_all_tasks_blocked()
        turn.lose_sight()
    assert turn.commit is None
    assert turn.state is TurnState.IN_DOUBT


async def test_an_interruption_tells_how_far_it_was_heard() -> None:
    host, turn = begun()
    for delta in ("Good ", "evening, ", "friend."):
        turn.say(delta)
    for seq in (1, 2, 1):
        turn.hear(seq)
    turn.stop(CANCELED)
    assert host.taken()[-1].payload == TurnInterrupted(CANCELED, None, Heard(2, "Good evening, "))


async def test_a_stop_that_fails_changes_nothing() -> None:
    host, turn = begun()
    known = facts(turn)

    def broken_clock() -> float:
        raise OSError("no time today")

    host.wall_clock = broken_clock
    with pytest.raises(OSError, match="no time"):
        turn.stop(CANCELED)
    assert facts(turn) == known


# -- plain calls and waits


async def test_everything_but_waiting_is_a_plain_call() -> None:
    with trio.testing.assert_no_checkpoints():
        _, turn = begun()
        turn.emit(ModelSelected("m", "default"))
        turn.emit(ModelReady("m", WarmState.HOT, 0))
        turn.say("Good evening.")
        turn.start_tool(ASKED)
        turn.end_tool(ANSWERED)
        stage(turn, INTENT)
        turn.hear(1)
        turn.finish()
        settle(turn)


async def test_waiting_is_always_a_checkpoint() -> None:
    _, turn = begun()
    turn.stop(CANCELED)
    settle(turn)
    with trio.testing.assert_checkpoints():
        await turn.interrupted.wait()
    with trio.testing.assert_checkpoints():
        await turn.settled.wait()
