"""`cancel_everywhere`: runs a scenario once for every point at which it can be cancelled.

The idea: a run is a sequence of points (see `points`), the moments between steps of tasks. Everything that could make
two runs differ is fixed: time is virtual, worker threads are quiesced, a seed decides the order of tasks, garbage is
collected only between runs. So a scenario has the same points in every run, and a cancel at point `n` of the recorded
run is the same cancel in a later one. Each order of tasks is run once without a cancel, to record its points; then once
per point with a cancel exactly there; then for pairs of points, spread evenly over all pairs.

Why it is complete: trio is cooperative, so between two points exactly one step of one task runs, and a cancel from
outside that task can come only at a point. Every run is compared with the recording up to its cancel, and a difference
is an error (`Diverged`). So a failure repeats from the line in its message, and no cancel misses its point silently.

Rejected: cancels after random sleeps, which neither cover every point nor repeat; all pairs of points, whose number is
quadratic.

The scenario is any async function of any trio project.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from sys import intern
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights_kit.selfcheck import check_hooks
from footlights_kit.trial import Case, Run, Scenario, perform, takes_trial
from footlights_kit.trio_hooks import collected_between_runs
from footlights_kit.verdicts import Diverged, ExplorationFailed, leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from footlights_kit.points import Point


@frozen
class Exploration:
    """Totals of an exploration: orders, cancelled points and pairs of points over all orders, and runs."""

    orders: int
    points: int
    pairs: int
    runs: int


def cancel_everywhere(
    scenario: Scenario,
    *,
    orders: int = 3,
    pairs: int = 100,
    replay: str | None = None,
    max_points: int = 5000,
    thread_timeout: float = 60.0,
) -> Exploration:
    """Cancel `scenario` at every point, one run each. Raises for the first run that fails.

    A run passes when the scenario raised nothing, left no task running and did not deadlock.
    `async def scenario()` is cancelled as a whole: it must end by itself or by that cancel. It has no pairs, because a
    cancelled scope stays cancelled. `async def scenario(trial)` defines the cancel with `trial.aim(callback)`, and
    checks the result.

    Args:
      orders: number of task orders to try.
      pairs: maximum number of pairs of cancels in each order.
      replay: run only this case, from the message of an earlier failure.
      max_points: a run with more steps fails.
      thread_timeout: real seconds after which a worker thread counts as stuck.

    Raises:
      ExplorationFailed: a run failed. Its cause is the failure; its message has the line that replays it.
      Diverged: a run did not repeat the recorded one.
      HooksMoved: this kit does not fit the installed trio.
    """
    if trio.lowlevel.in_trio_run():
        raise RuntimeError("cancel_everywhere runs trio itself: call it from a plain function")
    check_hooks()
    with collected_between_runs() as collect:
        explorer = _Explorer(scenario, max_points, thread_timeout, collect)
        if replay is not None:
            return explorer.replay(Case.parse(replay))
        for order in range(orders):
            explorer.explore(order, pairs)
        return Exploration(orders, explorer.points, explorer.pairs, explorer.runs)


class _Explorer:
    def __init__(
        self, scenario: Scenario, max_points: int, thread_timeout: float, collect: Callable[[], object]
    ) -> None:
        self.points = self.pairs = self.runs = 0
        self._scenario = scenario
        self._max_points = max_points
        self._thread_timeout = thread_timeout
        self._collect = collect

    def explore(self, order: int, pairs: int) -> None:
        baseline = self._baseline(order)
        tails = [self._single(order, point, baseline) for point in range(len(baseline))]
        if takes_trial(self._scenario):
            for first, second in spread_pairs([len(tail) for tail in tails], pairs):
                self._run(Case(order, (first, second)), [*baseline[: first + 1], *tails[first]][: second + 1])
                self.pairs += 1

    def replay(self, case: Case) -> Exploration:
        self._run(case, ())
        return Exploration(1, int(len(case.points) == 1), int(len(case.points) == 2), self.runs)

    def _baseline(self, order: int) -> list[str]:
        case = Case(order)
        trace = self._run(case, ()).trace
        if not trace:
            raise ExplorationFailed("the scenario has no points: it never waited after trial.aim(...)", str(case))
        return trace

    def _single(self, order: int, point: int, baseline: list[str]) -> list[str]:
        run = self._run(Case(order, (point,)), baseline[: point + 1])
        self.points += 1
        # All tails are kept until the pairs are done, so equal labels are interned.
        return [intern(label) for label in run.trace[point + 1 :]]

    def _run(self, case: Case, expected: Sequence[str]) -> Run:
        run = perform(self._scenario, case, max_points=self._max_points, thread_timeout=self._thread_timeout)
        self.runs += 1
        self._collect()
        if difference := _difference(expected, run.trace):
            raise Diverged(_message(self._scenario, case, difference), str(case)) from run.error
        if run.error is not None:
            raise ExplorationFailed(_verdict(self._scenario, case, run.struck, run.error), str(case)) from run.error
        if len(run.struck) < len(case.points):
            missed = f"the run has only {len(run.trace)} points"
            raise Diverged(_message(self._scenario, case, missed), str(case))
        return run


def spread_pairs(tails: Sequence[int], limit: int) -> Iterator[tuple[int, int]]:
    """At most `limit` of the pairs i < j, evenly spread; `tails[i]` points follow a cancel at i."""
    ends = list(accumulate(tails))
    total = ends[-1] if ends else 0
    count = min(limit, total)
    for number in range(count):
        position = (2 * number + 1) * total // (2 * count)
        first = bisect_right(ends, position)
        yield first, first + 1 + position - (ends[first] - tails[first])


def _difference(expected: Sequence[str], trace: Sequence[str]) -> str | None:
    if list(trace[: len(expected)]) == list(expected):
        return None
    at = next((i for i, (old, new) in enumerate(zip(expected, trace, strict=False)) if old != new), len(trace))
    got = repr(trace[at]) if at < len(trace) else "the end of the scenario"
    return (
        f"at point {at} an earlier run came to {expected[at]!r}, this one to {got}. Something that is not "
        "replayed (randomness, real time, state kept between runs) decides what the scenario does."
    )


def _verdict(scenario: Scenario, case: Case, struck: Sequence[Point], error: BaseException) -> str:
    where = " and ".join(str(point) for point in struck)
    when = f"canceled at {where}" if where else "without a cancel"
    wrong = "; ".join(f"{type(leaf).__name__}: {leaf}" for leaf in leaves(error))
    return _message(scenario, case, f"{when}: {wrong}")


def _message(scenario: Scenario, case: Case, what: str) -> str:
    name = getattr(scenario, "__name__", "scenario")
    return f'{what}\nTo replay: cancel_everywhere({name}, replay="{case}")'
