"""Any program of puts and takes leaves an outbox where plain lists would be, and its stream lawful."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from attrs import Factory, define, evolve
from hypothesis import example, given, settings
from hypothesis import strategies as st

from footlights import Limits, laws
from footlights.events import (
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
from footlights.stream.outbox import Outbox
from tests.kit.outbox_kit import Speaker, is_plain, text_of

if TYPE_CHECKING:
    from footlights.stream.lane import Entry

MUST_DELIVER, BOUNDED, BEST_EFFORT = DeliveryClass.MUST_DELIVER, DeliveryClass.BOUNDED, DeliveryClass.BEST_EFFORT
OK = CommitFinal("0" * 64, CommitOutcome.OK)


def open_outbox(limits: Limits) -> Outbox:
    return Outbox(limits, lambda: None, lambda _: None)


# -- the model: plain lists


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
        gone, before = self.waiting.pop(at).event, self.waiting[at - 1] if at else None
        if before is not None and is_plain(gone) and is_plain(before.event) and before.event.seq + 1 == gone.seq:
            late = evolve(before.event, mono_ts_ms=gone.mono_ts_ms, wall_ts=gone.wall_ts)
            self.waiting[at - 1] = before._replace(event=late)

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
    outbox: Outbox = Factory(lambda self: open_outbox(self.limits), takes_self=True)
    lanes: dict[str, Lane] = Factory(dict[str, "Lane"])
    order: list[Lane] = Factory(list["Lane"])
    put_events: int = 0
    delivered: int = 0

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
        entry = speaker.draft(payload, size)
        speaker.put(self.outbox, entry)
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


# -- any program


Command: TypeAlias = "tuple[str, int, int]"
"""The action, its turn, and its bytes beyond those of its text."""

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
    max_bytes_per_turn_queue=st.sampled_from((1, 80, 300, 470, 700, 10_000)),
)


def payload_for(kind: str, speaker: Speaker, size: int = 0) -> Payload:
    number = len(speaker.told)
    match kind:
        case "delta":
            return speaker.delta(f"{number}é".ljust(size))
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
            speaker.keep(speaker.draft(payload_for(kind, speaker)))
        model.catch_up(speaker, min(after, len(past) - 1))
    for kind, which, size in program:
        if kind == "take":
            model.take()
        else:
            model.put(speakers[which], payload_for(kind, speakers[which], size), size)
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
    outbox = open_outbox(limits)
    speakers = [Speaker(turn_id) for turn_id in TURNS]
    got: list[StreamEvent] = []
    for speaker in speakers:
        speaker.put(outbox, speaker.draft(TurnAccepted()))
    for kind, which, size in program:
        if kind == "take":
            event = outbox.take()
            got += [] if event is None else [event]
        elif kind in ("delta", "ext"):
            speaker = speakers[which]
            speaker.put(outbox, speaker.draft(payload_for(kind, speaker, size), size))
    for speaker in speakers:
        for ending in (TurnFinal(speaker.replay.text), OK):
            speaker.put(outbox, speaker.draft(ending))
    assert laws.check(got + list(iter(outbox.take, None))) == []
