"""Figures: the named numbers that a benchmark measured, some with an aim."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import field, frozen

from footlights_bench.lib.percentiles import percentile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Unit: TypeAlias = Literal["µs", "ms", "events/s", "commits/s", "turns/s", "x", "bytes", "blocks", "times"]


@frozen
class Aim:
    kind: Literal["below", "at most", "at least"]
    bound: float

    def is_met_by(self, value: float) -> bool:
        match self.kind:
            case "below":
                return value < self.bound
            case "at most":
                return value <= self.bound
            case "at least":
                return value >= self.bound


@frozen
class Figure:
    subject: str
    """The heading of the figure. Figures with the same subject stand together."""
    name: str
    value: float
    unit: Unit
    aim: Aim | None = None
    spread: Mapping[str, float] = field(factory=dict[str, float])
    """Other numbers of the same measurement, in the same unit."""

    @property
    def met(self) -> bool | None:
        """None if there is no aim."""
        return None if self.aim is None else self.aim.is_met_by(self.value)


def latency_figure(
    subject: str,
    name: str,
    seconds: Sequence[float],
    aim: Aim | None = None,
    *,
    percent: int = 99,
    also: Sequence[int] = (50,),
) -> Figure:
    """A percentile in microseconds; the spread holds other percentiles and the maximum."""
    micros = [second * 1e6 for second in seconds]
    spread = {f"p{each}": percentile(micros, each) for each in also} | {"max": max(micros)}
    return Figure(subject, name, percentile(micros, percent), "µs", aim, spread)


def median_figure(subject: str, name: str, laps: Sequence[float], unit: Unit, aim: Aim | None = None) -> Figure:
    """The median of repeated measurements; the spread holds the minimum and the maximum."""
    return Figure(subject, name, median(laps), unit, aim, {"min": min(laps), "max": max(laps)})
