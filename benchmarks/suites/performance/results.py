"""Results that `make performance` keeps: one file for each suite, and one with the facts of each run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from attrs import asdict, evolve, field, frozen

from footlights_bench.lib.result_file import read_json
from footlights_bench.scenario.report.text import ms
from footlights_bench.scenario.verdict import percentile_name
from suites.lib.figure_file import read_figures
from suites.lib.report import row
from suites.performance.suites import Kind, Suite

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_RUNS = "runs.json"
_ONLY_FOR_PLOTS = ("samples", "timelines", "laps")


@frozen(kw_only=True)
class Taken:
    """The facts of a run, and the failure of a later attempt if there was one."""

    at: str
    """The start of the run, in UTC."""
    commit: str | None
    changed: bool
    """Whether files differed from that commit."""
    seconds: float
    others: float | None
    """The share of the processors that other programs used."""
    trouble: str | None = None
    """Why the last attempt gave no result. An older result may exist."""


@frozen
class Line:
    """A figure as text."""

    subject: str
    name: str
    value: str
    also: str = ""
    aim: str = ""
    met: bool | None = None
    """None if there is no aim, or if the run is not judged."""


@frozen
class Measured:
    suite: str
    quick: bool
    machine: Mapping[str, Any]
    lines: Sequence[Line] = field(converter=tuple[Line, ...])

    @property
    def missed(self) -> Sequence[str]:
        """The full names of the figures that missed their aims."""
        return [f"{self.suite}: {line.subject}: {line.name}" for line in self.lines if line.met is False]

    @property
    def judged(self) -> int:
        return sum(line.met is not None for line in self.lines)


class Results:
    """The results in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def runs(self) -> dict[str, Taken]:
        file = self._folder / _RUNS
        return {name: Taken(**each) for name, each in read_json(file).items()} if file.exists() else {}

    def keep(self, suite: Suite, result: Path, taken: Taken) -> None:
        """Replace the result of the suite."""
        found = read_json(result)
        for name in _ONLY_FOR_PLOTS:
            found.pop(name, None)
        self._write(self._file(suite), found, indent=None if suite.kind is Kind.SCENARIO else 2)
        self._write_run(suite, taken)

    def note_trouble(self, suite: Suite, taken: Taken) -> None:
        """Record a failure. The older result stays, with its date."""
        old = self.runs().get(suite.name) if self._file(suite).exists() else None
        self._write_run(suite, evolve(old or taken, trouble=taken.trouble))

    def measured(self, suite: Suite) -> Measured | None:
        """Raises `UnreadableResult`."""
        file = self._file(suite)
        if not file.exists():
            return None
        if suite.kind is Kind.SCENARIO:
            found = read_json(file)
            return Measured(suite.name, found["quick"], found["machine"], _scenario_lines(found))
        recorded = read_figures(file)
        lines = [Line(figure.subject, figure.name, *row(figure)[1:4], figure.met) for figure in recorded.figures]
        return Measured(suite.name, recorded.quick, recorded.machine, _unjudged(lines) if recorded.quick else lines)

    def _file(self, suite: Suite) -> Path:
        return self._folder / f"{suite.name}.json"

    def _write_run(self, suite: Suite, taken: Taken) -> None:
        runs = {name: asdict(each) for name, each in {**self.runs(), suite.name: taken}.items()}
        self._write(self._folder / _RUNS, dict(sorted(runs.items())), indent=2)

    def _write(self, file: Path, what: Mapping[str, Any], indent: int | None) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(what, ensure_ascii=False, indent=indent) + "\n", encoding="utf-8")


def _unjudged(lines: Sequence[Line]) -> list[Line]:
    return [Line(line.subject, line.name, line.value, line.also, line.aim) for line in lines]


def _scenario_lines(found: Mapping[str, Any]) -> Iterator[Line]:
    load = found["scenario"]["load"]
    players = f"{load['sessions']:,} players, {load['turns_per_second']:g} turns/s"
    for verdict in found["verdicts"]:
        target = verdict["target"]
        name = f"{target['name']}: {target['metric']} {percentile_name(target['percentile'])}"
        alone = "" if target["at_most_ratio"] is None else f" ({target['at_most_ratio']:g}x alone)"
        bound = f"≤ {ms(verdict['bound_ms'])} ms{alone}"
        yield Line(players, name, _ms(verdict["measured_ms"]), f"{verdict['turns']:,} turns", bound, verdict["met"])
    for metric, latency in found["latencies"].items():
        also = ", ".join(f"{name} {ms(latency['ms'][name])}" for name in ("p90", "p99", "max"))
        yield Line(players, f"{metric}, p50", _ms(latency["ms"]["p50"]), also)


def _ms(value: float | None) -> str:
    return ms(value) if value is None else f"{ms(value)} ms"
