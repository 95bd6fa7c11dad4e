"""Tally of a run: outcomes and latencies of all turns, and the records of some."""

from __future__ import annotations

from heapq import nlargest
from math import ceil, inf
from typing import TYPE_CHECKING

import trio
from attrs import Factory, define, evolve, frozen

from footlights.errors import LedgerUnavailable
from footlights.events import CommitFinal, EventType, InterruptReason, TurnInterrupted
from footlights_bench.scenario.definition import Metric
from footlights_bench.scenario.histogram import Histogram
from footlights_bench.scenario.parts import STAMPED, Part, Timeline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from footlights.events import StreamEvent
    from footlights_bench.scenario.plan import Arrival

SLICES = 10
"""Equal parts of the measurement, each with its goodput: how a ramp is seen."""

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
    selected: float | None = None
    """When the last model was selected, until it is seen to load."""
    loading: float | None = None
    """How long after the selection of its model the player saw that it is loading."""
    last_token: float | None = None
    gaps: list[float] = Factory(list[float])
    """From each piece of text to the next."""
    timeline: Timeline = Factory(Timeline)
    reason: str | None = None
    """The reason of an interrupted turn."""
    error: str | None = None
    """What the server said was wrong."""
    is_kept: bool = True
    """Whether the ledger could write the commit. A commit that the rules refused is written too."""
    is_over: trio.Event = Factory(trio.Event)
    is_settled: trio.Event = Factory(trio.Event)

    def see(self, event: StreamEvent, now: float) -> None:
        self.timeline.see(event)
        match event.event_type:
            case EventType.TOKEN_DELTA:
                if self.last_token is None:
                    self.first_token = now
                else:
                    self.gaps.append(now - self.last_token)
                self.last_token = now
            case EventType.TURN_ACCEPTED:
                self.accepted = now
            case EventType.MODEL_SELECTED:
                self.selected = now
            case EventType.MODEL_LOADING if self.selected is not None:
                self.loading, self.selected = now - self.selected, None
            case EventType.TURN_FINAL | EventType.TURN_INTERRUPTED:
                self.ended = now
                if isinstance(event.payload, TurnInterrupted):
                    self.reason = event.payload.reason
                    if (error := event.payload.error) is not None:
                        self.error = f"{error.code}: {error.message}"
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
    latencies: Mapping[Metric, float]
    """The metrics that the turn has, in seconds; infinite if it failed."""

    @property
    def is_failed(self) -> bool:
        return self.outcome not in (FINAL, InterruptReason.CANCELED)

    @property
    def latency(self) -> float:
        return inf if self.is_failed or self.ended is None else self.ended - self.due


class Tally:
    """Counts turns. Those of the warm-up are only counted, not measured."""

    def __init__(
        self, *, planned: int, warm_up: float, duration: float = 1.0, bounds: Mapping[Metric, float] | None = None
    ) -> None:
        """`bounds` are the seconds within which each metric of a good turn is."""
        self.histograms: Mapping[Metric, Histogram] = {metric: Histogram() for metric in Metric}
        self.parts: Mapping[Part, Histogram] = {part: Histogram() for part in STAMPED}
        self.outcomes: dict[str, int] = {}
        self.in_warm_up = 0
        self.good = [0] * SLICES
        """Turns that met every bound, by when they were due."""
        self.due = [0] * SLICES
        self.planned = planned
        self._warm_up = warm_up
        self._duration = duration
        self._bounds = bounds or {}
        self._every = max(1, ceil(planned / SHOWN_OTHERS))
        self._others: list[TurnRecord] = []
        self._slowest: list[TurnRecord] = []

    def add(self, arrival: Arrival, marks: Marks, failure: str | None = None) -> TurnRecord | None:
        """Add a turn that has settled or was given up. None if it belongs to the warm-up."""
        if arrival.due < self._warm_up:
            self.in_warm_up += 1
            return None
        record = _record(arrival, marks, failure)
        self.outcomes[record.outcome] = self.outcomes.get(record.outcome, 0) + 1
        self._measure(record, marks)
        if record.number % self._every == 0:
            self._others.append(record)
        self._slowest = nlargest(SHOWN_SLOWEST, [*self._slowest, record], key=lambda each: each.latency)
        return record

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

    def _measure(self, record: TurnRecord, marks: Marks) -> None:
        for metric, seconds in record.latencies.items():
            if seconds == inf:
                self.histograms[metric].fail()
            else:
                self.histograms[metric].record(seconds)
        for gap in marks.gaps:
            self.histograms[Metric.INTER_TOKEN].record(gap)
        place = min(SLICES - 1, int((record.due - self._warm_up) / self._duration * SLICES))
        self.due[place] += 1
        if not record.is_failed:
            self._measure_parts(marks)
            self.good[place] += self._is_good(record, marks)

    def _measure_parts(self, marks: Marks) -> None:
        for part, milliseconds in marks.timeline.ms.items():
            self.parts[part].record(milliseconds / 1e3)

    def _is_good(self, record: TurnRecord, marks: Marks) -> bool:
        slowest = {**record.latencies, Metric.INTER_TOKEN: max(marks.gaps, default=0.0)}
        return all(slowest.get(metric, 0.0) <= bound for metric, bound in self._bounds.items())


def _latencies(record: TurnRecord, cancel_due: float | None, loading: float | None) -> dict[Metric, float]:
    """The latencies of a turn. One with a planned cancel has no others than that: the slow ones would be left out."""

    def since(start: float, seen: float | None) -> float:
        return inf if seen is None else seen - start

    found = {Metric.ACCEPT: since(record.due, record.accepted)}
    if loading is not None:
        found[Metric.MODEL_LOADING] = loading
    ended = None if record.is_failed else record.ended
    if cancel_due is None:
        if record.first_token is not None or record.is_failed:
            found[Metric.FIRST_TOKEN] = since(record.due, record.first_token)
        found[Metric.FINAL] = since(record.due, ended)
        found[Metric.COMMIT] = since(record.due, None if record.is_failed else record.committed)
    # A turn that ended by itself after the cancel was due counts too: the player waited for it.
    elif record.is_failed or (record.ended is not None and (record.outcome != FINAL or record.ended > cancel_due)):
        found[Metric.CANCEL] = since(cancel_due, ended)
    return found


def _record(arrival: Arrival, marks: Marks, failure: str | None) -> TurnRecord:
    if failure is None and marks.committed is None:
        failure = UNFINISHED
    elif marks.reason == InterruptReason.CANCELED and arrival.cancel_due is None:
        failure = CANCELED_ELSEWHERE
    elif not marks.is_kept:
        failure = LedgerUnavailable.code
    record = TurnRecord(
        number=arrival.number,
        player=arrival.player,
        due=arrival.due,
        accepted=marks.accepted,
        first_token=marks.first_token,
        ended=marks.ended,
        committed=marks.committed,
        outcome=failure or marks.reason or FINAL,
        latencies={},
    )
    return evolve(record, latencies=_latencies(record, arrival.cancel_due, marks.loading))
