"""Laws of seq and of dropped ranges: an event follows the previous one, or declares exactly the gap before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from footlights.laws.law_texts import RESTART_SEQ

if TYPE_CHECKING:
    from footlights.events import SeqRange
    from footlights.laws.gap_places import Hidden
    from footlights.laws.law_texts import Report


class Sequence:
    def __init__(self, report: Report, hidden: Hidden, seen: int) -> None:
        """`seen` is the last seq that the subscriber had before it resumed; -1 for none."""
        self._report = report
        self._hidden = hidden
        self._last = seen
        hidden.add(1, seen)  # seq 0 was turn_accepted; the types of the others are not known here

    def admit(self, seq: int, ranges: tuple[SeqRange, ...] | None, *, ended: bool) -> bool:
        """Judge an event's seq; False if it is out of order, and must not be judged further.

        `ranges` is None if they could not be read. `ended` means that the terminal event has come.
        """
        if seq <= self._last:
            self._report("seq_increasing", seq, f"came after seq {self._last}")
            return False
        start, self._last = self._last + 1, seq
        if ranges is not None:
            self._judge_gap(start, seq, ranges, ended=ended)
        # An undeclared gap is reported once; it then hides as much as a declared one.
        self._hidden.add(start, seq - 1)
        return True

    def _judge_gap(self, start: int, seq: int, ranges: tuple[SeqRange, ...], *, ended: bool) -> None:
        restarted = seq >= RESTART_SEQ
        if start == 0 and seq > 0 and not restarted:
            self._judge_beginning(seq, ranges)
            return
        if ranges and (ranges[0].start_seq < start or ranges[-1].end_seq >= seq):
            self._report("range_exact", seq, "declares as dropped what was not missing before it")
        missing = _first_undeclared(start, ranges)
        if missing < seq:
            self._report("seq_gap", seq, f"came although seq {missing} neither came nor was declared dropped")
        elif start < seq and ended and not restarted:
            self._report("range_must_deliver", seq, "declares events dropped where nothing can have been")

    def _judge_beginning(self, seq: int, ranges: tuple[SeqRange, ...]) -> None:
        if ranges and ranges[0].start_seq == 0:
            self._report("range_must_deliver", seq, "declares turn_accepted dropped")
        else:
            self._report("seq_first", seq, "is the first event of a turn that was not resumed")


def _first_undeclared(start: int, ranges: tuple[SeqRange, ...]) -> int:
    for each in ranges:
        if each.start_seq > start:
            break
        start = max(start, each.end_seq + 1)
    return start
