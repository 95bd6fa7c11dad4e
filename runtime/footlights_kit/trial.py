"""Trial: one run of a scenario, in one order of tasks, with cancels at given points.

`perform` runs a scenario once and decides whether that run passed. `explore` chooses the cases and compares runs.
"""

from __future__ import annotations

import inspect
import re
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, TypeAlias, cast

import trio
import trio.testing
from attrs import frozen

from footlights_kit.points import Point, Points, RunLimits, described
from footlights_kit.quiesce import quiesced_threads
from footlights_kit.run_limits import Endings
from footlights_kit.trio_hooks import scheduled_by
from footlights_kit.verdicts import TasksLeaked, leaves

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Sequence

    from footlights_kit.leaks import Leaks
    from footlights_kit.places import Waiting
    from footlights_kit.points import Divergence, Moment, Strike
    from footlights_kit.raising import Raising

Scenario: TypeAlias = "Callable[[], Awaitable[object]] | Callable[[Trial], Awaitable[object]]"

_DEFAULT = RunLimits()


class Trial:
    """The argument of a scenario: it defines the cancel, and when one may strike."""

    def __init__(self, points: Points) -> None:
        self._points = points

    def aim(self, *targets: Callable[[], object]) -> None:
        """Start: from here on a cancel may strike at any point, by calling the target.

        The scheduler calls it between two steps, so it must be a plain function that never blocks. The second cancel of
        a run calls the second target, and so on; the last target repeats.
        """
        self._points.arm(*targets)

    def disarm(self) -> None:
        """Stop: no cancel from here on, so that the scenario can check the result."""
        self._points.disarm()

    @contextmanager
    def part(self) -> Generator[trio.CancelScope]:
        """A block to cancel: a scope, aimed at. No cancel strikes after the block."""
        with trio.CancelScope() as scope:
            self.aim(scope.cancel)
            yield scope
        self.disarm()

    @property
    def injected(self) -> int:
        """The number of cancels so far."""
        return len(self._points.strikes)

    @property
    def canceled_at(self) -> tuple[Point, ...]:
        """The points of the cancels so far."""
        return tuple(strike.point for strike in self._points.strikes)


@frozen
class Case:
    """One way to run a scenario: the order of its tasks, and the points at which it is cancelled."""

    order: int
    points: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"order={self.order}" + (f" points={','.join(map(str, self.points))}" if self.points else "")

    @classmethod
    def parse(cls, text: str) -> Case:
        match = re.fullmatch(r"order=(\d+)(?: points=(\d+(?:,\d+)*))?", text.strip())
        if match is None:
            raise ValueError(
                f"not a case to replay: {text!r}. One reads 'order=1 points=17' or 'order=1 points=17,23'."
            )
        order, points = match.groups()
        return cls(int(order), tuple(map(int, points.split(","))) if points else ())


@frozen
class Run:
    """The result of one case: its points in order, its cancels, and what was wrong, the cause first."""

    trace: list[Moment]
    strikes: tuple[Strike, ...]
    divergence: Divergence | None
    delivered: dict[str, Waiting]
    """Where each task got its first Cancelled."""
    awaited_outside: bool
    """Whether it waited for something outside of this process."""
    in_vain: bool
    """Whether that did not come in time."""
    errors: tuple[BaseException, ...]

    @property
    def error(self) -> BaseException | None:
        return next(iter(self.errors), None)


def takes_trial(scenario: Scenario) -> bool:
    """Whether the scenario takes a `Trial` and defines the cancel itself."""
    required = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(scenario).parameters.values()
    return any(p.kind in required and p.default is p.empty for p in parameters)


def perform(
    scenario: Scenario,
    case: Case,
    limits: RunLimits = _DEFAULT,
    *,
    expected: Sequence[Moment] = (),
    on_point: Callable[[Sequence[Waiting]], object] | None = None,
    leaks: Leaks | None = None,
    raising: Raising | None = None,
    in_detail: bool = False,
) -> Run:
    """Run one case of `scenario`. A KeyboardInterrupt passes, unless it was to be raised."""
    points = Points(limits, case.points, expected, on_point, counts_steps=raising is None)
    points.deliveries.in_detail = in_detail
    endings = Endings(points)
    raised: BaseException | None = None
    tracing = nullcontext() if raising is None else raising.tracing(points)
    with scheduled_by(case.order), quiesced_threads(timeout=limits.thread_timeout) as stuck, tracing:
        try:
            trio.run(
                _whole_run,
                _with_trial(scenario),
                points,
                leaks,
                clock=trio.testing.MockClock(autojump_threshold=0),
                instruments=[points, endings],
            )
        except BaseException as error:  # a boundary: the exception of a scenario is its result
            if raising is None or not raising.explains(error):
                if any(isinstance(leaf, KeyboardInterrupt | SystemExit) for leaf in leaves(error)):
                    raise
                raised = error
        finally:
            points.deliveries.close()
    errors = [points.failure, *stuck, raised, *points.deliveries.findings]
    return Run(
        points.trace,
        tuple(points.strikes),
        points.divergence,
        points.deliveries.first_places(),
        endings.awaited_outside,
        endings.in_vain,
        tuple(_distinct(errors, limits.allow)),
    )


def _distinct(
    errors: Iterable[BaseException | None], allow: tuple[type[BaseException], ...]
) -> Iterator[BaseException]:
    """Without what is allowed, and without what only says that a run was broken off."""
    seen: list[BaseException] = []
    for error in errors:
        if error is None or isinstance(error, allow):
            continue
        culprits = [leaf for leaf in leaves(error) if not (seen and isinstance(leaf, trio.TrioInternalError))]
        if any(all(leaf is not old for old in seen) for leaf in culprits):
            yield error
        seen += culprits


async def _whole_run(scenario: Callable[[Trial], Awaitable[object]], points: Points, leaks: Leaks | None) -> None:
    if leaks is not None:
        leaks.watch_generators()
    with points.root:
        await scenario(Trial(points))
    points.disarm()
    if len(points.alive()) > 1:
        # A finalizer that is about to end is not a leak; a task that remains when all tasks are blocked is one.
        await trio.testing.wait_all_tasks_blocked()
    if leaks is not None:
        leaks.judge_generators()
    leaked = [each for each in points.waiting() if each.task != "main"]
    if leaked and TasksLeaked not in points.limits.allow:
        raise TasksLeaked(f"still alive after the scenario:{described(leaked)}")


def _with_trial(scenario: Scenario) -> Callable[[Trial], Awaitable[object]]:
    if takes_trial(scenario):
        return cast("Callable[[Trial], Awaitable[object]]", scenario)

    async def canceled_as_a_whole(trial: Trial) -> None:
        with trial.part():
            # The first point is before the scenario's first line, so that a cancel before its start is tested too.
            await trio.lowlevel.cancel_shielded_checkpoint()
            await cast("Callable[[], Awaitable[object]]", scenario)()

    return canceled_as_a_whole
