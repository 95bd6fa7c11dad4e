"""What a benchmark found: named numbers, some with an aim, and whether it was met."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import field, frozen

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
    """What it is about; figures of one subject stand together."""
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


def percentile(samples: Sequence[float], percent: float) -> float:
    """The smallest sample that at least `percent` of all samples do not exceed: always one that was measured."""
    ordered = sorted(samples)
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)]
