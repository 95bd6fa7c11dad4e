"""Replay: the events of a turn, kept for subscribers that come late or resume.

It holds the text once, the length of the text after each event, and the events other than plain token deltas: several
times smaller than the events themselves. Reading it back joins each run of plain deltas into one event with the run's
last seq, so no text is lost. Nothing is ever removed or changed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from io import SEEK_END, StringIO
from sys import getsizeof
from typing import TYPE_CHECKING, TypeAlias

from footlights.events import SCHEMA_V, EventType, SeqRange, StreamEvent, TokenDelta, TurnInterrupted
from footlights.stream.fast_path import NONE, FastPathBudget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from footlights.redaction.screen import Screen

ENVELOPE_BYTES = 200
"""Bytes that an event counts for in a queue, besides its payload."""
TURN_BYTES = 4_000
"""Bytes of memory that a settled turn takes, with its timeline and the events that every turn has, without its text."""
EVENT_BYTES = 100
"""Bytes of memory that a kept event takes, besides those that it counts for in a queue."""

_TOKEN_DELTA = EventType.TOKEN_DELTA

Stamps: TypeAlias = tuple[int, float]
"""Time of a delta: milliseconds of the monotonic clock, and seconds of the wall clock."""


class Replay:
    __slots__ = (
        "_ends",
        "_last_joined",
        "_other_bytes",
        "_other_seqs",
        "_others",
        "_run_stamps",
        "_said_at",
        "_text",
        "_wall_ts",
        "fast_path",
        "first_delta_ms",
        "next_seq",
        "said_bytes",
        "screen",
        "session_id",
        "text_length",
        "turn_id",
    )

    def __init__(self, session_id: str, turn_id: str, screen: Screen | None = None) -> None:
        self.screen = screen
        self.session_id = session_id
        self.turn_id = turn_id
        self.next_seq = 0
        self.text_length = 0
        self.said_bytes = 0
        """Bytes that all plain deltas so far count for in a queue."""
        self.first_delta_ms: int | None = None
        """When the first delta was emitted; None if there was none."""
        self.fast_path = FastPathBudget()
        self._text: StringIO | str = StringIO()
        self._ends = array("I")  # by seq: the length of the text after that event
        self._others: list[StreamEvent] = []
        self._other_bytes = 0
        self._other_seqs = array("I")
        # The stamps of the last plain delta, and by seq those of each delta that ended a run.
        self._said_at = 0.0
        self._wall_ts = 0.0
        self._run_stamps: dict[int, Stamps] = {}
        self._last_joined: tuple[tuple[int, int, int, Stamps], StreamEvent] | None = None

    def append_delta(self, delta: str, size: int, said_at: float, wall_ts: float) -> None:
        """Append a plain token delta, which counts for `size` bytes in a queue."""
        if not self.text_length:
            self.first_delta_ms = int(said_at * 1000)
        self._text.write(delta)  # type: ignore[union-attr]  # no delta comes after `seal`
        self.text_length += len(delta)
        self.said_bytes += size
        self._ends.append(self.text_length)
        self._said_at = said_at
        self._wall_ts = wall_ts
        self.next_seq += 1

    def append(self, event: StreamEvent, size: int) -> None:
        """Append an event that is kept as it is, and that counts for `size` bytes."""
        self.fast_path.until_seq = NONE
        if self.next_seq > (self._other_seqs[-1] + 1 if self._other_seqs else 0):
            self._run_stamps[self.next_seq - 1] = int(self._said_at * 1000), self._wall_ts
        if isinstance(event.payload, TokenDelta):
            if not self.text_length:
                self.first_delta_ms = event.mono_ts_ms
            self._text.write(event.payload.delta)  # type: ignore[union-attr]  # as above
            self.text_length += len(event.payload.delta)
        self._others.append(event)
        self._other_bytes += EVENT_BYTES + size if size else 0
        self._other_seqs.append(event.seq)
        self._ends.append(self.text_length)
        self.next_seq += 1

    def seal(self, text: str) -> None:
        """Keep this text, which the terminal event holds too: no delta comes after it."""
        self._text = text
        self._last_joined = None

    @property
    def text(self) -> str:
        return self._text if isinstance(self._text, str) else self._text.getvalue()

    @property
    def kept_events(self) -> int:
        return len(self._others)

    @property
    def kept_bytes(self) -> int:
        """About the memory that a settled turn takes."""
        terminal = self._others[-2].payload
        heard = terminal.heard if isinstance(terminal, TurnInterrupted) else None
        said = getsizeof(self._text) + (0 if heard is None else getsizeof(heard.text))
        return TURN_BYTES + said + self._ends.itemsize * len(self._ends) + self._other_bytes

    def text_until(self, seq: int) -> str:
        """The text up to the event with this seq."""
        return self.text[: self._ends[seq]]

    def size(self, seq: int) -> int:
        """Bytes that this plain delta counts for in a queue."""
        return ENVELOPE_BYTES + len(self._said(seq, seq)[1].encode())

    def stamps(self, seq: int) -> Stamps:
        """The stamps of the plain delta that is the last of its run so far."""
        return self._run_stamps.get(seq) or (int(self._said_at * 1000), self._wall_ts)

    def _said(self, first: int, last: int) -> tuple[int, str]:
        """The offset and the text of these deltas."""
        begin, end = self._ends[first - 1] if first else 0, self._ends[last]
        text = self._text
        if isinstance(text, str):
            return begin, text[begin:end]
        text.seek(begin)
        said = text.read(end - begin)
        text.seek(0, SEEK_END)
        return begin, said

    def joined(self, first: int, last: int, stamps: Stamps, missing_from: int) -> StreamEvent:
        """These plain deltas as one event, which declares every seq from `missing_from` up to its own.

        Subscribers at the same position get the same object, so that it is made and encoded once.
        """
        which = (first, last, missing_from, stamps)
        if self._last_joined is not None and self._last_joined[0] == which:
            return self._last_joined[1]
        offset, delta = self._said(first, last)
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
            None if self.screen is None else self.screen.covered_delta(delta, offset),
        )
        if not isinstance(self._text, str):  # after that it is rarely needed, and would be kept as long as the turn
            self._last_joined = (which, event)
        return event

    def event_after(self, seq: int) -> StreamEvent | None:
        """The next event after `seq`, a run of deltas as one event that declares the others; None at the end."""
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
