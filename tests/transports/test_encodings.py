"""An event that many follow is encoded once, and what was encoded is not kept without end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights import wire
from footlights.events import SCHEMA_V, EventType, StreamEvent, TokenDelta
from footlights_transports import encodings
from footlights_transports.encodings import Encodings

if TYPE_CHECKING:
    import pytest


def said(delta: str, seq: int = 0) -> StreamEvent:
    return StreamEvent(SCHEMA_V, "s1", "t1", seq, 0, EventType.TOKEN_DELTA, TokenDelta(delta, 0))


def test_the_same_event_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[StreamEvent] = []

    def encode(event: StreamEvent) -> bytes:
        encoded.append(event)
        return wire.encode(event)

    monkeypatch.setattr(encodings, "wire", type("wire", (), {"encode": staticmethod(encode)}))
    ours, event, other = Encodings(), said("Hm."), said("Hm.", 1)
    assert [ours.encode(each) for each in (event, other, event)] == [
        wire.encode(each) for each in (event, other, event)
    ]
    assert encoded == [event, other]


def test_what_is_kept_has_a_limit_in_events_and_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "_MOST_EVENTS", 3)
    monkeypatch.setattr(encodings, "_MOST_BYTES", 5_000)
    ours = Encodings()
    for seq in range(20):
        ours.encode(said("short", seq))
        assert len(ours._recent) <= 3  # pyright: ignore[reportPrivateUsage]
    for seq in range(5):
        ours.encode(said("long " * 500, seq))
        kept = ours._recent.values()  # pyright: ignore[reportPrivateUsage]
        assert sum(len(each) for _, each in kept) <= 5_000
