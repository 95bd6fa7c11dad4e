"""Trial: one run of a scenario, in one order of tasks, with cancels at given points.

`perform` runs a scenario once and decides whether that run passed. `explore` chooses the cases and compares runs.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, TypeAlias, cast

import trio
import trio.testing
from attrs import frozen

from footlights_kit.points import Point, Points
from footlights_kit.quiesce import quiesced_threads
from footlights_kit.run_limits import Endings
from footlights_kit.trio_hooks import scheduled_by
from footlights_kit.verdicts import TasksLeaked, leaves

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Scenario: TypeAlias = "Callable[[], Awaitable[object]] | Callable[[Trial], Awaitable[object]]"


class Trial:
    """The argument of a scenario: it defines the cancel, and when one may strike."""

    def __init__(self, points: Points) -> None:
        self._points = points

    def aim(self, first: Callable[[], object], second: Callable[[], object] | None = None) -> None:
        """Start: from here on a cancel may strike at any point, by calling `first`.

        The scheduler calls it between two steps, so it must be a plain function that never blocks. The second cancel of
        a pair calls `second`, or `first` again.
        """
        self._points.arm(first, second or first)

    def disarm(self) -> None:
        """Stop: no cancel from here on, so that the scenario can check the result."""
        self._points.disarm()

    @property
    def injected(self) -> int:
        """The number of cancels so far."""
        return len(self._points.struck)

    @property
    def canceled_at(self) -> tuple[Point, ...]:
        """The points of the cancels so far."""
        return tuple(self._points.struck)


@frozen
class Case:
    """One way to run a scenario: the order of its tasks, and the points at which it is cancelled."""

    order: int
    points: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"order={self.order}" + (f" points={','.join(map(str, self.points))}" if self.points else "")

    @classmethod
    def parse(cls, text: str) -> Case:
        match = re.fullmatch(r"order=(\d+)(?: points=(\d+(?:,\d+)?))?", text.strip())
        if match is None:
            raise ValueError(
                f"not a case to replay: {text!r}. One reads 'order=1 points=17' or 'order=1 points=17,23'."
            )
        order, points = match.groups()
        return cls(int(order), tuple(map(int, points.split(","))) if points else ())


@frozen
class Run:
    """The result of one case: its points in order, the points of its cancels, and its error, if any."""

    trace: list[str]
    struck: tuple[Point, ...]
    error: BaseException | None


def takes_trial(scenario: Scenario) -> bool:
    """Whether the scenario takes a `Trial` and defines the cancel itself."""
    required = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(scenario).parameters.values()
    return any(p.kind in required and p.default is p.empty for p in parameters)


def perform(scenario: Scenario, case: Case, *, max_points: int, thread_timeout: float) -> Run:
    """Run one case of `scenario`."""
    points = Points(case.points)
    endings = Endings(points, max_steps=max_points, patience=thread_timeout)
    error: BaseException | None = None
    with scheduled_by(case.order), quiesced_threads(timeout=thread_timeout) as stuck:
        try:
            trio.run(
                _whole_run,
                _with_trial(scenario),
                points,
                clock=trio.testing.MockClock(autojump_threshold=0),
                instruments=[points, endings],
            )
        except BaseException as raised:  # a boundary: the exception of a scenario is its result
            if any(isinstance(leaf, KeyboardInterrupt | SystemExit) for leaf in leaves(raised)):
                raise
            error = raised
    first_failure = points.failure or next(iter(stuck), None)
    return Run(points.trace, tuple(points.struck), _and_besides(first_failure, error) if first_failure else error)


async def _whole_run(scenario: Callable[[Trial], Awaitable[object]], points: Points) -> None:
    with points.root:
        await scenario(Trial(points))
    points.disarm()
    if len(points.alive()) > 1:
        # A finalizer that is about to end is not a leak; a task that remains when all tasks are blocked is one.
        await trio.testing.wait_all_tasks_blocked()
    leaked = [label for task, label in points.alive().items() if task is not trio.lowlevel.current_task()]
    if leaked:
        raise TasksLeaked(f"still alive after the scenario: {', '.join(leaked)}")


def _with_trial(scenario: Scenario) -> Callable[[Trial], Awaitable[object]]:
    if takes_trial(scenario):
        return cast("Callable[[Trial], Awaitable[object]]", scenario)

    async def canceled_as_a_whole(trial: Trial) -> None:
        with trio.CancelScope() as scope:
            trial.aim(scope.cancel)
            # The first point is before the scenario's first line, so that a cancel before its start is tested too.
            await trio.lowlevel.cancel_shielded_checkpoint()
            await cast("Callable[[], Awaitable[object]]", scenario)()

    return canceled_as_a_whole


def _and_besides(failure: BaseException, error: BaseException | None) -> BaseException:
    """The failure, with notes of the other exceptions that the run raised while it was ended."""
    for leaf in leaves(error) if error is not None else ():
        if leaf is not failure and not isinstance(leaf, trio.TrioInternalError):
            failure.add_note(f"besides: {leaf!r}")
    return failure
