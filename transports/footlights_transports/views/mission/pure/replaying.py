"""A recorded sequence of callouts, decided again. The same sequence gives the same decisions, in any process.

Entries are as in `recorded`. `policy_ts_ms` is the time of the decision; without it, that of the entry before.
Either all entries have a `policy_seq` or none has:

- With it, entries stand in the order of it, and everything is decided and ends in that order.
- Without it, entries stand in the order of their times, and what ended at the time of a decision ended before it. That
  is a guess: what happened within one millisecond, or in a server that goes by its clients' times, may differ.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from footlights.errors import InvalidCommand
from footlights_transports.views.mission.pure.history import History
from footlights_transports.views.mission.pure.policy import decide
from footlights_transports.views.mission.pure.recorded import Reader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from footlights_transports.views.mission.pure.policy import Decision
    from footlights_transports.views.mission.pure.recorded import Ending, Entry


def replay(entries: Iterable[Mapping[str, object]], history: History | None = None) -> Iterator[Decision]:
    """The decisions, one for each entry. Raises `InvalidCommand` at an entry that makes no sense."""
    replaying = _Replaying(history or History())
    try:
        for entry in entries:
            replaying.take(entry)
            yield from replaying.ended()
    except InvalidCommand:
        replaying.end_all()
        yield from replaying.ended()
        raise
    replaying.end_all()
    yield from replaying.ended()


class _Decided:
    """An entry that is decided, and how its voice will end."""

    def __init__(self, decision: Decision, ending: Ending | None, end_ms: int, end_place: int) -> None:
        self.decision = decision
        self.ending = ending
        self.end_ms = end_ms
        self.end_place = end_place


class _Replaying:
    """The sequence so far."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._reader = Reader()
        self._time_ms = 0
        self._last: Entry | None = None
        self._decided: deque[_Decided] = deque()
        """Those that were not handed out."""

    def take(self, fields: Mapping[str, object]) -> None:
        """Decide about an entry, after what ended before it."""
        entry = self._reader.read(fields)
        self._check_order(entry)
        self._last = entry
        request = entry.request
        self._time_ms = self._time_ms if request.policy_ts_ms is None else request.policy_ts_ms
        place = self._time_ms if entry.seq is None else entry.seq
        self._end_until(place)
        decision = decide(request.event, request.context, self._history, self._time_ms)
        if not request.dry_run:
            self._history = decision.history
        ending = entry.ending if decision.speak and not request.dry_run else None
        end_ms = self._time_ms if entry.ended_ms is None else max(entry.ended_ms, self._time_ms)
        end_place = end_ms if entry.ended_seq is None else entry.ended_seq
        self._decided.append(_Decided(decision, ending, end_ms, place if entry.ended_ms is None else end_place))
        if entry.ended_ms is None:
            self._end_until(place)

    def ended(self) -> Iterator[Decision]:
        """The decisions that nothing will change any more, as far as none before them is missing."""
        while self._decided and self._decided[0].ending is None:
            yield self._decided.popleft().decision

    def end_all(self) -> None:
        self._end_until(None)

    def _check_order(self, entry: Entry) -> None:
        if self._last is None:
            return
        if (entry.seq is None) is not (self._last.seq is None):
            raise InvalidCommand("policy_seq: either all entries have one or none has")
        if entry.seq is not None and self._last.seq is not None and entry.seq <= self._last.seq:
            raise InvalidCommand("policy_seq: must be greater than that of the entry before")

    def _end_until(self, place: int | None) -> None:
        """End the voices whose turn has come, in their order."""
        due = [each for each in self._decided if each.ending and (place is None or each.end_place <= place)]
        for each in sorted(due, key=lambda decided: decided.end_place):
            assert each.ending is not None, "it was due"
            each.decision = each.ending(each.decision, self._history, each.end_ms)
            self._history = each.decision.history
            each.ending = None
