"""The id of an event says exactly what was sent up to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from hypothesis import given
from hypothesis import strategies as st

from footlights import EventType, wire
from footlights.stream.cursor import ALL_SEEN, Cursor
from footlights.testing.streams import Recording, recordings
from footlights_transports.views.native.sse_cursor import read_cursor
from footlights_transports.views.native.sse_stream import SseWriter, notice

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights import StreamEvent

TERMINAL = {EventType.TURN_FINAL, EventType.TURN_INTERRUPTED}


def blocks(text: bytes) -> list[dict[str, str]]:
    """As the standard has it: lines end blocks, fields are names and values."""
    assert not text or text.endswith(b"\n\n")
    lines = [block.split("\n") for block in text.decode().split("\n\n")[:-1]]
    return [dict(line.split(": ", 1) for line in block) for block in lines]


def got(events: Iterable[StreamEvent]) -> Cursor:
    """What somebody has who got these, the plain way."""
    after: dict[str, int] = {}
    ended: set[str] = set()
    for event in events:
        committed = event.event_type is EventType.COMMIT_FINAL
        after[event.turn_id] = ALL_SEEN if committed else event.seq
        if event.event_type in TERMINAL:
            ended.add(event.turn_id)
        if committed:
            ended.discard(event.turn_id)
    return Cursor(after, set(ended))


@given(recordings(), st.integers(1, 4))
def test_each_id_says_what_was_sent_up_to_it(recording: Recording, size: int) -> None:
    writer = SseWriter(Cursor())
    events = recording.events
    text = b"".join(writer.events(events[at : at + size]) for at in range(0, len(events), size))
    read = blocks(text)
    # No name: a browser hands out events without one.
    assert all(set(block) == {"id", "data"} for block in read)
    assert [wire.decode(block["data"]) for block in read] == list(events)
    assert [read_cursor(block["id"]) for block in read] == [got(events[: at + 1]) for at in range(len(events))]
    assert writer.cursor == got(events)


def test_the_opening_is_an_id_and_no_event() -> None:
    cursor = Cursor({"t1-000001": ALL_SEEN, "t1-000002": 4}, {"t1-000002"})
    (block,) = blocks(SseWriter(cursor).opening())
    assert set(block) == {"id"}
    assert read_cursor(block["id"]) == cursor


def test_what_does_not_matter_any_more_is_not_named() -> None:
    writer = SseWriter(Cursor({"t1-000001": 3, "t1-000002": 4}, {"t1-000001", "t1-000002"}))
    writer.forget_all_but({"t1-000002"})
    assert writer.cursor == Cursor({"t1-000002": 4}, {"t1-000002"})
    writer = SseWriter(Cursor({"t1-000001": ALL_SEEN, "t1-000002": ALL_SEEN}))
    writer.forget_all_but({"t1-000002"})
    assert writer.cursor == read_cursor(blocks(writer.opening())[0]["id"]) == Cursor({"t1-000002": ALL_SEEN})


def test_a_notice_has_a_name_and_no_id() -> None:
    (block,) = blocks(notice("detached", "s1-000001", "stalled"))
    assert block["event"] == "detached"
    assert orjson.loads(block["data"]) == {"notice": "detached", "session_id": "s1-000001", "reason": "stalled"}
    assert set(block) == {"event", "data"}
