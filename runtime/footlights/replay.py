"""What a turn keeps for late and returning subscribers: its text, where each event left it, and the rest.

That is several times smaller than keeping the events. Reading it back joins each run of plain token deltas
into one event that carries the run's last seq; text is never lost. Nothing is ever taken out or changed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from io import SEEK_END, StringIO
from typing import TYPE_CHECKING

from footlights.events import SCHEMA_V, EventType, SeqRange, StreamEvent, TokenDelta

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN_DELTA = EventType.TOKEN_DELTA


class Replay:
    __slots__ = (
        "_ends",
        "_last_joined",
        "_mono_ts_ms",
        "_other_seqs",
        "_others",
        "_run_stamps",
        "_sizes",
        "_text",
        "_wall_ts",
        "first_delta_ms",
        "next_seq",
        "said_bytes",
        "session_id",
        "text_length",
        "turn_id",
    )

    def __init__(self, session_id: str, turn_id: str) -> None:
        self.session_id = session_id
        self.turn_id = turn_id
        self.next_seq = 0
        self.text_length = 0
        self.said_bytes = 0
        """What all plain deltas so far take in a queue."""
        self.first_delta_ms: int | None = None
        """When the turn said its first word; None if it has said nothing."""
        self._text: StringIO | str = StringIO()
        self._ends = array("I")  # by seq: the length of the text once that event was out
        self._others: list[StreamEvent] = []
        self._other_seqs = array("I")
        # By seq, until the turn has said all. From then on the stamps of a run are those of its last delta.
        self._sizes = array("I")
        self._mono_ts_ms = array("q")
        self._wall_ts = array("d")
        self._run_stamps: dict[int, tuple[int, float]] = {}
        self._last_joined: tuple[tuple[int, int, int], StreamEvent] | None = None

    def append_delta(self, delta: str, size: int, mono_ts_ms: int, wall_ts: float) -> None:
        """A token delta with nothing else to remember. `size` is what it takes in a queue."""
        if not self.text_length:
            self.first_delta_ms = mono_ts_ms
        self._text.write(delta)  # type: ignore[union-attr]  # after `seal` there are none
        self.text_length += len(delta)
        self.said_bytes += size
        self._ends.append(self.text_length)
        self._sizes.append(size)
        self._mono_ts_ms.append(mono_ts_ms)
        self._wall_ts.append(wall_ts)
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
        self._ends.append(self.text_length)
        if not isinstance(self._text, str):
            self._sizes.append(0)
            self._mono_ts_ms.append(0)
            self._wall_ts.append(0.0)
        self.next_seq += 1

    def seal(self, text: str) -> None:
        """There will be no more text: keep the one that the turn's last events share, and what resuming needs."""
        first = 0
        for other in (*self._other_seqs, self.next_seq):
            if other > first:
                self._run_stamps[other - 1] = self.stamps(other - 1)
            first = other + 1
        self._text = text
        self._last_joined = None
        self._sizes = array("I")
        self._mono_ts_ms = array("q")
        self._wall_ts = array("d")

    @property
    def text(self) -> str:
        return self._text if isinstance(self._text, str) else self._text.getvalue()

    @property
    def kept_events(self) -> int:
        return len(self._others)

    def text_until(self, seq: int) -> str:
        """The text once the event with this seq was out."""
        return self.text[: self._ends[seq]]

    def size(self, seq: int) -> int:
        """What this plain delta takes in a queue. Known until the turn has said all."""
        return self._sizes[seq]

    def stamps(self, seq: int) -> tuple[int, float]:
        """When this plain delta was said. Known of each until the turn has said all, then of the last in each run."""
        if seq < len(self._mono_ts_ms):
            return self._mono_ts_ms[seq], self._wall_ts[seq]
        return self._run_stamps[seq]

    def joined(self, first: int, last: int, stamps: tuple[int, float], missing_from: int) -> StreamEvent:
        """These plain deltas as one event, which declares everything from `missing_from` up to it.

        Subscribers that are equally far get the same event, so that it need not be made and encoded for each of them.
        """
        which = (first, last, missing_from)
        if self._last_joined is not None and self._last_joined[0] == which:
            return self._last_joined[1]
        offset = self._ends[first - 1] if first else 0
        text = self._text
        if isinstance(text, str):
            delta = text[offset : self._ends[last]]
        else:
            text.seek(offset)
            delta = text.read(self._ends[last] - offset)
            text.seek(0, SEEK_END)
        missing = (SeqRange(missing_from, last - 1),) if last > missing_from else ()
        mono_ts_ms, wall_ts = stamps
        event = StreamEvent(
            SCHEMA_V,
            self.session_id,
            self.turn_id,
            last,
            mono_ts_ms,
            _TOKEN_DELTA,
            TokenDelta(delta, offset, dropped_seq_ranges=missing),
            wall_ts,
        )
        if not isinstance(text, str):  # afterwards few ask, and it would be kept as long as the turn
            self._last_joined = (which, event)
        return event

    def event_after(self, seq: int) -> StreamEvent | None:
        """The next event after `seq`, a whole run of deltas as one that declares which others are in it.

        None at the end.
        """
        first = seq + 1
        if first >= self.next_seq:
            return None
        position = bisect_left(self._other_seqs, first)
        at_end = position == len(self._others)
        if not at_end and self._other_seqs[position] == first:
            return self._others[position]
        last = (self.next_seq if at_end else self._other_seqs[position]) - 1
        return self.joined(first, last, self.stamps(last), first)

    def events(self) -> Iterator[StreamEvent]:
        """Every event so far."""
        seq = -1
        while (event := self.event_after(seq)) is not None:
            yield event
            seq = event.seq
