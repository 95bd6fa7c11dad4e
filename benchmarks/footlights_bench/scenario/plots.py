"""The plots of a report: what was measured, drawn."""

from __future__ import annotations

from html import escape
from math import ceil, log10
from typing import TYPE_CHECKING

from footlights.events import InterruptReason
from footlights_bench.scenario.plot import (
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

    from footlights_bench.scenario.histogram import Histogram
    from footlights_bench.scenario.result import Verdict
    from footlights_bench.scenario.run import Sample
    from footlights_bench.scenario.tally import TurnRecord
    from footlights_bench.scenario.terms import Metric

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
    """How many turns were at most how slow, with the slowest as wide as the others, and what was wanted."""
    series = [
        Series(metric, list(_curve(histogram)), list(_bounds(metric, histogram, verdicts)))
        for metric, histogram in latencies.items()
    ]
    points = [point for each in series if each.points for point in (*each.points, *each.bounds)]
    nines = int(max([x for x, _ in points] or [0.0])) + 1
    ticks = [(0, _NINES[0]), (log10(2), "50 %"), *((each, _NINES[min(each, 6)]) for each in range(1, nines + 1))]
    down = log_axis("ms", [y for _, y in points])
    title = "How slow, for how many" + ("; a roof is a target" if verdicts else "")
    return line_plot(title, Axis("of the turns", 0, nines, ticks), down, series)


def _bounds(metric: Metric, histogram: Histogram, verdicts: Sequence[Verdict]) -> Iterator[tuple[float, float]]:
    """Targets, where the curve of their metric must be low; that for the slowest of all is at its end."""
    for verdict in verdicts:
        # A baseline that took no time at all makes a bound that no logarithm can show.
        if verdict.target.metric is metric and verdict.bound_ms and histogram.count:
            share = min(verdict.target.percentile / 100, 1 - 0.5 / histogram.count)
            yield -log10(1 - share), log10(verdict.bound_ms)


def _curve(histogram: Histogram) -> Iterator[tuple[float, float]]:
    """Turns that took as long as each other make a level stretch, which has two ends."""
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
    return _over_time(
        "Turns a second, over time",
        "turns/s",
        samples,
        {"due": _rate(lambda sample: sample.begun), "over": _rate(lambda sample: sample.finished)},
        warm_up,
    )


def event_rate(samples: Sequence[Sample], warm_up: float) -> str:
    lines = {"events": _rate(lambda each: each.events)}
    return _over_time("Events a second that players saw, over time", "events/s", samples, lines, warm_up)


def queues(samples: Sequence[Sample], warm_up: float) -> str:
    """Turns and commits, and apart from them the events, of which there are many more."""
    turns = {"open turns": _level(lambda each: each.open_turns)}
    if not any(each.depths for each in samples):
        return _over_time("Open turns, over time", "turns", samples, turns, warm_up)
    turns["commits that wait"] = _level(lambda each: each.depths.commits_waiting if each.depths else 0)
    events = {"events that wait for subscribers": _level(lambda each: each.depths.events_waiting if each.depths else 0)}
    return _over_time("Open turns and commits that wait, over time", "turns", samples, turns, warm_up) + _over_time(
        "Events that wait for subscribers, over time", "events", samples, events, warm_up
    )


def losses(samples: Sequence[Sample], warm_up: float) -> str:
    """A sentence if there were none: an empty plot makes one look for what is not there."""
    lines = {"turns failed": _level(lambda each: each.failed)}
    title = "What failed, since the start"
    nothing = "No turn failed. What the server dropped cannot be seen from outside."
    if any(each.depths for each in samples):
        lines["events dropped"] = _level(lambda each: each.depths.dropped if each.depths else 0)
        title = "What was dropped and what failed, since the start"
        nothing = "No event was dropped, and no turn failed."
    if not any(count for line in lines.values() for _, count in line(samples)):
        return f"<figure><figcaption>{title}</figcaption><p>{nothing}</p></figure>"
    return _over_time(title, "", samples, lines, warm_up)


def timelines(turns: Sequence[TurnRecord]) -> str:
    """Some turns and the slowest, one below the other, each from when it was due."""
    lengths = [1e3 * (last - turn.due) for turn in turns for last in _moments(turn)]
    across = whole_axis("ms after it was due", lengths)
    bottom = TOP + _ROW * len(turns)
    stopped = {_STOPPED: "until canceled"} if any(map(_is_canceled, turns)) else {}
    parts = [ticks_below(across, bottom), legend({**_STAGES, **stopped})]
    for place, turn in enumerate(turns):
        parts.extend(_bars(turn, TOP + _ROW * place, across))
    title = "Some turns and the slowest, each from when it was due"
    return figure(title, "".join(parts), bottom + BOTTOM)


def _bars(turn: TurnRecord, top: float, across: Axis) -> Iterator[str]:
    def x(moment: float) -> float:
        return LEFT + across.share(1e3 * (moment - turn.due)) * (WIDTH - LEFT - RIGHT)

    told = f"turn {turn.number} of player {turn.player}, due at {turn.due:.2f} s: {turn.outcome}"
    failed = " failed" if turn.is_failed else ""
    yield f'<g class="turn{failed}"><title>{escape(told)}</title>'
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


def _stages(turn: TurnRecord) -> Iterator[tuple[float, float]]:
    """From when to when each lasted; one that it did not come to lasted for no time."""
    since = turn.due
    for moment in (turn.accepted, turn.first_token, turn.ended, turn.committed):
        until = since if moment is None else max(since, moment)
        yield since, until
        since = until


def _moments(turn: TurnRecord) -> Iterator[float]:
    return (end for _, end in _stages(turn))


def _over_time(
    title: str,
    label: str,
    samples: Sequence[Sample],
    lines: Mapping[str, Callable[[Sequence[Sample]], list[tuple[float, float]]]],
    warm_up: float,
) -> str:
    series = [Series(name, line(samples)) for name, line in lines.items()]
    down = linear_axis(label, [y for each in series for _, y in each.points])
    across = whole_axis("seconds", [sample.at for sample in samples])
    return line_plot(title, across, down, series, warm_up=warm_up)


def _level(value: Callable[[Sample], float]) -> Callable[[Sequence[Sample]], list[tuple[float, float]]]:
    return lambda samples: [(sample.at, value(sample)) for sample in samples]


def _rate(total: Callable[[Sample], float]) -> Callable[[Sequence[Sample]], list[tuple[float, float]]]:
    """How much more a second, within a twentieth of the run: from one sample to the next there is little but chance.

    A last sample that came too soon would say nothing.
    """

    def rates(samples: Sequence[Sample]) -> list[tuple[float, float]]:
        before = ceil(len(samples) / _RATES)
        least = samples[-1].at / len(samples) / 2 if samples else 0.0
        return [
            (now.at, (total(now) - total(then)) / (now.at - then.at))
            for then, now in zip(samples, samples[before:], strict=False)
            if now.at - then.at > least
        ]

    return rates
