"""Fast-path budget: tokens that a turn may append before it consults the outboxes again.

Most tokens change nothing but the turn's text: the turn stays in its state, and in each outbox the run of deltas at the
end of the turn's lane grows by one. So a token need not be put into each outbox. An outbox says up to which seq, how
many bytes and until when the next tokens need nothing from it, and the turn's budget is the minimum over its outboxes.
Within the budget, `Turn.say` appends to the text and does nothing else, however many subscribers there are.

Why it is correct:

- A lane stores a growing run as the seq of its first delta only. The last one is always the turn's newest delta, so
  appending a token extends the run in every lane at once, without touching the lanes.
- Everything that could make a token matter to an outbox lies in the budget or ends it. The limits on events and bytes
  per turn become `until_seq` and `until_bytes`, the moment at which a subscriber that takes nothing is detached becomes
  `until_time`. Any other event of the turn, a take by a subscriber, and a new subscriber set `until_seq` to `NONE`.
- A subscriber must be woken by the first delta after it took everything. Taking ends the budget, so that delta goes the
  slow way, through every outbox.
- A cancel changes the state and ends the budget in one plain call, so the next token meets the lifecycle check.

Rejected: one queue entry for each token and subscriber (the cost of a token grows with its subscribers), and a timer
that flushes tokens in batches (it adds latency to the first one).
"""

from __future__ import annotations

from math import inf

NONE = 0
WITHOUT_END = 1 << 62


class FastPathBudget:
    """A delta is within the budget if its seq is below `until_seq`, if the turn has said no more than `until_bytes`
    with it, and if it comes no later than `until_time`. Setting `until_seq` to `NONE` ends the budget.
    """

    __slots__ = ("until_bytes", "until_seq", "until_time")

    def __init__(self) -> None:
        self.until_seq = NONE
        self.until_bytes = 0
        self.until_time = -inf

    def narrow(self, seq: int, size: int, time: float) -> None:
        if seq < self.until_seq:
            self.until_seq = seq
        if size < self.until_bytes:
            self.until_bytes = size
        if time < self.until_time:
            self.until_time = time
