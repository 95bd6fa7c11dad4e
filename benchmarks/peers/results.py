"""Results of a race: the numbers of each entrant, and their ratios to those of Footlights in the same laps."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from attrs import frozen

from footlights_bench.lib.percentiles import percentile
from peers.entrants import OURS
from peers.laps import MANNERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from peers.kit import Cancelled, Manner, Weight
    from peers.laps import Record, TurnsLap

TURNS_AIM = 5.0
CANCEL_AIM = 10.0
_MICROS = 1e6


@frozen
class Spread:
    """Of the laps."""

    median: float
    low: float
    high: float


@frozen
class Latency:
    """In microseconds, of all samples of all laps."""

    p50: float
    p99: float


@frozen
class TurnsResult:
    turns_per_second: Spread
    turns_per_cpu_second: Spread
    events_per_second: Spread
    given_per_second: Spread
    first_event: Latency
    first_token: Latency
    ours_is_faster: Spread
    """How many times as many turns a second Footlights plays, in the same lap."""
    ours_is_cheaper: Spread
    """The same per second of processor time, which depends less on other load."""


@frozen
class CancelResult:
    told: Latency
    stopped: Latency
    ours_tells_sooner: Spread
    """How many times as long it takes until the consumer knows, by the medians of the same lap."""
    ours_stops_sooner: Spread


@frozen
class Result:
    name: str
    packages: Mapping[str, str]
    is_floor: bool
    turns: Mapping[Manner, TurnsResult]
    cancel: CancelResult
    weight: Weight | None


@frozen
class Verdict:
    """An aim, measured against the best of the peers."""

    aim: str
    rival: str
    value: float
    bound: float

    @property
    def met(self) -> bool:
        return self.value >= self.bound


def results(records: Sequence[Record]) -> list[Result]:
    """In the order of the records, of which one is that of Footlights."""
    [ours] = [record for record in records if record.entrant.name == OURS]
    return [_result(record, ours) for record in records]


def verdicts(found: Sequence[Result]) -> list[Verdict]:
    """Without rivals there are none."""
    rivals = [result for result in found if result.name != OURS and not result.is_floor]
    if not rivals:
        return []
    return [
        *[verdict for manner in MANNERS for verdict in _turns_verdicts(rivals, manner)],
        _best("cancel until the consumer knows", CANCEL_AIM, rivals, [r.cancel.ours_tells_sooner for r in rivals]),
        _best("cancel until all has stopped", CANCEL_AIM, rivals, [r.cancel.ours_stops_sooner for r in rivals]),
    ]


def _turns_verdicts(rivals: Sequence[Result], manner: Manner) -> list[Verdict]:
    turns = [rival.turns[manner] for rival in rivals]
    return [
        _best(f"turns/s, {manner} model", TURNS_AIM, rivals, [found.ours_is_faster for found in turns]),
        _best(f"turns per CPU second, {manner} model", TURNS_AIM, rivals, [found.ours_is_cheaper for found in turns]),
    ]


def _best(aim: str, bound: float, rivals: Sequence[Result], leads: Sequence[Spread]) -> Verdict:
    lead, rival = min(zip(leads, rivals, strict=True), key=lambda pair: pair[0].median)
    return Verdict(aim, rival.name, lead.median, bound)


def _result(theirs: Record, ours: Record) -> Result:
    return Result(
        theirs.entrant.name,
        theirs.packages,
        theirs.entrant.is_floor,
        {manner: _turns_result(theirs.turns[manner], ours.turns[manner]) for manner in MANNERS},
        _cancel_result(theirs.cancels, ours.cancels),
        theirs.weight,
    )


def _turns_result(theirs: Sequence[TurnsLap], ours: Sequence[TurnsLap]) -> TurnsResult:
    pairs = list(zip(theirs, ours, strict=True))
    return TurnsResult(
        turns_per_second=_spread(lap.turns_per_second for lap in theirs),
        turns_per_cpu_second=_spread(lap.turns_per_cpu_second for lap in theirs),
        events_per_second=_spread(lap.played.events / lap.played.seconds for lap in theirs),
        given_per_second=_spread(lap.played.given / lap.played.seconds for lap in theirs),
        first_event=_latency(lap.played.first_event for lap in theirs),
        first_token=_latency(lap.played.first_token for lap in theirs),
        ours_is_faster=_spread(our.turns_per_second / their.turns_per_second for their, our in pairs),
        ours_is_cheaper=_spread(our.turns_per_cpu_second / their.turns_per_cpu_second for their, our in pairs),
    )


def _cancel_result(theirs: Sequence[Cancelled], ours: Sequence[Cancelled]) -> CancelResult:
    pairs = list(zip(theirs, ours, strict=True))
    return CancelResult(
        told=_latency(lap.told for lap in theirs),
        stopped=_latency(lap.stopped for lap in theirs),
        ours_tells_sooner=_spread(median(their.told) / median(our.told) for their, our in pairs),
        ours_stops_sooner=_spread(median(their.stopped) / median(our.stopped) for their, our in pairs),
    )


def _spread(values: Iterable[float]) -> Spread:
    laps = list(values)
    return Spread(median(laps), min(laps), max(laps))


def _latency(laps: Iterable[Sequence[float]]) -> Latency:
    micros = [second * _MICROS for lap in laps for second in lap]
    return Latency(percentile(micros, 50), percentile(micros, 99))
