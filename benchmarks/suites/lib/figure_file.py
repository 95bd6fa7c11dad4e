"""Figures read back from a file that a suite or the race of the peers wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from footlights_bench.lib.result_file import UnreadableResult, read_json
from suites.lib.figures import Aim, Figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from suites.lib.figures import Unit

RACE = "peers"
_RATES: Sequence[tuple[str, str, Unit]] = (
    ("turns_per_second", "turns", "turns/s"),
    ("events_per_second", "events", "events/s"),
)


@frozen
class RecordedFigures:
    bench: str
    quick: bool
    machine: Mapping[str, Any]
    figures: Sequence[Figure]


def read_figures(file: Path) -> RecordedFigures:
    """Raises `UnreadableResult`."""
    read = read_json(file)
    try:
        bench = str(read["bench"])
        figures = list(_race_figures(read)) if bench == RACE else [_figure(each) for each in read["figures"]]
        return RecordedFigures(bench, bool(read["quick"]), dict(read["machine"]), figures)
    except (KeyError, TypeError, ValueError):
        raise UnreadableResult(f"{file} is not the result of a benchmark.") from None


def _figure(read: Mapping[str, Any]) -> Figure:
    aim = None if read["aim"] is None else Aim(read["aim"]["kind"], float(read["aim"]["bound"]))
    spread = {str(name): float(value) for name, value in read["spread"].items()}
    return Figure(str(read["subject"]), str(read["name"]), float(read["value"]), read["unit"], aim, spread)


def _race_figures(read: Mapping[str, Any]) -> Iterator[Figure]:
    for verdict in read["verdicts"]:
        # The best peer may change from run to run; the name of the figure must not.
        aim = Aim("at least", float(verdict["bound"]))
        yield Figure("better than the best peer", str(verdict["aim"]), float(verdict["value"]), "x", aim)
    for manner in ("yielding", "flooding"):
        for rate, what, unit in _RATES:
            for peer in read["results"]:
                laps = peer["turns"][manner][rate]
                spread = {"min": laps["low"], "max": laps["high"]}
                yield Figure(f"{what}, {manner} model", peer["name"], laps["median"], unit, None, spread)
        for peer in read["results"]:
            yield _percentiles(f"first event, {manner} model", peer["name"], peer["turns"][manner]["first_event"])
    for moment, subject in (("told", "cancel until the consumer knows"), ("stopped", "cancel until all has stopped")):
        for peer in read["results"]:
            yield _percentiles(subject, peer["name"], peer["cancel"][moment])
    for peer in read["results"]:
        if (weight := peer["weight"]) is not None:
            resident = {} if weight["resident"] is None else {"resident": weight["resident"]}
            yield Figure(
                "memory of a player with an open turn", peer["name"], weight["allocated"], "bytes", None, resident
            )


def _percentiles(subject: str, name: str, latency: Mapping[str, float]) -> Figure:
    return Figure(subject, name, latency["p50"], "µs", None, {"p99": latency["p99"]})
