"""Percentiles of samples that were all kept."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def percentile(samples: Sequence[float], percent: float) -> float:
    """The smallest sample that at least `percent` of the samples do not exceed; never an interpolated value."""
    ordered = sorted(samples)
    return ordered[max(0, ceil(len(ordered) * percent / 100) - 1)]
