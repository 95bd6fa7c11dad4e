"""One run of a scenario: which case it is, what the scenario may say about it, and what came out.

`perform` runs a scenario once, in one order, with cancels at given points. It decides only whether that run
was good; choosing cases and comparing runs is the business of `explore`.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, TypeAlias, cast

import trio
import trio.testing
from attrs import frozen

from footlights.testing.determinism import scheduled_by
from footlights.testing.endings import Endings
from footlights.testing.points import Point, Points
from footlights.testing.quiesce import quiesced_threads
from footlights.testing.verdicts import TasksLeaked, leaves

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Scenario: TypeAlias = "Callable[[], Awaitable[object]] | Callable[[Trial], Awaitable[object]]"


class Trial:
    """What a scenario that takes an argument is given: it says what a cancel is, and when one may come."""

    def __init__(self, points: Points) -> None:
        self._points = points

    def aim(self, first: Callable[[], object], second: Callable[[], object] | None = None) -> None:
        """From here on a cancel may strike at any point, by calling `first`.

        It is called by the scheduler, between two steps, so it must be a plain function that never blocks.
        The second cancel of a pair calls `second`, or `first` again.
        """
        self._points.arm(first, second or first)

    def disarm(self) -> None:
        """No cancel from here on: what follows are the scenario's own checks."""
        self._points.disarm()

    @property
    def injected(self) -> int:
        """How many cancels have struck so far."""
        return len(self._points.struck)

    @property
    def canceled_at(self) -> tuple[Point, ...]:
        """Where they struck."""
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
    """What one case did: its points in order, where the cancels struck, and what was wrong, if anything."""

    trace: list[str]
    struck: tuple[Point, ...]
    error: BaseException | None


def takes_trial(scenario: Scenario) -> bool:
    """Whether the scenario wants to say itself what a cancel is."""
    required = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(scenario).parameters.values()
    return any(p.kind in required and p.default is p.empty for p in parameters)


def perform(scenario: Scenario, case: Case, *, max_points: int, thread_timeout: float) -> Run:
    """Run `scenario` once, as `case` says."""
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
        except BaseException as raised:  # boundary: whatever a scenario raises is its verdict
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
        # A finalizer that is about to end is no leak; what is still there when all is still is one.
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
            # The first point comes before the first line: what is cancelled before it begins must be good too.
            await trio.lowlevel.cancel_shielded_checkpoint()
            await cast("Callable[[], Awaitable[object]]", scenario)()

    return canceled_as_a_whole


def _and_besides(failure: BaseException, error: BaseException | None) -> BaseException:
    """The failure, with a note of what else the run raised while it was taken down."""
    for leaf in leaves(error) if error is not None else ():
        if leaf is not failure and not isinstance(leaf, trio.TrioInternalError):
            failure.add_note(f"besides: {leaf!r}")
    return failure
