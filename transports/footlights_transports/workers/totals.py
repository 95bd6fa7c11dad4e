"""Totals of metrics: the metrics of several processes as those of one, in Prometheus' text format. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def added_up(texts: Iterable[str]) -> str:
    """The sum of each sample. All our metrics are counts or amounts, so that sums mean something."""
    families: dict[str, dict[str, float]] = {}
    """The samples by the lines that describe their metric."""
    for text in texts:
        described, samples = "", dict[str, float]()
        for line in text.splitlines():
            if line.startswith("# HELP"):
                described = line
            elif line.startswith("# TYPE"):
                samples = families.setdefault(f"{described}\n{line}", {})
            elif line:
                sample, _, value = line.rpartition(" ")
                samples[sample] = samples.get(sample, 0.0) + float(value)
    return "".join(
        f"{described}\n" + "".join(f"{sample} {value!r}\n" for sample, value in samples.items())
        for described, samples in families.items()
    )
