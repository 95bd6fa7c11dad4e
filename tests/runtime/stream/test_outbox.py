"""Outbox: it stays within its limits, drops no must-deliver event, and declares every loss."""

from __future__ import annotations

import pytest
from attrs import Factory, define, evolve

from footlights import Limits
from footlights.events import (
    CommitFinal,
    CommitOutcome,
    Ext,
    Payload,
    SeqRange,
    StreamEvent,
    TokenDelta,
    ToolCallStarted,
    TurnAccepted,
    TurnFinal,
)
from footlights.stream.fast_path import NONE
from footlights.stream.outbox import DetachReason, Outbox
from tests.kit.outbox_kit import Speaker, text_of

OK = CommitFinal("0" * 64, CommitOutcome.OK)
TURNS = ("t1", "t2", "t3")


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
        speaker.put(self.outbox, speaker.draft(payload, size), now)

    def take_all(self) -> list[StreamEvent]:
        return list(iter(self.outbox.take, None))


# -- what is kept, joined and dropped


@pytest.mark.shows("core-73")
def test_adjacent_deltas_are_joined_and_nothing_of_them_is_lost() -> None:
    listener, speaker = Listener(), Speaker()
    for word in ("Good ", "evening", "."):
        listener.put(speaker, speaker.delta(word))
    joined = TokenDelta("Good evening.", 0, dropped_seq_ranges=(SeqRange(0, 1),))
    assert listener.take_all() == [evolve(speaker.told[2], payload=joined)]
    assert listener.outbox.statistics().deltas_joined == 2


def test_an_event_without_a_gap_before_it_is_shared_and_not_copied() -> None:
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


@pytest.mark.shows("core-70", "core-75")
def test_what_must_be_delivered_is_never_dropped() -> None:
    listener = Listener(Limits(best_effort_max_events_per_turn=1, max_bytes_per_turn_queue=1))
    speaker = Speaker()
    for payload in (TurnAccepted(), speaker.delta("too big"), TurnFinal("too big"), OK):
        listener.put(speaker, payload)
    got = listener.take_all()
    assert [event.seq for event in got] == [0, 2, 3]
    assert got[1].payload.dropped_seq_ranges == (SeqRange(1, 1),)


@pytest.mark.shows("core-71", "core-74")
def test_the_newest_best_effort_events_go_first() -> None:
    listener = Listener(Limits(best_effort_max_events_per_turn=2))
    speaker = Speaker()
    for word in "abcd":
        listener.put(speaker, speaker.delta(word))
    assert [text_of(event) for event in listener.take_all()] == ["ab"]
    listener.put(speaker, OK)
    assert [event.payload.dropped_seq_ranges for event in listener.take_all()] == [(SeqRange(2, 3),)]


def test_a_bounded_event_takes_the_room_of_the_newest_best_effort_events() -> None:
    listener = Listener(Limits(max_bytes_per_turn_queue=700))
    speaker = Speaker()
    for word in "abc":
        listener.put(speaker, speaker.delta(word))
    listener.put(speaker, ToolCallStarted("c1", "rent_room"), size=350)
    assert [(event.seq, event.payload.dropped_seq_ranges) for event in listener.take_all()] == [
        (0, ()),
        (3, (SeqRange(1, 2),)),
    ]
    statistics = listener.outbox.statistics()
    assert (statistics.best_effort_dropped, statistics.bounded_dropped) == (2, 0)


def test_a_run_that_had_to_give_up_its_end_is_stamped_with_when_that_was_said() -> None:
    listener, speaker = Listener(Limits(max_bytes_per_turn_queue=700)), Speaker()
    for word in "abc":
        listener.put(speaker, speaker.delta(word))
    listener.put(speaker, ToolCallStarted("c1", "rent_room"), size=350)
    run, tool = listener.take_all()
    assert (text_of(run), run.mono_ts_ms, run.wall_ts) == ("a", speaker.told[2].mono_ts_ms, speaker.told[2].wall_ts)
    assert tool.mono_ts_ms > run.mono_ts_ms


def test_a_bounded_event_that_cannot_fit_costs_no_other_event() -> None:
    listener = Listener(Limits(max_bytes_per_turn_queue=300))
    speaker = Speaker()
    listener.put(speaker, speaker.delta("a"))
    listener.put(speaker, ToolCallStarted("c1", "rent_room"), size=301)
    statistics = listener.outbox.statistics()
    assert (statistics.best_effort_dropped, statistics.bounded_dropped) == (0, 1)


@pytest.mark.shows("core-72", "core-76")
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


def test_a_run_goes_on_where_what_was_taken_before_it_left_room() -> None:
    listener, speaker = Listener(Limits(best_effort_max_events_per_turn=3)), Speaker()
    listener.put(speaker, speaker.delta("!", Ext("ext.acme.mood", "glad")))
    for word in "ab":
        listener.put(speaker, speaker.delta(word))
    assert listener.outbox.take() is not None
    for word in "cd":
        listener.put(speaker, speaker.delta(word))
    assert [text_of(event) for event in listener.take_all()] == ["abc"]


def test_deltas_with_a_gap_between_them_are_not_joined() -> None:
    listener, speaker = Listener(Limits(max_bytes_per_turn_queue=402)), Speaker()
    for word in ("a", "too big", "b"):
        listener.put(speaker, speaker.delta(word))
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


def test_a_dropped_event_wakes_no_reader() -> None:
    listener, speaker = Listener(Limits(max_bytes_per_turn_queue=1)), Speaker()
    listener.put(speaker, speaker.delta("too big"))
    assert listener.wakes == 0
    assert listener.outbox.is_empty


def test_a_backlog_that_was_seen_already_is_nothing_to_catch_up_with() -> None:
    listener, speaker = Listener(), Speaker()
    speaker.keep(speaker.draft(TurnAccepted()))
    listener.outbox.catch_up(speaker.replay, 0)
    assert (listener.wakes, listener.outbox.take()) == (0, None)


@pytest.mark.shows("core-69")
def test_ten_thousand_tokens_that_are_not_taken_stay_within_the_limits() -> None:
    listener, speaker = Listener(), Speaker()
    listener.put(speaker, TurnAccepted())
    for _ in range(10_000):
        listener.put(speaker, speaker.delta("word "))
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
        speaker.keep(speaker.draft(speaker.delta("word ")))
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


def test_who_takes_nothing_more_is_noticed_by_whichever_turn_speaks() -> None:
    listener, read, other = Listener(Limits(stall_detach=30.0)), Speaker("t1"), Speaker("t2")
    for now, speaker in ((0.0, read), (0.0, other), (25.0, other)):
        listener.put(speaker, speaker.delta("a"), now=now)
    assert listener.outbox.take() is not None
    for now in (50.0, 80.0):
        listener.put(other, other.delta("b"), now=now)
    assert listener.outbox.detached is None
    listener.put(other, other.delta("c"), now=80.001)
    assert listener.outbox.detached is DetachReason.STALLED


def test_a_turn_need_not_ask_while_its_run_only_grows() -> None:
    listener, speaker = Listener(), Speaker()
    for word in "ab":
        listener.put(speaker, speaker.delta(word))
    assert speaker.replay.fast_path.until_seq == listener.limits.best_effort_max_events_per_turn
    assert listener.outbox.take() is not None
    assert speaker.replay.fast_path.until_seq == NONE, "what comes next begins a run, and wakes its reader"


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
