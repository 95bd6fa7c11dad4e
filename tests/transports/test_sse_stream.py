"""The id of an event says exactly what was sent up to it, and nothing that is not such an id is taken for one."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights import EventType, FootlightsError, InvalidCommand, wire
from footlights.recall import ALL_SEEN
from footlights.testing.streams import Recording, recordings
from footlights_transports.sse_stream import (
    MAX_CURSOR_CHARS,
    Cursor,
    SseWriter,
    notice,
    read_cursor,
    write_cursor,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from footlights import StreamEvent

TERMINAL = {EventType.TURN_FINAL, EventType.TURN_INTERRUPTED}
turn_ids = st.text("t0123456789-", min_size=1, max_size=20)
seqs = st.integers(-1, ALL_SEEN)
cursors = st.builds(Cursor, st.dictionaries(turn_ids, seqs, max_size=6), st.frozensets(turn_ids, max_size=4))


def words_of(value: object) -> str:
    return urlsafe_b64encode(orjson.dumps(value)).rstrip(b"=").decode()


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
    return Cursor(after, frozenset(ended))


@given(cursors)
def test_a_cursor_can_be_read_back(cursor: Cursor) -> None:
    word = write_cursor(cursor.after, cursor.terminal_seen)
    assert read_cursor(word) == cursor
    assert word.isascii()
    assert word.replace("-", "").replace("_", "").isalnum()


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
    cursor = Cursor({"t1-000001": ALL_SEEN, "t1-000002": 4}, frozenset({"t1-000002"}))
    (block,) = blocks(SseWriter(cursor).opening())
    assert set(block) == {"id"}
    assert read_cursor(block["id"]) == cursor


def test_what_does_not_matter_any_more_is_not_named() -> None:
    writer = SseWriter(Cursor({"t1-000001": 3, "t1-000002": 4}, frozenset({"t1-000001", "t1-000002"})))
    writer.forget_all_but({"t1-000002"})
    assert writer.cursor == Cursor({"t1-000002": 4}, frozenset({"t1-000002"}))


def test_a_notice_has_a_name_and_no_id() -> None:
    (block,) = blocks(notice("detached", "s1-000001", "stalled"))
    assert block["event"] == "detached"
    assert orjson.loads(block["data"]) == {"notice": "detached", "session_id": "s1-000001", "reason": "stalled"}
    assert set(block) == {"event", "data"}


def test_the_largest_cursor_that_a_stage_can_make_fits() -> None:
    turns = {f"t1-{number:06}": number for number in range(64 + 4 + 33)}
    assert len(write_cursor(turns, turns)) < MAX_CURSOR_CHARS / 2


@given(st.text() | st.binary().map(lambda data: urlsafe_b64encode(data).decode()))
def test_whatever_else_comes_is_refused(word: str) -> None:
    with pytest.raises(InvalidCommand) as refused:
        read_cursor(word)
    assert str(refused.value) == "Last-Event-ID: is not an id that this server gave out."


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=8,
    )
)
def test_a_cursor_of_another_shape_is_refused(value: object) -> None:
    try:
        cursor = read_cursor(words_of(value))
    except FootlightsError as error:
        assert error.code == "invalid_command"  # noqa: PT017 - either is fine, and nothing else
    else:
        assert isinstance(value, list)
        assert write_cursor(cursor.after, cursor.terminal_seen)


@pytest.mark.parametrize(
    "word",
    [
        "",
        "=",
        "a b",
        "WzEse30sW10sW11d=",
        "a",
        "A" * (MAX_CURSOR_CHARS + 1),
        "ÿ",
        words_of({}),
        words_of([1, {}, []]),
        words_of([2, {}, [], []]),
        words_of([True, {}, [], []]),
        words_of([1.0, {}, [], []]),
        words_of([1, [], [], []]),
        words_of([1, {"t1": "1"}, [], []]),
        words_of([1, {"t1": True}, [], []]),
        words_of([1, {"t1": -2}, [], []]),
        words_of([1, {"t1": ALL_SEEN}, [], []]),
        words_of([1, {"": 1}, [], []]),
        words_of([1, {"t" * 65: 1}, [], []]),
        words_of([1, {}, {}, []]),
        words_of([1, {}, [7], []]),
        words_of([1, {}, [], "t1"]),
        words_of([1, {}, [], [None]]),
    ],
)
def test_no_word_but_ours_is_taken(word: str) -> None:
    with pytest.raises(InvalidCommand):
        read_cursor(word)


def test_a_cursor_names_only_so_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("footlights_transports.sse_stream.MAX_CURSORS", 2)
    assert read_cursor(words_of([1, {"t1": 1}, ["t2"], []])).after == {"t1": 1, "t2": ALL_SEEN}
    with pytest.raises(InvalidCommand):
        read_cursor(words_of([1, {"t1": 1}, ["t2", "t3"], []]))
