"""What a turn keeps for late and returning subscribers: its text, where each event left it, and the rest.

That is several times smaller than keeping the events. Reading it back joins each run of plain token deltas
into one event that carries the run's last seq; text is never lost. Nothing is ever taken out or changed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from io import StringIO
from typing import TYPE_CHECKING

from attrs import evolve

from footlights.events import SCHEMA_V, EventType, SeqRange, StreamEvent, TokenDelta

if TYPE_CHECKING:
    from collections.abc import Iterator


class Replay:
    __slots__ = (
        "_ends",
        "_last_stamp",
        "_other_seqs",
        "_others",
        "_run_stamps",
        "_text",
        "first_delta_ms",
        "next_seq",
        "session_id",
        "text_length",
        "turn_id",
    )

    def __init__(self, session_id: str, turn_id: str) -> None:
        self.session_id = session_id
        self.turn_id = turn_id
        self.next_seq = 0
        self.text_length = 0
        self.first_delta_ms: int | None = None
        """When the turn said its first word; None if it has said nothing."""
        self._text: StringIO | str = StringIO()
        self._ends = array("I")  # by seq: the length of the text once that event was out
        self._others: list[StreamEvent] = []
        self._other_seqs = array("I")
        # The stamps of a joined run are those of its last delta: one pair for each run is all that is kept.
        self._last_stamp: tuple[int, float | None] = (0, None)
        self._run_stamps: list[tuple[int, float | None]] = []

    def append_delta(self, delta: str, mono_ts_ms: int, wall_ts: float | None) -> None:
        """A token delta with nothing else to remember."""
        if not self.text_length:
            self.first_delta_ms = mono_ts_ms
        self._text.write(delta)  # type: ignore[union-attr]  # after `seal` there are none
        self.text_length += len(delta)
        self._ends.append(self.text_length)
        self._last_stamp = (mono_ts_ms, wall_ts)
        self.next_seq += 1

    def append(self, event: StreamEvent) -> None:
        """Any event that must be given back exactly as it was."""
        if isinstance(event.payload, TokenDelta):
            if not self.text_length:
                self.first_delta_ms = event.mono_ts_ms
            self._text.write(event.payload.delta)  # type: ignore[union-attr]  # as above
            self.text_length += len(event.payload.delta)
        self._others.append(event)
        self._other_seqs.append(event.seq)
        self._run_stamps.append(self._last_stamp)
        self._ends.append(self.text_length)
        self.next_seq += 1

    def seal(self, text: str) -> None:
        """There will be no more text: keep the one that the turn's last events share, and not the buffer."""
        self._text = text

    @property
    def text(self) -> str:
        return self._text if isinstance(self._text, str) else self._text.getvalue()

    @property
    def kept_events(self) -> int:
        return len(self._others)

    def text_until(self, seq: int) -> str:
        """The text once the event with this seq was out."""
        return self.text[: self._ends[seq]]

    def event_after(self, seq: int) -> StreamEvent | None:
        """The next event after `seq`, a whole run of deltas as one; None at the end."""
        first = seq + 1
        if first >= self.next_seq:
            return None
        position = bisect_left(self._other_seqs, first)
        at_end = position == len(self._others)
        if not at_end and self._other_seqs[position] == first:
            return self._others[position]
        last = (self.next_seq if at_end else self._other_seqs[position]) - 1
        mono_ts_ms, wall_ts = self._last_stamp if at_end else self._run_stamps[position]
        offset = self._ends[seq] if seq >= 0 else 0
        payload = TokenDelta(self.text[offset : self._ends[last]], offset)
        return StreamEvent(
            SCHEMA_V, self.session_id, self.turn_id, last, mono_ts_ms, EventType.TOKEN_DELTA, payload, wall_ts
        )

    def events(self) -> Iterator[StreamEvent]:
        """Every event so far, a whole run of deltas as one that declares which others are in it."""
        seq = -1
        while (event := self.event_after(seq)) is not None:
            if event.seq > seq + 1:
                ranges = (SeqRange(seq + 1, event.seq - 1),)
                yield evolve(event, payload=evolve(event.payload, dropped_seq_ranges=ranges))
            else:
                yield event
            seq = event.seq
