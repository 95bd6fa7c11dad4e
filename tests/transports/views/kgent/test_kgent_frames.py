"""Frames in pieces of a bounded length, as any client reads them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import TextMessage

from footlights_transports.views.kgent.frames import PIECE_BYTES, pieces

LONGEST_HEAD = 10
LENGTHS = st.sampled_from([1, 125, 126, 65_535, 65_536, 65_537, 3 * PIECE_BYTES]) | st.integers(1, 3 * PIECE_BYTES)


@given(st.lists(LENGTHS, max_size=6))
def test_a_client_reads_the_same_events(lengths: list[int]) -> None:
    sent = [str(number) * length for number, length in enumerate(lengths)]
    client = Connection(ConnectionType.CLIENT)
    read, message = [], ""
    for piece in pieces(each.encode() for each in sent):
        client.receive_data(piece)
        for event in client.events():
            assert isinstance(event, TextMessage)
            message += event.data
            if event.message_finished:
                read.append(message)
                message = ""
    assert read == sent


@given(st.lists(LENGTHS, max_size=6))
def test_no_piece_is_too_long(lengths: list[int]) -> None:
    for piece in pieces(bytes(length) for length in lengths):
        assert len(piece) <= PIECE_BYTES + LONGEST_HEAD * (len(lengths) + 1)


def test_short_events_share_a_piece() -> None:
    assert list(pieces([b"a", b"b"])) == [b"\x81\x01a\x81\x01b"]
    assert list(pieces([])) == []
