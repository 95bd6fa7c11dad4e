"""Laws of the text of a turn: deltas join without a hole, and turn_final and heard repeat the text exactly.

Offsets and lengths are in code points. Sentences name positions in the text and never quote it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from footlights.laws.law_texts import RESTART_SEQ

if TYPE_CHECKING:
    from footlights.events import Heard, TokenDelta, TurnFinal
    from footlights.laws.gap_places import Hidden
    from footlights.laws.law_texts import Report


@frozen
class _Piece:
    seq: int
    offset: int
    delta: str
    may_be_joined: bool
    """Events were dropped right before it, so it may contain their text."""

    @property
    def end(self) -> int:
        return self.offset + len(self.delta)


class Text:
    def __init__(self, report: Report, hidden: Hidden) -> None:
        self._report = report
        self._hidden = hidden
        self._pieces: list[_Piece] = []
        self._end = 0
        self._last_seq = 0
        self._lost = False
        """An offset was wrong, so the positions of later text are unknown."""

    def delta(self, seq: int, payload: TokenDelta) -> None:
        skipped = payload.offset - self._end
        if skipped < 0 or (skipped > 0 and not self._hidden.take(self._last_seq)):
            self._report("token_offset", seq, f"has offset {payload.offset} where the text ends at {self._end}")
            self._lost = True
        piece = _Piece(seq, payload.offset, payload.delta, bool(payload.dropped_seq_ranges))
        self._pieces.append(piece)
        self._end = piece.end
        self._last_seq = seq

    def final(self, seq: int, text: str) -> None:
        if self._lost:
            return
        for piece in self._pieces:
            if not text.startswith(piece.delta, piece.offset):
                self._report("final_text", seq, f"does not repeat the delta of seq {piece.seq} at its offset")
                return
        if len(text) > self._end and not self._hidden.take(self._last_seq):
            self._report("final_text", seq, f"goes on after {self._end}, where the text that was sent ends")

    def forgotten(self, seq: int, payload: TurnFinal) -> None:
        """Judge a turn_final that comes from the ledger, or that claims to."""
        if seq < RESTART_SEQ:
            self._report("text_forgotten", seq, "has forgotten the text that its own runtime sent")
        elif not payload.text_forgotten:
            self._report("text_forgotten", seq, "does not say that the text is gone, as it is after a restart")
        elif payload.text:
            self._report("text_forgotten", seq, "has a text that it says is gone")

    def heard(self, seq: int, heard: Heard) -> None:
        if heard.seq > seq:
            self._report("heard", seq, f"says that seq {heard.seq} was heard, which had not been sent")
        elif not self._lost and not self._is_text_up_to(heard):
            self._report("heard", seq, f"says that something was heard which is not the text up to seq {heard.seq}")

    def _is_text_up_to(self, heard: Heard) -> bool:
        low, high = self._bounds(heard.seq)
        length = len(heard.text)
        if length < low or (high is not None and length > high):
            return False
        return all(
            heard.text.startswith(piece.delta[: length - piece.offset], piece.offset)
            for piece in self._pieces
            if piece.offset < length
        )

    def _bounds(self, seq: int) -> tuple[int, int | None]:
        """Minimum and maximum length of the text up to `seq`, as far as this subscriber can know."""
        low = 0
        for piece in self._pieces:
            if piece.seq > seq:
                return low, piece.end - 1 if piece.may_be_joined else piece.offset
            low = piece.end
        unseen = self._hidden.between(self._last_seq, seq)
        return low, None if unseen else low
