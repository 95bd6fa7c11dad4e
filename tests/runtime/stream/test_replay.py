"""Replay: it returns every event and the whole text of a turn, from any position."""

from __future__ import annotations

from itertools import accumulate
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights.events import (
    SCHEMA_V,
    EventType,
    Ext,
    Payload,
    SeqRange,
    StreamEvent,
    TokenDelta,
    ToolCallStarted,
    TurnAccepted,
)
from footlights.stream.replay import Replay

LETTERS = 'aZ \n\r"\0é日\u0301\u2028\U0001f3ad'
Told: TypeAlias = list[StreamEvent]


def is_plain(event: StreamEvent) -> bool:
    return isinstance(event.payload, TokenDelta) and event.payload.ext is None


def text_of(event: StreamEvent) -> str:
    return event.payload.delta if isinstance(event.payload, TokenDelta) else ""


def append_delta(replay: Replay, event: StreamEvent) -> None:
    assert event.wall_ts is not None
    replay.append_delta(text_of(event), 100, (event.mono_ts_ms + 0.5) / 1000, event.wall_ts)


def kept(told: Told) -> Replay:
    """A replay that was told all of these events."""
    replay = Replay("s1", "t1")
    for event in told:
        if is_plain(event):
            append_delta(replay, event)
        else:
            replay.append(event, 0)
    return replay


def walk(replay: Replay, after: int) -> Told:
    read: Told = []
    while (event := replay.event_after(after)) is not None:
        read.append(event)
        after = event.seq
    return read


def expected(told: Told, after: int) -> Told:
    """The naive answer: the events themselves, each run of plain deltas as one that says which others are in it."""
    joined: Told = []
    for event in told[after + 1 :]:
        if joined and is_plain(event) and is_plain(joined[-1]):
            before = joined.pop()
            first = before.payload
            assert isinstance(first, TokenDelta)
            inside = (
                SeqRange(first.dropped_seq_ranges[0].start_seq if first.dropped_seq_ranges else before.seq, before.seq),
            )
            together = TokenDelta(first.delta + text_of(event), first.offset, dropped_seq_ranges=inside)
            joined.append(told_event(event, together))
        else:
            joined.append(event)
    return joined


def told_event(like: StreamEvent, payload: Payload) -> StreamEvent:
    return StreamEvent(SCHEMA_V, "s1", "t1", like.seq, like.mono_ts_ms, EventType.TOKEN_DELTA, payload, like.wall_ts)


@st.composite
def tellings(draw: st.DrawFn) -> Told:
    """Any mixture of plain deltas, deltas that carry an extension's data, and other events."""
    told: Told = []
    offset = 0
    mono_ts_ms = draw(st.integers(0, 10**9))
    for seq, kind in enumerate(draw(st.lists(st.sampled_from(["plain", "plain", "ext", "other"]), max_size=12))):
        mono_ts_ms += draw(st.integers(0, 3))
        payload: Payload = ToolCallStarted(f"c{seq}", "rent_room")
        if kind != "other":
            delta = draw(st.text(LETTERS, min_size=1, max_size=4))
            payload = TokenDelta(delta, offset, ext=Ext("ext.acme.mood", seq) if kind == "ext" else None)
            offset += len(delta)
        event_type = EventType.TOOL_CALL_STARTED if kind == "other" else EventType.TOKEN_DELTA
        wall_ts = draw(st.floats(0, 2e9))
        told.append(StreamEvent(SCHEMA_V, "s1", "t1", seq, mono_ts_ms, event_type, payload, wall_ts))
    return told


@given(tellings())
def test_whatever_was_told_can_be_read_back_from_any_point(told: Told) -> None:
    replay = kept(told)
    for after in range(-1, len(told)):
        assert walk(replay, after) == expected(told, after)
    replay.seal(replay.text)
    for after in range(-1, len(told)):
        assert walk(replay, after) == expected(told, after)


@given(tellings(), st.data())
def test_reading_may_begin_before_the_telling_ends(told: Told, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(told)))
    replay = kept(told[:cut])
    early = walk(replay, -1)
    for event in told[cut:]:
        if is_plain(event):
            append_delta(replay, event)
        else:
            replay.append(event, 0)
    after = early[-1].seq if early else -1
    assert early + walk(replay, after) == expected(told[:cut], -1) + expected(told, after)


@given(tellings())
def test_the_text_until_any_event_is_exact(told: Told) -> None:
    replay = kept(told)
    assert [replay.text_until(event.seq) for event in told] == list(accumulate(text_of(event) for event in told))
    assert replay.text == "".join(text_of(event) for event in told)
    assert replay.text_length == len(replay.text)


@given(tellings())
def test_only_what_is_not_plain_text_is_kept_as_an_event(told: Told) -> None:
    replay = kept(told)
    others = [event for event in told if not is_plain(event)]
    assert replay.kept_events == len(others)
    assert [event for event in walk(replay, -1) if not is_plain(event)] == others
    assert replay.next_seq == len(told)


def test_a_joined_run_carries_the_last_seq_and_the_last_stamps() -> None:
    replay = Replay("s1", "t1")
    replay.append(StreamEvent(SCHEMA_V, "s1", "t1", 0, 5, EventType.TURN_ACCEPTED, TurnAccepted(), 0.5), 0)
    replay.append_delta("Good ", 100, 0.125, 1.0)
    replay.append_delta("evening.", 100, 0.25, 2.0)
    together = TokenDelta("Good evening.", 0, dropped_seq_ranges=(SeqRange(1, 1),))
    assert replay.event_after(0) == StreamEvent(SCHEMA_V, "s1", "t1", 2, 250, EventType.TOKEN_DELTA, together, 2.0)
    assert replay.event_after(1) == StreamEvent(
        SCHEMA_V, "s1", "t1", 2, 250, EventType.TOKEN_DELTA, TokenDelta("evening.", 5), 2.0
    )


@pytest.mark.parametrize("after", [-1, 0, 7])
def test_an_empty_replay_has_nothing_after_anything(after: int) -> None:
    assert Replay("s1", "t1").event_after(after) is None


def test_subscribers_that_are_equally_far_are_given_the_same_event() -> None:
    replay = Replay("s1", "t1")
    replay.append_delta("Good ", 100, 0.125, 1.0)
    replay.append_delta("evening.", 100, 0.25, 2.0)
    assert replay.event_after(-1) is replay.event_after(-1)
    assert replay.event_after(0) is not replay.event_after(-1)
    replay.seal(replay.text)
    assert replay.event_after(0) is not replay.event_after(0), "what was said would be kept twice"


def test_what_one_subscriber_had_to_give_up_is_in_no_stamp_of_another() -> None:
    """A run that lost its end in one queue has the stamps of what was lost; another queue never had more of it."""
    replay = Replay("s1", "t1")
    replay.append_delta("Good ", 100, 0.125, 1.0)
    replay.append_delta("evening.", 100, 0.25, 2.0)
    cut, whole = (250, 2.0), (125, 1.0)
    for stamps in (cut, whole, cut):
        event = replay.joined(0, 0, stamps, 0)
        assert (event.mono_ts_ms, event.wall_ts) == stamps
