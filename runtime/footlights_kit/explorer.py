"""Explorer: chooses the cases of an exploration, runs them, compares the runs, and reports the first that fails.

The idea: a run is a sequence of points (see `points`), the moments between steps of tasks. Everything that could make
two runs differ is fixed: time is virtual, worker threads are quiesced, a number decides the order of tasks, garbage is
collected only between runs. So a scenario has the same points in every run, and a cancel at point `n` of the recorded
run is the same cancel in a later one. Each order of tasks is run once without a cancel, to record its points; then once
per point with a cancel exactly there; then for pairs and triples of points, spread evenly over all of them.

Why it is complete: trio is cooperative, so between two points exactly one step of one task runs, and a cancel from
outside that task can come only at a point. Every run is compared with the recording up to its cancel, and a difference
is an error (`Diverged`). So a failure repeats from the line in its message, and no cancel misses its point silently.

The cost is quadratic: a run to point `n` repeats the `n` points before it. With a `budget` the points are visited in
another sequence, so that what is left out is what is most like what was tried: first one point for each line at which a
task waits, then the others, in an order that is the same every time.

Rejected: cancels after random sleeps, which neither cover every point nor repeat; all pairs of points, whose number is
quadratic; forking the process at each point, which no thread and no socket survives.
"""

from __future__ import annotations

import random
import time
from bisect import bisect_right
from contextlib import contextmanager
from itertools import accumulate, combinations
from typing import TYPE_CHECKING

import trio
from attrs import Factory, define, evolve, field, frozen

from footlights_kit.leaks import Leaks, watched_leaks
from footlights_kit.report import divergence, replay_line, verdict
from footlights_kit.selfcheck import check_hooks
from footlights_kit.trial import Case, Run, Scenario, perform
from footlights_kit.trio_hooks import collected_between_runs
from footlights_kit.verdicts import CleanupCut, Diverged, ExplorationFailed, ResourcesLeaked, leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from footlights_kit.places import Place, Waiting
    from footlights_kit.points import Moment, RunLimits
    from footlights_kit.raising import Raising


_REPEATS = 10
"""How often a case is run if the scenario waits for something outside, which may come at another moment than before."""


@frozen
class Exploration:
    """Totals of an exploration: over all orders, unless it says otherwise."""

    orders: int
    points: int
    """Points that were struck, of `all_points`."""
    pairs: int
    triples: int
    runs: int
    all_points: int
    lines: int = 0
    """With a budget: lines at which a task was struck, of `all_lines` at which one waits."""
    all_lines: int = 0

    def __str__(self) -> str:
        lines = f", {self.lines:,} of {self.all_lines:,} lines" if self.all_lines else ""
        several = f"{self.pairs:,} pairs, {self.triples:,} triples" if self.triples else f"{self.pairs:,} pairs"
        return (
            f"{self.points:,} of {self.all_points:,} points{lines}, {several}, {self.orders} orders, {self.runs:,} runs"
        )


@define
class _Recorded:
    """The run of one order without a cancel: its points, and the tails of the runs that were cancelled once."""

    trace: list[Moment]
    lines: list[frozenset[Place]] = Factory(list[frozenset["Place"]])
    tails: dict[int, list[Moment]] = Factory(dict[int, list["Moment"]])


@define(eq=False)
class Explorer:
    """One exploration of one scenario."""

    _function: str
    _scenario: Scenario
    _limits: RunLimits
    _raising: Raising | None = None
    _recorded: dict[int, _Recorded] = Factory(dict[int, _Recorded])
    _moments: dict[Moment, Moment] = Factory(dict["Moment", "Moment"])
    _points: int = 0
    _pairs: int = 0
    _triples: int = 0
    _runs: int = 0
    _awaits_outside: bool = False
    _lines: set[Place] = Factory(set["Place"])
    _leaks: Leaks = field(init=False)
    _collect: Callable[[], object] = field(init=False)

    @contextmanager
    def open(self) -> Generator[None]:
        """Inside, everything is set up to run the scenario repeatedly."""
        if trio.lowlevel.in_trio_run():
            raise RuntimeError(f"{self._function} runs trio itself: call it from a plain function")
        check_hooks()
        with collected_between_runs() as self._collect, watched_leaks() as self._leaks:
            self._collect()
            yield

    def explore(self, orders: int, pairs: int = 0, triples: int = 0, *, budget: float | None = None) -> None:
        """Run every case of these orders, or as many as the budget allows."""
        if budget is not None:
            self._explore_within(time.monotonic() + budget, orders, pairs, triples)
            return
        for order in range(orders):
            self._record(order)
            for point in range(len(self._recorded[order].trace)):
                self._single(order, point)
            for _ in self._several(order, pairs, triples):
                pass

    def replay(self, case: Case) -> None:
        """Run one case."""
        run = self._run(case)
        self._recorded[case.order] = _Recorded([] if run is None else run.trace)
        self._points, self._pairs, self._triples = (int(len(case.points) == number) for number in (1, 2, 3))

    def totals(self) -> Exploration:
        recorded = self._recorded.values()
        return Exploration(
            orders=len(recorded),
            points=self._points,
            pairs=self._pairs,
            triples=self._triples,
            runs=self._runs,
            all_points=sum(len(each.trace) for each in recorded),
            lines=len(self._lines),
            all_lines=len({line for each in recorded for lines in each.lines for line in lines}),
        )

    def _explore_within(self, end: float, orders: int, pairs: int, triples: int) -> None:
        for order in range(orders):
            self._record(order, with_lines=True)
        for order, point in self._by_line():
            if time.monotonic() >= end:
                return
            self._single(order, point)
            self._lines |= self._recorded[order].lines[point]
        for order in range(orders):
            for _ in self._several(order, pairs, triples):
                if time.monotonic() >= end:
                    return

    def _by_line(self) -> Iterator[tuple[int, int]]:
        """Points of all orders: first those that strike a task at a line that none before them did."""
        seen: set[Place] = set()
        others: list[tuple[int, int]] = []
        for order, recorded in self._recorded.items():
            for point, lines in enumerate(recorded.lines):
                if lines <= seen:
                    others.append((order, point))
                else:
                    yield order, point
                seen |= lines
        random.Random(0).shuffle(others)
        yield from others

    def _record(self, order: int, *, with_lines: bool = False) -> None:
        lines: list[frozenset[Place]] = []

        def note(waiting: Sequence[Waiting]) -> None:
            places = [each.own for each in waiting]
            lines.append(frozenset(each for each in places if each is not None and not each.is_plumbing))

        case = Case(order)
        run = self._run(case, on_point=note if with_lines else None)
        if run is None or not run.trace:
            raise ExplorationFailed("the scenario has no points: it never waited after trial.aim(...)", str(case))
        self._recorded[order] = _Recorded(self._shared(run.trace), lines)

    def _single(self, order: int, point: int) -> None:
        recorded = self._recorded[order]
        run = self._run(Case(order, (point,)), recorded.trace[: point + 1])
        if run is not None:
            recorded.tails[point] = self._shared(run.trace[point + 1 :])
            self._points += 1

    def _several(self, order: int, pairs: int, triples: int) -> Iterator[None]:
        """Pairs of points that were struck one by one, then triples."""
        recorded = self._recorded[order]
        firsts = list(recorded.tails)
        lengths = [len(tail) for tail in recorded.tails.values()]
        found: list[tuple[tuple[int, int], list[Moment]]] = []
        for number, offset in spread(lengths, max(pairs, triples)):
            first = firsts[number]
            pair = (first, first + 1 + offset)
            run = self._run(Case(order, pair), [*recorded.trace[: first + 1], *recorded.tails[first]][: pair[1] + 1])
            if run is not None:
                found.append((pair, run.trace))
                self._pairs += 1
            yield
        for number, offset in spread([len(trace) - 1 - pair[1] for pair, trace in found], triples):
            pair, trace = found[number]
            third = pair[1] + 1 + offset
            self._triples += self._run(Case(order, (*pair, third)), trace[: third + 1]) is not None
            yield

    def _shared(self, trace: Sequence[Moment]) -> list[Moment]:
        # The tails of all points are kept until the pairs are done, and most of their moments are the same.
        return [self._moments.setdefault(moment, moment) for moment in trace]

    def _run(
        self,
        case: Case,
        expected: Sequence[Moment] = (),
        on_point: Callable[[Sequence[Waiting]], object] | None = None,
    ) -> Run | None:
        """Run one case. None if the scenario waits for something outside, which does not come at that point again."""
        for _ in range(_REPEATS):
            run = self._perform(case, expected, on_point)
            self._awaits_outside |= run.awaited_outside
            differs = run.divergence is not None or len(run.strikes) < len(case.points)
            if run.errors or not differs or not self._awaits_outside:
                break
        else:
            return None
        if not self._awaits_outside and (difference := divergence(run, expected)):
            raise Diverged(self._message(case, difference), str(case)) from run.error
        if run.errors:
            case, run = self._shrunk(case, run)
            raise ExplorationFailed(self._message(case, verdict(run, self._verb)), str(case)) from run.error
        if len(run.strikes) < len(case.points):
            missed = f"the run has only {len(run.trace)} points"
            raise Diverged(self._message(case, missed), str(case))
        return run

    def _shrunk(self, case: Case, failed: Run) -> tuple[Case, Run]:
        """The case with the fewest of these strikes that fails in the same way, which may be this one."""
        for number in range(1, len(case.points)):
            for points in combinations(case.points, number):
                smaller = Case(case.order, points)
                run = self._perform(smaller)
                if type(run.error) is type(failed.error) and len(run.strikes) == number:
                    return smaller, run
        return case, failed

    def _perform(
        self,
        case: Case,
        expected: Sequence[Moment] = (),
        on_point: Callable[[Sequence[Waiting]], object] | None = None,
    ) -> Run:
        run = self._perform_once(case, expected, on_point)
        is_suspicion = all(isinstance(error, CleanupCut | ResourcesLeaked) for error in run.errors)
        if run.errors and (run.strikes or is_suspicion):
            # Again, in detail. What is opened once for good is no leak, and not all that looks cut is cut.
            again = self._perform_once(case, expected, on_point, in_detail=True)
            if again.errors or is_suspicion:
                return again
        return run

    def _perform_once(
        self,
        case: Case,
        expected: Sequence[Moment],
        on_point: Callable[[Sequence[Waiting]], object] | None,
        *,
        in_detail: bool = False,
    ) -> Run:
        self._runs += 1
        self._leaks.begin()
        try:
            run = perform(
                self._scenario,
                case,
                self._limits_of(case),
                expected=expected,
                on_point=on_point,
                leaks=self._leaks,
                raising=self._raising,
                in_detail=in_detail,
            )
        except BaseException as error:  # a boundary: only KeyboardInterrupt and SystemExit leave a run
            if any(isinstance(leaf, KeyboardInterrupt) for leaf in leaves(error)):
                raise KeyboardInterrupt(self._message(case, "interrupted")) from error
            raise
        self._limits = evolve(self._limits, in_vain=run.in_vain)
        self._collect()
        left = [
            each for each in self._leaks.found(tolerate=not case.points) if not isinstance(each, self._limits.allow)
        ]
        # A scenario that has failed need not clean up.
        return run if run.errors else evolve(run, errors=tuple(left))

    def _limits_of(self, case: Case) -> RunLimits:
        # A cancelled run that takes ten times as long as the whole run will not end, and says so sooner.
        recorded = self._recorded.get(case.order)
        if recorded is None or not case.points:
            return self._limits
        most = 10 * len(recorded.trace) + 1000
        return evolve(self._limits, max_points=min(self._limits.max_points, most))

    @property
    def _verb(self) -> str:
        return "canceled" if self._raising is None else f"{self._raising.name} raised"

    def _message(self, case: Case, what: str) -> str:
        return f"{what}\nTo replay: {replay_line(self._function, self._scenario, self._raising, case)}"


def spread(lengths: Sequence[int], limit: int) -> Iterator[tuple[int, int]]:
    """At most `limit` of the pairs (i, offset below `lengths[i]`), evenly spread."""
    ends = list(accumulate(lengths))
    total = ends[-1] if ends else 0
    count = min(limit, total)
    for number in range(count):
        position = (2 * number + 1) * total // (2 * count)
        first = bisect_right(ends, position)
        yield first, position - (ends[first] - lengths[first])
