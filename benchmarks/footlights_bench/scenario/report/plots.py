"""Plots of a result: latency by percentile, rates and queues over time, and timelines of turns."""

from __future__ import annotations

from html import escape
from math import ceil, log10
from typing import TYPE_CHECKING, TypeAlias

from footlights.events import InterruptReason
from footlights_bench.scenario.report.svg import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    Series,
    figure,
    legend,
    line_plot,
    linear_axis,
    log_axis,
    ticks_below,
    whole_axis,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from footlights_bench.scenario.definition import Metric
    from footlights_bench.scenario.histogram import Histogram
    from footlights_bench.scenario.run import Sample
    from footlights_bench.scenario.tally import TurnRecord
    from footlights_bench.scenario.verdict import Verdict

Point: TypeAlias = tuple[float, float]

_POINTS = 200
_RATES = 20
_ROW = 9
_LEAST_MS = 0.001
_STAGES = {
    "accept": "until accepted",
    "first": "until the first token",
    "speak": "until the end",
    "commit": "until committed",
}
_STOPPED = "stopped"
_NINES = ("0 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %")


def percentile_curves(latencies: Mapping[Metric, Histogram], verdicts: Sequence[Verdict] = ()) -> str:
    """Latency by percentile on a scale that widens the slowest turns, with the targets."""
    series = [
        Series(metric, list(_curve(histogram)), list(_bounds(metric, histogram, verdicts)))
        for metric, histogram in latencies.items()
    ]
    points = [point for each in series if each.points for point in (*each.points, *each.bounds)]
    nines = int(max([x for x, _ in points] or [0.0])) + 1
    ticks = [(0, _NINES[0]), (log10(2), "50 %"), *((each, _NINES[min(each, 6)]) for each in range(1, nines + 1))]
    down = log_axis("ms", [y for _, y in points])
    title = "Latency by percentile; brackets mark targets." if verdicts else "Latency by percentile"
    return line_plot(title, Axis("of the turns", 0, nines, ticks), down, series)


def _bounds(metric: Metric, histogram: Histogram, verdicts: Sequence[Verdict]) -> Iterator[Point]:
    """The points of the targets of a metric; a target for the maximum is at the end of the curve."""
    for verdict in verdicts:
        # A bound of 0, from a baseline of 0, has no logarithm.
        if verdict.target.metric is metric and verdict.bound and verdict.target.percentile and histogram.count:
            share = min(verdict.target.percentile / 100, 1 - 0.5 / histogram.count)
            yield -log10(1 - share), log10(verdict.bound)


def _curve(histogram: Histogram) -> Iterator[Point]:
    """Turns with the same latency make a horizontal line from the middle of the first to that of the last."""
    count, passed, drawn, least = histogram.count, 0, -1.0, 6 / _POINTS
    for seconds, number in histogram:
        level = log10(max(seconds * 1e3, _LEAST_MS))
        first, last = (-log10(1 - place / count) for place in (passed + 0.5, passed + number - 0.5))
        passed += number
        if last - first >= least:
            yield first, level
        if last - drawn >= least or passed == count:
            drawn = last
            yield last, level


def throughput(samples: Sequence[Sample], warm_up: float) -> str:
    lines = {
        "due": _rate(samples, lambda sample: sample.begun),
        "over": _rate(samples, lambda sample: sample.finished),
    }
    return _over_time("Turns per second", "turns/s", samples, lines, warm_up)


def event_rate(samples: Sequence[Sample], warm_up: float) -> str:
    lines = {"events": _rate(samples, lambda sample: sample.events)}
    return _over_time("Events per second that players received", "events/s", samples, lines, warm_up)


def queues(samples: Sequence[Sample], warm_up: float) -> str:
    """Open turns and waiting commits in one plot; waiting events, which are many more, in another."""
    turns = {"open turns": _level(samples, lambda sample: sample.open_turns)}
    if not any(sample.depths for sample in samples):
        return _over_time("Open turns", "turns", samples, turns, warm_up)
    turns["waiting commits"] = _level(samples, lambda sample: sample.depths.commits_waiting if sample.depths else 0)
    waiting = _level(samples, lambda sample: sample.depths.events_waiting if sample.depths else 0)
    return _over_time("Open turns and waiting commits", "turns", samples, turns, warm_up) + _over_time(
        "Events waiting for subscribers", "events", samples, {"waiting events": waiting}, warm_up
    )


def losses(samples: Sequence[Sample], warm_up: float) -> str:
    """A sentence instead of an empty plot if nothing was lost."""
    lines = {"turns failed": _level(samples, lambda sample: sample.failed)}
    title = "Failed turns since the start"
    nothing = "No turn failed. Events that the server dropped cannot be seen from outside."
    if any(sample.depths for sample in samples):
        lines["events dropped"] = _level(samples, lambda sample: sample.depths.dropped if sample.depths else 0)
        title = "Dropped events and failed turns since the start"
        nothing = "No event was dropped, and no turn failed."
    if not any(count for line in lines.values() for _, count in line):
        return f"<figure><figcaption>{title}</figcaption><p>{nothing}</p></figure>"
    return _over_time(title, "", samples, lines, warm_up)


def timelines(turns: Sequence[TurnRecord]) -> str:
    """Some turns and the slowest, one below the other, each from its due time."""
    lengths = [1e3 * (last - turn.due) for turn in turns for last in _moments(turn)]
    across = whole_axis("ms after it was due", lengths)
    bottom = TOP + _ROW * len(turns)
    stopped = {_STOPPED: "until canceled"} if any(map(_is_canceled, turns)) else {}
    parts = [ticks_below(across, bottom), legend({**_STAGES, **stopped})]
    for place, turn in enumerate(turns):
        parts.extend(_bars(turn, TOP + _ROW * place, across))
    title = "Some turns and the slowest, each from its due time"
    return figure(title, "".join(parts), bottom + BOTTOM)


def _bars(turn: TurnRecord, top: float, across: Axis) -> Iterator[str]:
    def x(moment: float) -> float:
        return LEFT + across.share(1e3 * (moment - turn.due)) * (WIDTH - LEFT - RIGHT)

    title = f"turn {turn.number} of player {turn.player}, due at {turn.due:.2f} s: {turn.outcome}"
    failed = " failed" if turn.is_failed else ""
    yield f'<g class="turn{failed}"><title>{escape(title)}</title>'
    if turn.is_failed:
        yield f'<text x="{LEFT - 6}" y="{top + _ROW - 2:.0f}" text-anchor="end">failed</text>'
    for name, (begin, end) in zip(_STAGES, _stages(turn), strict=True):
        kind = _STOPPED if name == "speak" and _is_canceled(turn) else name
        yield (
            f'<rect class="{kind}" x="{x(begin):.1f}" y="{top:.0f}" width="{max(0.0, x(end) - x(begin)):.1f}" '
            f'height="{_ROW - 2}"/>'
        )
    yield "</g>"


def _is_canceled(turn: TurnRecord) -> bool:
    return turn.outcome == InterruptReason.CANCELED


def _stages(turn: TurnRecord) -> Iterator[Point]:
    """The begin and end of each stage; a stage that the turn did not reach is empty."""
    since = turn.due
    for moment in (turn.accepted, turn.first_token, turn.ended, turn.committed):
        until = since if moment is None else max(since, moment)
        yield since, until
        since = until


def _moments(turn: TurnRecord) -> Iterator[float]:
    return (end for _, end in _stages(turn))


def _over_time(
    title: str, label: str, samples: Sequence[Sample], lines: Mapping[str, Sequence[Point]], warm_up: float
) -> str:
    down = linear_axis(label, [y for line in lines.values() for _, y in line])
    across = whole_axis("seconds", [sample.at for sample in samples])
    return line_plot(title, across, down, [Series(*each) for each in lines.items()], warm_up=warm_up)


def _level(samples: Sequence[Sample], value: Callable[[Sample], float]) -> list[Point]:
    return [(sample.at, value(sample)) for sample in samples]


def _rate(samples: Sequence[Sample], total: Callable[[Sample], float]) -> list[Point]:
    """The increase per second over a twentieth of the run: from one sample to the next it is mostly noise.

    Pairs that are too close together are left out; the last sample may follow shortly after another.
    """
    before = ceil(len(samples) / _RATES)
    least = samples[-1].at / len(samples) / 2 if samples else 0.0
    return [
        (now.at, (total(now) - total(then)) / (now.at - then.at))
        for then, now in zip(samples, samples[before:], strict=False)
        if now.at - then.at > least
    ]
