"""The result of a race as tables in Markdown, which are for people in the terminal too, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import asdict, frozen

from peers.entrants import OURS
from peers.results import verdicts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights_bench.lib.machine import Machine
    from peers.entrants import Skipped
    from peers.kit import Manner
    from peers.laps import Pace
    from peers.results import Latency, Result, Spread

Row: TypeAlias = tuple[str, ...]

_TURNS: Row = (
    "",
    "turns/s",
    "laps",
    "Footlights is faster",
    "turns/CPU s",
    "Footlights is cheaper",
    "events/s",
    "objects/s",
    "first event p50",
    "p99",
    "first token p50",
)
_CANCELS: Row = (
    "",
    "consumer knows p50",
    "p99",
    "Footlights is sooner",
    "all stopped p50",
    "p99",
    "Footlights is sooner",
)
_MEMORY: Row = ("", "allocated by Python", "resident")


@frozen
class RaceReport:
    machine: Machine
    pace: Pace
    stages: int
    results: Sequence[Result]
    skipped: Sequence[Skipped]

    def to_json(self) -> dict[str, Any]:
        judged = [{**asdict(verdict), "met": verdict.met} for verdict in verdicts(self.results)]
        # A peer's weight is a dataclass, since the peers have no attrs.
        weighed = [
            {**asdict(result), "weight": None if result.weight is None else vars(result.weight)}
            for result in self.results
        ]
        return {**asdict(self), "results": weighed, "verdicts": judged}

    def to_markdown(self) -> str:
        parts = [
            self._facts(),
            *[f"*** SKIPPED: {peer.name}: {peer.reason} ***" for peer in self.skipped],
            f"### Turns, yielding model\n\n{self._turns('yielding')}",
            f"### Turns, flooding model\n\n{self._turns('flooding')}",
            f"### Cancel in the middle of a turn\n\n{self._cancels()}",
            f"### Memory of a player with an open turn\n\n{self._memory()}",
            f"### Aims\n\n{self._aims()}",
        ]
        return "\n\n".join(parts) + "\n"

    def _facts(self) -> str:
        machine = self.machine
        load = "unknown" if machine.load_average is None else f"{machine.load_average:.1f}"
        packages = {name: version for result in self.results for name, version in result.packages.items()}
        return (
            f"{machine.system}, {machine.architecture}, {machine.cpus} CPUs, load {load} in the minute before;"
            f" {machine.python}; {', '.join(f'{name} {version}' for name, version in packages.items())}."
            f" {self.pace.laps} laps of about {self.pace.lap_seconds} s, alternating; {self.stages} stages."
        )

    def _turns(self, manner: Manner) -> str:
        return _table(_TURNS, [_turns_row(result, manner) for result in self.results])

    def _cancels(self) -> str:
        return _table(_CANCELS, [_cancel_row(result) for result in self.results])

    def _memory(self) -> str:
        return _table(_MEMORY, [_memory_row(result) for result in self.results])

    def _aims(self) -> str:
        heading = ("", "best peer", "Footlights is better", "aim", "met")
        rows = [
            (verdict.aim, verdict.rival, _times(verdict.value), f"≥ {_times(verdict.bound)}", _met(verdict.met))
            for verdict in verdicts(self.results)
        ]
        return _table(heading, rows)


def _turns_row(result: Result, manner: Manner) -> Row:
    turns = result.turns[manner]
    rate = turns.turns_per_second
    return (
        result.name,
        f"{rate.median:,.0f}",
        f"{rate.low:,.0f} to {rate.high:,.0f}",
        _lead(result, turns.ours_is_faster),
        f"{turns.turns_per_cpu_second.median:,.0f}",
        _lead(result, turns.ours_is_cheaper),
        f"{turns.events_per_second.median:,.0f}",
        f"{turns.given_per_second.median:,.0f}",
        *_micros(turns.first_event),
        _micros(turns.first_token)[0],
    )


def _cancel_row(result: Result) -> Row:
    cancel = result.cancel
    return (
        result.name,
        *_micros(cancel.told),
        _lead(result, cancel.ours_tells_sooner),
        *_micros(cancel.stopped),
        _lead(result, cancel.ours_stops_sooner),
    )


def _memory_row(result: Result) -> Row:
    weight = result.weight
    if weight is None:
        return (result.name, "", "")
    return (result.name, _kibibytes(weight.allocated), "" if weight.resident is None else _kibibytes(weight.resident))


def _lead(result: Result, lead: Spread) -> str:
    return "" if result.name == OURS else f"{_times(lead.median)} ({lead.low:.1f} to {lead.high:.1f})"


def _times(value: float) -> str:
    return f"{value:.1f}x"


def _met(met: bool) -> str:
    return "yes" if met else "NO"


def _micros(latency: Latency) -> tuple[str, str]:
    return f"{latency.p50:,.0f} µs", f"{latency.p99:,.0f} µs"


def _kibibytes(size: float) -> str:
    return f"{size / 1024:,.0f} KiB"


def _table(heading: Row, rows: Sequence[Row]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(heading, *rows, strict=True)]

    def line(row: Row) -> str:
        first, *others = row
        cells = [first.ljust(widths[0]), *[cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]]
        return f"| {' | '.join(cells)} |"

    rule = f"|{'-' * (widths[0] + 2)}|{'|'.join('-' * (width + 1) + ':' for width in widths[1:])}|"
    return "\n".join([line(heading), rule, *map(line, rows)])
