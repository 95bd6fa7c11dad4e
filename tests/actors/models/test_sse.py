from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footlights.errors import StreamError
from footlights_actors.models.sse import MAX_EVENT_CHARS, EventReader

_LINES = st.lists(st.sampled_from(["data: é", "data:", "data", ": hm", "event: x", "", "", "id: 1", "data:  <think>"]))
_ENDS = st.sampled_from(["\n", "\r\n", "\r"])


def _read(*pieces: bytes) -> list[str]:
    reader = EventReader()
    return [data for piece in pieces for data in reader.feed(piece)]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        ("data: a\n\ndata: b\n\n", ["a", "b"]),
        ("event: x\ndata: a\nid: 7\nretry: 1\n\n", ["a"]),
        ("data: a\ndata: b\n\n", ["a\nb"]),
        ("data:a\r\n\r\ndata:  b\r\rdata\n\n", ["a", " b", ""]),
        (": a comment\n\n\n\ndatum: a\n\n", []),
        ("data: without its end\n", []),
    ],
)
def test_the_data_of_whole_events_comes_out(stream: str, events: list[str]) -> None:
    assert _read(stream.encode()) == events


@given(lines=_LINES, ends=st.lists(_ENDS, min_size=1), size=st.integers(1, 5))
def test_however_a_stream_is_cut_and_its_lines_are_ended_the_same_comes_out(
    lines: list[str], ends: list[str], size: int
) -> None:
    plain = "".join(line + "\n" for line in lines).encode()
    # A lone return before a line feed would be one end, not two.
    mixed = "".join(
        line + (end if end != "\r" or following else "\n")
        for line, following, end in zip(lines, [*lines[1:], ""], ends * len(lines), strict=False)
    ).encode()
    assert _read(*(mixed[at : at + size] for at in range(0, len(mixed), size))) == _read(plain)


@pytest.mark.parametrize("size", [1, 2, 3, 99])
def test_a_byte_order_mark_at_the_beginning_is_none_of_the_first_event(size: int) -> None:
    stream = b"\xef\xbb\xbfdata: a\n\ndata: \xef\xbb\xbfb\n\n"
    assert _read(*(stream[at : at + size] for at in range(0, len(stream), size))) == ["a", "\ufeffb"]


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert _read(b"data: \xff\n\n") == ["\ufffd"]


@pytest.mark.parametrize("piece", [b"x" * 999, b"data: " + b"x" * 999 + b"\n", b"event: x" * 99])
def test_an_event_that_grows_too_large_is_refused(piece: bytes) -> None:
    with pytest.raises(StreamError):
        _read(*[piece] * 2_000)


def test_an_event_may_be_large() -> None:
    large = "x" * (MAX_EVENT_CHARS - 10)
    assert (
        _read(*[b": hm\n"] * 99, b"data: ", large.encode(), b"\n\n", b"data: " + large.encode() + b"\n\n")
        == [large] * 2
    )
