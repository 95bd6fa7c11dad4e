"""Scripted turn that puts its events into an outbox as a real turn does."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from footlights.events import (
    DELIVERY,
    EVENT_TYPES,
    SCHEMA_V,
    DeliveryClass,
    Ext,
    ModelLoading,
    Payload,
    StreamEvent,
    TokenDelta,
)
from footlights.stream.fast_path import WITHOUT_END
from footlights.stream.lane import Entry
from footlights.stream.replay import ENVELOPE_BYTES, Replay

if TYPE_CHECKING:
    from footlights.stream.outbox import Outbox


class Speaker:
    def __init__(self, turn_id: str = "t1") -> None:
        self.turn_id = turn_id
        self.told: list[StreamEvent] = []
        self.replay = Replay("s1", turn_id)

    def draft(self, payload: Payload, size: int = 100) -> Entry:
        """`size` is that of whatever is no text, which has its own."""
        event_type, seq = EVENT_TYPES[type(payload)], len(self.told)
        event = StreamEvent(SCHEMA_V, "s1", self.turn_id, seq, seq * 125, event_type, payload, seq / 10)
        # Every model_loading here is one that reports progress: the first of a load has a better place.
        progress = isinstance(payload, ModelLoading)
        delivery = DeliveryClass.BEST_EFFORT if progress else DELIVERY[event_type]
        if is_plain(event):
            size = ENVELOPE_BYTES + len(text_of(event).encode())
        return Entry(event, delivery, 0 if delivery is DeliveryClass.MUST_DELIVER else size)

    def delta(self, text: str, ext: Ext | None = None) -> TokenDelta:
        return TokenDelta(text, self.replay.text_length, ext=ext)

    def keep(self, entry: Entry) -> None:
        event = entry.event
        self.told.append(event)
        if is_plain(event):
            assert event.wall_ts is not None
            self.replay.append_delta(text_of(event), entry.size, event.mono_ts_ms / 1000, event.wall_ts)
        else:
            self.replay.append(event, entry.size)

    def put(self, outbox: Outbox, entry: Entry, now: float = 0.0) -> None:
        """Plain deltas go in without an event of their own, if their budget has ended; the replay comes last."""
        if not is_plain(entry.event):
            outbox.put(entry, self.replay, now)
        elif not self._is_within_budget(entry.size, now):
            budget = self.replay.fast_path
            budget.until_seq, budget.until_bytes, budget.until_time = WITHOUT_END, WITHOUT_END, inf
            outbox.put_delta(self.replay, entry.size, now)
        self.keep(entry)

    def _is_within_budget(self, size: int, now: float) -> bool:
        replay, budget = self.replay, self.replay.fast_path
        return (
            replay.next_seq < budget.until_seq
            and replay.said_bytes + size <= budget.until_bytes
            and now <= budget.until_time
        )


def is_plain(event: StreamEvent) -> bool:
    return isinstance(event.payload, TokenDelta) and event.payload.ext is None


def text_of(event: StreamEvent) -> str:
    return event.payload.delta if isinstance(event.payload, TokenDelta) else ""
