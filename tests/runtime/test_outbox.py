"""What a subscriber has not taken yet stays within its limits, loses nothing that must arrive, and hides no loss."""

from __future__ import annotations

from typing import TypeAlias

from attrs import Factory, define, evolve
from hypothesis import example, given, settings
from hypothesis import strategies as st

from footlights import Limits, laws
from footlights.events import (
    SCHEMA_V,
    CommitFinal,
    CommitOutcome,
    DeliveryClass,
    EventType,
    Ext,
    ModelLoading,
    Payload,
    SeqRange,
    StreamEvent,
    TokenDelta,
    ToolCallStarted,
    TurnAccepted,
    TurnFinal,
)
from footlights.lane import Entry
from footlights.outbox import DetachReason, Outbox
from footlights.replay import Replay

MUST_DELIVER, BOUNDED, BEST_EFFORT = DeliveryClass.MUST_DELIVER, DeliveryClass.BOUNDED, DeliveryClass.BEST_EFFORT
OK = CommitFinal("0" * 64, CommitOutcome.OK)

_TYPES: dict[type[Payload], tuple[EventType, DeliveryClass]] = {
    TurnAccepted: (EventType.TURN_ACCEPTED, MUST_DELIVER),
    ModelLoading: (EventType.MODEL_LOADING, BEST_EFFORT),
    TokenDelta: (EventType.TOKEN_DELTA, BEST_EFFORT),
    ToolCallStarted: (EventType.TOOL_CALL_STARTED, BOUNDED),
    TurnFinal: (EventType.TURN_FINAL, MUST_DELIVER),
    CommitFinal: (EventType.COMMIT_FINAL, MUST_DELIVER),
}


class Speaker:
    """A turn that says whatever it is told to, into its replay and one outbox."""

    def __init__(self, turn_id: str = "t1") -> None:
        self.turn_id = turn_id
        self.told: list[StreamEvent] = []
        self.replay = Replay("s1", turn_id)

    def tell(self, payload: Payload, size: int = 100) -> Entry:
        event_type, delivery = _TYPES[type(payload)]
        seq = len(self.told)
        event = StreamEvent(SCHEMA_V, "s1", self.turn_id, seq, seq * 10, event_type, payload, seq / 10)
        self.told.append(event)
        if is_plain(event):
            self.replay.append_delta(text_of(event), event.mono_ts_ms, event.wall_ts)
        else:
            self.replay.append(event)
        return Entry(event, delivery, 0 if delivery is MUST_DELIVER else size)

    def delta(self, text: str, ext: Ext | None = None) -> TokenDelta:
        return TokenDelta(text, self.replay.text_length, ext=ext)


def is_plain(event: StreamEvent) -> bool:
    return isinstance(event.payload, TokenDelta) and event.payload.ext is None


def put(outbox: Outbox, entry: Entry, replay: Replay, now: float) -> None:
    """As a turn puts it: plain deltas go in without an event of their own."""
    event = entry.event
    if is_plain(event):
        assert isinstance(event.payload, TokenDelta)
        delta, offset = event.payload.delta, event.payload.offset
        outbox.put_delta(replay, delta, event.seq, offset, entry.size, event.mono_ts_ms, event.wall_ts, now)
    else:
        outbox.put(entry, replay, now)


def text_of(event: StreamEvent) -> str:
    return event.payload.delta if isinstance(event.payload, TokenDelta) else ""


@define
class Listener:
    """An outbox, and what happened to it."""

    limits: Limits = Factory(Limits)
    wakes: int = 0
    let_go: list[Outbox] = Factory(list["Outbox"])
    outbox: Outbox = Factory(lambda self: Outbox(self.limits, self.wake, self.let_go.append), takes_self=True)

    def wake(self) -> None:
        self.wakes += 1

    def put(self, speaker: Speaker, payload: Payload, size: int = 100, now: float = 0.0) -> None:
        put(self.outbox, speaker.tell(payload, size), speaker.replay, now)

    def take_all(self) -> list[StreamEvent]:
        return list(iter(self.outbox.take, None))


# -- any program, against a model that keeps plain lists


@define
class Lane:
    """What one turn still owes the subscriber, said in the simplest way."""

    speaker: Speaker
    last_seq: int
    catching_up: bool
    waiting: list[Entry] = Factory(list["Entry"])

    def count(self, delivery: DeliveryClass) -> int:
        return sum(entry.delivery is delivery for entry in self.waiting)

    def bytes(self, *deliveries: DeliveryClass) -> int:
        return sum(entry.size for entry in self.waiting if entry.delivery in deliveries)

    def forget_newest_best_effort(self) -> None:
        at = max(at for at, entry in enumerate(self.waiting) if entry.delivery is BEST_EFFORT)
        del self.waiting[at]

    def take(self) -> StreamEvent:
        ahead = self.speaker.told[self.last_seq + 1 :] if self.catching_up else [entry.event for entry in self.waiting]
        event = ahead[0]
        taken = 1
        for following in ahead[1:]:
            if not (is_plain(event) and is_plain(following) and following.seq == event.seq + 1):
                break
            first = event.payload
            assert isinstance(first, TokenDelta)
            event = evolve(following, payload=TokenDelta(first.delta + text_of(following), first.offset))
            taken += 1
        if self.catching_up:
            self.catching_up = event.seq + 1 < len(self.speaker.told)
        else:
            del self.waiting[:taken]
        if event.seq > self.last_seq + 1:
            missing = (SeqRange(self.last_seq + 1, event.seq - 1),)
            event = evolve(event, payload=evolve(event.payload, dropped_seq_ranges=missing))
        self.last_seq = event.seq
        return event


@define
class Model:
    limits: Limits
    listener: Listener = Factory(lambda self: Listener(self.limits), takes_self=True)
    lanes: dict[str, Lane] = Factory(dict[str, "Lane"])
    order: list[Lane] = Factory(list["Lane"])
    put_events: int = 0
    delivered: int = 0

    @property
    def outbox(self) -> Outbox:
        return self.listener.outbox

    def catch_up(self, speaker: Speaker, after: int) -> None:
        self.outbox.catch_up(speaker.replay, after)
        if after + 1 < len(speaker.told):
            lane = self.lanes[speaker.turn_id] = Lane(speaker, after, catching_up=True)
            self.order.append(lane)

    def put(self, speaker: Speaker, payload: Payload, size: int) -> None:
        lane = self.lanes.get(speaker.turn_id)
        if lane is None:
            lane = self.lanes[speaker.turn_id] = Lane(speaker, len(speaker.told) - 1, catching_up=False)
        best_effort, bounded = self.outbox.statistics().best_effort_dropped, self.outbox.statistics().bounded_dropped
        entry = speaker.tell(payload, size)
        put(self.outbox, entry, speaker.replay, 0.0)
        best_effort = self.outbox.statistics().best_effort_dropped - best_effort
        bounded = self.outbox.statistics().bounded_dropped - bounded
        self.put_events += not lane.catching_up
        if lane.catching_up or entry.delivery is MUST_DELIVER:
            assert (best_effort, bounded) == (0, 0)
        elif entry.delivery is BEST_EFFORT:
            assert (best_effort, bounded) == (self._has_no_room(lane, entry), 0)
        else:
            self._check_bounded(lane, entry, best_effort, bounded)
        is_kept = not bounded and not (best_effort and entry.delivery is BEST_EFFORT)
        if is_kept and not lane.catching_up:
            lane.waiting.append(entry)
            if lane not in self.order:
                self.order.append(lane)

    def _has_no_room(self, lane: Lane, entry: Entry) -> bool:
        return (
            lane.count(BEST_EFFORT) >= self.limits.best_effort_max_events_per_turn
            or lane.bytes(BEST_EFFORT, BOUNDED) + entry.size > self.limits.max_bytes_per_turn_queue
        )

    def _check_bounded(self, lane: Lane, entry: Entry, best_effort: int, bounded: int) -> None:
        """It is dropped only if it cannot fit beside the other bounded ones, and pushes out only what it must."""
        limit = self.limits.max_bytes_per_turn_queue
        cannot_fit = (
            lane.count(BOUNDED) >= self.limits.bounded_max_events_per_turn or lane.bytes(BOUNDED) + entry.size > limit
        )
        assert bounded == cannot_fit
        assert not (bounded and best_effort)
        for _ in range(best_effort):
            assert lane.bytes(BEST_EFFORT, BOUNDED) + entry.size > limit
            lane.forget_newest_best_effort()

    def take(self) -> None:
        event = self.outbox.take()
        if not self.order:
            assert event is None
            return
        lane = self.order.pop(0)
        before = len(lane.waiting)
        was_catching_up = lane.catching_up
        assert event == lane.take()
        self.delivered += 0 if was_catching_up else before - len(lane.waiting)
        if lane.waiting or lane.catching_up:
            self.order.append(lane)
        elif event.event_type is EventType.COMMIT_FINAL:
            del self.lanes[lane.speaker.turn_id]

    def check(self) -> None:
        found = self.outbox.statistics()
        lanes = self.lanes.values()
        assert found.turns == len(self.order)
        assert found.best_effort_waiting == sum(lane.count(BEST_EFFORT) for lane in lanes)
        assert found.bounded_waiting == sum(lane.count(BOUNDED) for lane in lanes)
        assert found.must_deliver_waiting == sum(lane.count(MUST_DELIVER) for lane in lanes)
        assert found.bytes_waiting == sum(lane.bytes(BEST_EFFORT, BOUNDED) for lane in lanes)
        assert self.outbox.is_empty is (not self.order)
        for lane in lanes:
            assert lane.count(BEST_EFFORT) <= self.limits.best_effort_max_events_per_turn
            assert lane.count(BOUNDED) <= self.limits.bounded_max_events_per_turn
            assert lane.bytes(BEST_EFFORT, BOUNDED) <= self.limits.max_bytes_per_turn_queue
        waiting = sum(len(lane.waiting) for lane in lanes)
        dropped = found.best_effort_dropped + found.bounded_dropped
        assert self.put_events == self.delivered + waiting + dropped


Command: TypeAlias = "tuple[str, int, int]"
"""What to do, with which turn, and how many bytes it takes."""

TURNS = ("t1", "t2", "t3")
KINDS = ("delta", "ext", "progress", "tool")

# Few turns, few sizes and rare takes: only a crowded lane has to decide anything.
commands = st.tuples(
    st.sampled_from(("delta", "delta", "delta", "tool", "tool", "ext", "progress", "take")),
    st.sampled_from((0, 0, 0, 1, 2)),
    st.sampled_from((0, 20, 40, 90)),
)
tiny_limits = st.builds(
    Limits,
    best_effort_max_events_per_turn=st.integers(1, 5),
    bounded_max_events_per_turn=st.integers(1, 4),
    max_bytes_per_turn_queue=st.sampled_from((1, 80, 130, 170, 10_000)),
)


def payload_for(kind: str, speaker: Speaker) -> Payload:
    number = len(speaker.told)
    match kind:
        case "delta":
            return speaker.delta(f"{number}é")
        case "ext":
            return speaker.delta("!", Ext("ext.acme.mood", number))
        case "progress":
            return ModelLoading("m", cold_start=True, progress=0.5)
        case _:
            return ToolCallStarted(f"c{number}", "rent_room")


@settings(max_examples=300)
@example(
    Limits(max_bytes_per_turn_queue=1),
    [([], -1)] * 3,
    [("delta", 0, 0), ("tool", 0, 2), ("take", 0, 0)],
)
@given(
    tiny_limits,
    st.lists(st.tuples(st.lists(st.sampled_from(KINDS), max_size=5), st.integers(-1, 6)), min_size=3, max_size=3),
    st.lists(commands, max_size=30),
)
def test_any_program_does_what_plain_lists_would_do(
    limits: Limits, pasts: list[tuple[list[str], int]], program: list[Command]
) -> None:
    model = Model(limits)
    speakers = [Speaker(turn_id) for turn_id in TURNS]
    for speaker, (past, after) in zip(speakers, pasts, strict=True):
        for kind in past:
            speaker.tell(payload_for(kind, speaker))
        model.catch_up(speaker, min(after, len(past) - 1))
    for kind, which, size in program:
        if kind == "take":
            model.take()
        else:
            model.put(speakers[which], payload_for(kind, speakers[which]), size)
        model.check()
    for speaker in speakers:
        model.put(speaker, OK, 0)
    while model.order:
        model.take()
        model.check()
    assert model.outbox.take() is None
    assert model.outbox.statistics().turns == 0


@given(tiny_limits, st.lists(commands, max_size=30))
def test_whatever_is_dropped_the_stream_is_lawful(limits: Limits, program: list[Command]) -> None:
    """Held to the laws by the law checker, which knows nothing of the model above."""
    listener = Listener(limits)
    speakers = [Speaker(turn_id) for turn_id in TURNS]
    got: list[StreamEvent] = []
    for speaker in speakers:
        listener.put(speaker, TurnAccepted())
    for kind, which, size in program:
        if kind == "take":
            event = listener.outbox.take()
            got += [] if event is None else [event]
        elif kind in ("delta", "ext"):
            listener.put(speakers[which], payload_for(kind, speakers[which]), size)
    for speaker in speakers:
        listener.put(speaker, TurnFinal(speaker.replay.text))
        listener.put(speaker, OK)
    assert laws.check(got + listener.take_all()) == []


# -- one promise at a time


def test_adjacent_deltas_are_joined_and_nothing_of_them_is_lost() -> None:
    listener, speaker = Listener(), Speaker()
    for word in ("Good ", "evening", "."):
        listener.put(speaker, speaker.delta(word))
    joined = TokenDelta("Good evening.", 0, dropped_seq_ranges=(SeqRange(0, 1),))
    assert listener.take_all() == [evolve(speaker.told[2], payload=joined)]
    assert listener.outbox.statistics().deltas_joined == 2


def test_an_event_nobody_missed_anything_before_is_shared_and_not_copied() -> None:
    listener, speaker = Listener(), Speaker()
    listener.put(speaker, TurnAccepted())
    assert listener.outbox.take() is speaker.told[0]


def test_a_delta_with_an_extensions_data_is_never_joined() -> None:
    listener, speaker = Listener(), Speaker()
    ext = Ext("ext.acme.mood", "glad")
    for payload in ("a", None, "b", "c"):
        listener.put(speaker, speaker.delta("!", ext) if payload is None else speaker.delta(payload))
    assert [(event.seq, text_of(event), event.payload.ext) for event in listener.take_all()] == [
        (0, "a", None),
        (1, "!", ext),
        (3, "bc", None),
    ]


def test_what_must_be_delivered_is_never_dropped() -> None:
    listener = Listener(Limits(best_effort_max_events_per_turn=1, max_bytes_per_turn_queue=1))
    speaker = Speaker()
    for payload in (TurnAccepted(), speaker.delta("too big"), TurnFinal("too big"), OK):
        listener.put(speaker, payload)
    got = listener.take_all()
    assert [event.seq for event in got] == [0, 2, 3]
    assert got[1].payload.dropped_seq_ranges == (SeqRange(1, 1),)


def test_the_newest_best_effort_events_go_first() -> None:
    listener = Listener(Limits(best_effort_max_events_per_turn=2))
    speaker = Speaker()
    for word in "abcd":
        listener.put(speaker, speaker.delta(word))
    assert [text_of(event) for event in listener.take_all()] == ["ab"]
    listener.put(speaker, OK)
    assert [event.payload.dropped_seq_ranges for event in listener.take_all()] == [(SeqRange(2, 3),)]


def test_a_bounded_event_takes_the_room_of_the_newest_best_effort_events() -> None:
    listener = Listener(Limits(max_bytes_per_turn_queue=300))
    speaker = Speaker()
    for word in "abc":
        listener.put(speaker, speaker.delta(word))
    listener.put(speaker, ToolCallStarted("c1", "rent_room"), size=150)
    assert [(event.seq, event.payload.dropped_seq_ranges) for event in listener.take_all()] == [
        (0, ()),
        (3, (SeqRange(1, 2),)),
    ]
    statistics = listener.outbox.statistics()
    assert (statistics.best_effort_dropped, statistics.bounded_dropped) == (2, 0)


def test_a_bounded_event_that_cannot_fit_costs_nobody_else_anything() -> None:
    listener = Listener(Limits(max_bytes_per_turn_queue=300))
    speaker = Speaker()
    listener.put(speaker, speaker.delta("a"))
    listener.put(speaker, ToolCallStarted("c1", "rent_room"), size=301)
    statistics = listener.outbox.statistics()
    assert (statistics.best_effort_dropped, statistics.bounded_dropped) == (0, 1)


def test_bounded_events_have_a_limit_of_their_own() -> None:
    listener, speaker = Listener(Limits(bounded_max_events_per_turn=2)), Speaker()
    for number in range(4):
        listener.put(speaker, ToolCallStarted(f"c{number}", "rent_room"))
    listener.put(speaker, OK)
    got = [(event.seq, event.payload.dropped_seq_ranges) for event in listener.take_all()]
    assert got == [(0, ()), (1, ()), (4, (SeqRange(2, 3),))]
    assert listener.outbox.statistics().bounded_dropped == 2


def test_making_room_leaves_everything_else_in_its_order() -> None:
    listener, speaker = Listener(Limits(max_bytes_per_turn_queue=350)), Speaker()
    listener.put(speaker, speaker.delta("a"))
    for number in range(3):
        listener.put(speaker, ToolCallStarted(f"c{number}", "rent_room"))
    assert [event.seq for event in listener.take_all()] == [1, 2, 3]


def test_deltas_with_a_gap_between_them_are_not_joined() -> None:
    listener, speaker = Listener(Limits(max_bytes_per_turn_queue=250)), Speaker()
    for word, size in (("a", 100), ("too big", 200), ("b", 100)):
        listener.put(speaker, speaker.delta(word), size=size)
    first, second = listener.take_all()
    assert (text_of(first), text_of(second)) == ("a", "b")
    assert second.payload == TokenDelta("b", 8, dropped_seq_ranges=(SeqRange(1, 1),))


def test_turns_take_their_turn() -> None:
    listener = Listener()
    speakers = [Speaker(turn_id) for turn_id in TURNS]
    for speaker, events in zip(speakers, (3, 1, 2), strict=True):
        for number in range(events):
            listener.put(speaker, ToolCallStarted(f"c{number}", "rent_room"))
    got = [(event.turn_id, event.seq) for event in listener.take_all()]
    assert got == [("t1", 0), ("t2", 0), ("t3", 0), ("t1", 1), ("t3", 1), ("t1", 2)]


def test_the_subscriber_is_woken_when_there_is_something_to_take_and_not_for_more_of_it() -> None:
    listener, speaker = Listener(), Speaker()
    for word in "abc":
        listener.put(speaker, speaker.delta(word))
    assert listener.wakes == 1
    listener.take_all()
    listener.put(speaker, speaker.delta("d"))
    assert listener.wakes == 2


def test_nobody_is_woken_for_what_was_dropped() -> None:
    listener, speaker = Listener(Limits(max_bytes_per_turn_queue=1)), Speaker()
    listener.put(speaker, speaker.delta("too big"))
    assert listener.wakes == 0
    assert listener.outbox.is_empty


def test_a_backlog_that_was_seen_already_is_nothing_to_catch_up_with() -> None:
    listener, speaker = Listener(), Speaker()
    speaker.tell(TurnAccepted())
    listener.outbox.catch_up(speaker.replay, 0)
    assert (listener.wakes, listener.outbox.take()) == (0, None)


def test_ten_thousand_tokens_that_nobody_takes_stay_within_the_limits() -> None:
    listener, speaker = Listener(), Speaker()
    listener.put(speaker, TurnAccepted())
    for _ in range(10_000):
        listener.put(speaker, speaker.delta("word "), size=205)
    statistics = listener.outbox.statistics()
    assert statistics.best_effort_waiting == statistics.best_effort_limit_per_turn == 256
    assert statistics.bytes_waiting == 256 * 205
    assert statistics.best_effort_dropped == 10_000 - 256
    listener.put(speaker, TurnFinal(speaker.replay.text))
    accepted, delta, final = listener.take_all()
    assert text_of(delta) == "word " * 256
    assert (accepted.seq, delta.seq, final.seq) == (0, 256, 10_001)
    assert final.payload.dropped_seq_ranges == (SeqRange(257, 10_000),)


def test_ten_thousand_tokens_of_backlog_take_no_room_at_all() -> None:
    listener, speaker = Listener(), Speaker()
    for _ in range(10_000):
        speaker.tell(speaker.delta("word "))
    listener.outbox.catch_up(speaker.replay, -1)
    listener.put(speaker, speaker.delta("end"))
    assert listener.outbox.statistics().best_effort_waiting == 0
    assert [text_of(event) for event in listener.take_all()] == ["word " * 10_000 + "end"]
    assert listener.outbox.statistics().best_effort_dropped == 0


# -- who is let go


def test_a_subscriber_that_takes_nothing_for_too_long_is_let_go_once() -> None:
    listener, speaker = Listener(Limits(stall_detach=30.0)), Speaker()
    for now in (100.0, 130.0):
        listener.put(speaker, speaker.delta("a"), now=now)
    assert listener.let_go == []
    listener.put(speaker, speaker.delta("b"), now=130.001)
    assert listener.let_go == [listener.outbox]
    assert listener.outbox.detached is DetachReason.STALLED
    assert listener.outbox.take() is None
    assert listener.wakes == 2


def test_taking_anything_at_all_is_a_sign_of_life() -> None:
    listener, speaker = Listener(Limits(stall_detach=30.0)), Speaker()
    for payload in (TurnAccepted(), ToolCallStarted("c1", "rent_room")):
        listener.put(speaker, payload, now=0.0)
    assert listener.outbox.take() is not None
    for now in (29.0, 59.0):
        listener.put(speaker, speaker.delta("a"), now=now)
    assert listener.outbox.detached is None


def test_a_long_silence_is_not_the_subscribers_fault() -> None:
    listener, speaker = Listener(Limits(stall_detach=30.0)), Speaker()
    for now in (0.0, 1000.0, 2000.0):
        listener.put(speaker, speaker.delta("a"), now=now)
        assert len(listener.take_all()) == 1


def test_a_subscriber_that_took_all_it_could_is_never_called_stalled() -> None:
    listener, speaker = Listener(Limits(stall_detach=30.0, max_bytes_per_turn_queue=1)), Speaker()
    listener.put(speaker, speaker.delta("too big"), now=0.0)
    assert listener.outbox.is_empty
    listener.put(speaker, speaker.delta("too big"), now=31.0)
    assert listener.outbox.detached is None


def test_a_subscriber_with_too_many_turns_waiting_is_let_go() -> None:
    listener = Listener(Limits(max_turns_per_subscriber=2))
    for turn_id in TURNS:
        listener.put(Speaker(turn_id), TurnAccepted())
    assert listener.outbox.detached is DetachReason.OVERFLOW
    assert listener.let_go == [listener.outbox]
    assert listener.outbox.statistics().turns == 0


def test_a_finished_turn_gives_its_place_back() -> None:
    listener = Listener(Limits(max_turns_per_subscriber=1))
    for turn_id in TURNS:
        speaker = Speaker(turn_id)
        for payload in (TurnAccepted(), TurnFinal(""), OK):
            listener.put(speaker, payload)
        assert len(listener.take_all()) == 3
    assert listener.outbox.detached is None


def test_a_turn_of_which_nothing_waits_takes_no_place() -> None:
    listener = Listener(Limits(max_turns_per_subscriber=1))
    for turn_id in TURNS:
        listener.put(Speaker(turn_id), TurnAccepted())
        assert len(listener.take_all()) == 1
    assert listener.outbox.detached is None
