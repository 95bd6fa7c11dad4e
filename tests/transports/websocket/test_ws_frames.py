"""Only whole frames are passed on, none is lost, and no message is more than it may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, Event, Ping, TextMessage

from footlights_transports.websocket.frame_gate import MAX_AT_ONCE, MAX_PIECES, FrameGate

HEAD = b"GET /v1 HTTP/1.1\r\nHost: localhost\r\n\r\n"

events = st.lists(
    st.one_of(
        st.builds(TextMessage, st.text(max_size=150), message_finished=st.booleans()),
        st.builds(Ping, st.binary(max_size=125)),
        st.builds(TextMessage, st.sampled_from([125, 126, 65_535, 65_536]).map("x".__mul__)),
    ),
    max_size=8,
)


def sent(*said: Event) -> list[bytes]:
    """The frames that somebody else's client sends."""
    client = Connection(ConnectionType.CLIENT)
    return [client.send(each) for each in said]


def in_frames(max_bytes: int) -> FrameGate:
    """One that is past the head."""
    policy = FrameGate(max_bytes)
    assert policy.pass_on(HEAD) == HEAD
    return policy


def drain(policy: FrameGate, data: bytes) -> bytes:
    """All that is passed on, in as many calls as it takes."""
    passed = more = policy.pass_on(data)
    while more:
        assert policy.frames_passed <= MAX_AT_ONCE
        more = policy.pass_on()
        passed += more
    return passed


@given(events, st.sampled_from([b"\r\n\r\n", b"\n\n", b"\n\r\n"]), st.lists(st.integers(1, 40), min_size=1))
def test_everything_is_passed_on_whole_wherever_it_is_cut(said: list[Event], end: bytes, sizes: list[int]) -> None:
    head, frames = b"GET /v1 HTTP/1.1\r\nHost: localhost" + end, sent(*said)
    everything = head + b"".join(frames)
    ends = {len(head)} | {len(head) + sum(map(len, frames[:count])) for count in range(1, len(frames) + 1)}
    policy, at, passed = FrameGate(1_000_000), 0, b""
    while at < len(everything):
        size = sizes[at % len(sizes)] * (1 if at < 500 else 1_000)
        passed += drain(policy, everything[at : at + size])
        at += size
        assert len(passed) < len(head) or len(passed) in ends
    assert passed == everything
    assert not policy.is_too_much


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 100_000])
def test_a_message_may_be_as_long_as_the_limit_and_no_longer(size: int) -> None:
    (frame,) = sent(BytesMessage(b"x" * size))
    policy = in_frames(size)
    assert policy.pass_on(frame) == frame
    assert not policy.is_too_much
    (longer,) = sent(BytesMessage(b"x" * (size + 1)))
    assert policy.pass_on(longer[:10]) == b""
    assert policy.is_too_much


def test_what_comes_before_too_much_is_passed_on_and_nothing_after() -> None:
    first, second, third = sent(BytesMessage(b"1"), BytesMessage(b"12"), BytesMessage(b"3"))
    policy = in_frames(1)
    assert policy.pass_on(first + second + third) == first
    assert policy.is_too_much
    assert policy.pass_on(third) == b""


def test_the_pieces_of_a_message_are_counted_together() -> None:
    pieces = sent(BytesMessage(b"123", message_finished=False), BytesMessage(b"456"), BytesMessage(b"78"))
    fits, full = in_frames(6), in_frames(5)
    assert fits.pass_on(b"".join(pieces)) == b"".join(pieces)
    assert full.pass_on(b"".join(pieces)) == pieces[0]
    assert full.is_too_much


def test_a_message_has_only_so_many_pieces_and_pings_are_none() -> None:
    pieces = sent(*[BytesMessage(b"", message_finished=False)] * MAX_PIECES)
    ping, last = sent(Ping(b"12"), BytesMessage(b""))
    policy = in_frames(1)
    assert drain(policy, b"".join(pieces)) == b"".join(pieces)
    assert policy.pass_on(ping[:2]) == b""  # a ping of two bytes is too much by itself
    assert policy.is_too_much
    policy = in_frames(2)
    assert drain(policy, b"".join(pieces) + ping) == b"".join(pieces) + ping
    assert not policy.is_too_much
    assert policy.pass_on(last) == b""
    assert policy.is_too_much


def test_few_frames_are_passed_on_at_once_and_the_head_alone() -> None:
    pings = sent(*[Ping(b"")] * (MAX_AT_ONCE + 1))
    policy = FrameGate(1_000)
    assert policy.pass_on(HEAD + b"".join(pings)) == HEAD
    assert policy.frames_passed == 0
    assert policy.pass_on() == b"".join(pings[:-1])
    assert policy.frames_passed == MAX_AT_ONCE
    assert policy.pass_on() == pings[-1]
    assert policy.pass_on() == b""


def test_a_finished_message_counts_no_more() -> None:
    message = b"".join(sent(BytesMessage(b"1", message_finished=False), BytesMessage(b"2")))
    policy = in_frames(2)
    for _ in range(MAX_PIECES + 1):
        assert policy.pass_on(message) == message
