"""Tally of a run: outcomes and latencies of all turns, and the records of some."""

from __future__ import annotations

from heapq import nlargest
from math import ceil, inf
from typing import TYPE_CHECKING

import trio
from attrs import Factory, define, frozen

from footlights.errors import LedgerUnavailable
from footlights.events import CommitFinal, EventType, InterruptReason, TurnInterrupted
from footlights_bench.scenario.definition import Metric
from footlights_bench.scenario.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from footlights.events import StreamEvent
    from footlights_bench.scenario.plan import Arrival

SHOWN_SLOWEST = 20
SHOWN_OTHERS = 40

FINAL = "final"
UNFINISHED = "unfinished"
CANCELED_ELSEWHERE = "canceled_elsewhere"


@define(eq=False)
class Marks:
    """When the player saw the events of a turn, in seconds after the start of the run."""

    accepted: float | None = None
    first_token: float | None = None
    ended: float | None = None
    committed: float | None = None
    reason: str | None = None
    """The reason of an interrupted turn."""
    is_kept: bool = True
    """Whether the ledger could write the commit. A commit that the rules refused is written too."""
    is_over: trio.Event = Factory(trio.Event)
    is_settled: trio.Event = Factory(trio.Event)

    def see(self, event: StreamEvent, now: float) -> None:
        match event.event_type:
            case EventType.TURN_ACCEPTED:
                self.accepted = now
            case EventType.TOKEN_DELTA if self.first_token is None:
                self.first_token = now
            case EventType.TURN_FINAL | EventType.TURN_INTERRUPTED:
                self.ended = now
                if isinstance(event.payload, TurnInterrupted):
                    self.reason = event.payload.reason
                self.is_over.set()
            case EventType.COMMIT_FINAL:
                self.committed = now
                if isinstance(event.payload, CommitFinal):
                    self.is_kept = all(issue.code != LedgerUnavailable.code for issue in event.payload.issues)
                self.is_settled.set()
            case _:
                pass


@frozen(kw_only=True)
class TurnRecord:
    """A turn in the report. Times are in seconds after the start."""

    number: int
    player: int
    due: float
    accepted: float | None
    first_token: float | None
    ended: float | None
    committed: float | None
    outcome: str
    """`final`, `canceled`, or for a failed turn a reason, an error code or `unfinished`."""

    @property
    def is_failed(self) -> bool:
        return self.outcome not in (FINAL, InterruptReason.CANCELED)

    @property
    def latency(self) -> float:
        return inf if self.is_failed or self.ended is None else self.ended - self.due


class Tally:
    """Counts turns. Those of the warm-up are only counted, not measured."""

    def __init__(self, *, planned: int, warm_up: float) -> None:
        self.histograms: Mapping[Metric, Histogram] = {metric: Histogram() for metric in Metric}
        self.outcomes: dict[str, int] = {}
        self.in_warm_up = 0
        self._warm_up = warm_up
        self._every = max(1, ceil(planned / SHOWN_OTHERS))
        self._others: list[TurnRecord] = []
        self._slowest: list[TurnRecord] = []

    def add(self, arrival: Arrival, marks: Marks, failure: str | None = None) -> None:
        """Add a turn that has settled or was given up."""
        if arrival.due < self._warm_up:
            self.in_warm_up += 1
            return
        record = _record(arrival, marks, failure)
        self.outcomes[record.outcome] = self.outcomes.get(record.outcome, 0) + 1
        self._measure(record, arrival.cancel_due)
        if record.number % self._every == 0:
            self._others.append(record)
        self._slowest = nlargest(SHOWN_SLOWEST, [*self._slowest, record], key=lambda each: each.latency)

    @property
    def turns(self) -> int:
        return sum(self.outcomes.values())

    @property
    def failed(self) -> int:
        return self.turns - self.outcomes.get(FINAL, 0) - self.outcomes.get(InterruptReason.CANCELED, 0)

    @property
    def shown(self) -> Sequence[TurnRecord]:
        """Records of the slowest turns, and of others evenly over the run, in order."""
        some = {record.number: record for record in (*self._others, *self._slowest)}
        return [some[number] for number in sorted(some)]

    def _measure(self, record: TurnRecord, cancel_due: float | None) -> None:
        self._note(Metric.ACCEPT, record.due, record.accepted)
        if cancel_due is None:
            self._measure_whole(record)
        else:
            self._measure_cancel(record, cancel_due)

    def _measure_whole(self, record: TurnRecord) -> None:
        """Called only for turns without a planned cancel, which would leave out the slow turns."""
        if record.first_token is not None or record.is_failed:
            self._note(Metric.FIRST_TOKEN, record.due, record.first_token)
        self._note(Metric.FINAL, record.due, None if record.is_failed else record.ended)
        self._note(Metric.COMMIT, record.due, None if record.is_failed else record.committed)

    def _measure_cancel(self, record: TurnRecord, cancel_due: float) -> None:
        """A turn that ended by itself after the cancel was due counts too: the player waited for it."""
        if record.is_failed:
            self._note(Metric.CANCEL, cancel_due, None)
        elif record.ended is not None and (record.outcome != FINAL or record.ended > cancel_due):
            self._note(Metric.CANCEL, cancel_due, record.ended)

    def _note(self, metric: Metric, since: float, seen: float | None) -> None:
        if seen is None:
            self.histograms[metric].fail()
        else:
            self.histograms[metric].record(seen - since)


def _record(arrival: Arrival, marks: Marks, failure: str | None) -> TurnRecord:
    if failure is None and marks.committed is None:
        failure = UNFINISHED
    elif marks.reason == InterruptReason.CANCELED and arrival.cancel_due is None:
        failure = CANCELED_ELSEWHERE
    elif not marks.is_kept:
        failure = LedgerUnavailable.code
    return TurnRecord(
        number=arrival.number,
        player=arrival.player,
        due=arrival.due,
        accepted=marks.accepted,
        first_token=marks.first_token,
        ended=marks.ended,
        committed=marks.committed,
        outcome=failure or marks.reason or FINAL,
    )
