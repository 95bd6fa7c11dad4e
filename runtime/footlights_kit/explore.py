"""`cancel_everywhere` and `fail_everywhere`: run a scenario once for every point at which it can be cancelled, or fail.

The scenario is any async function of any trio project. How points are chosen and compared is in `explorer`.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from footlights_kit.explorer import Explorer
from footlights_kit.points import RunLimits
from footlights_kit.raising import Raising
from footlights_kit.report import trimmed
from footlights_kit.trial import Case, takes_trial
from footlights_kit.verdicts import ExplorationFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from footlights_kit.explorer import Exploration
    from footlights_kit.trial import Scenario

requested_replay: ContextVar[str | None] = ContextVar("requested_replay", default=None)
"""The case that every call replays, if there is one: `pytest --cancel-replay` sets it."""


def cancel_everywhere(
    scenario: Scenario,
    *,
    orders: int = 3,
    pairs: int = 100,
    triples: int = 0,
    budget: float | None = None,
    replay: str | None = None,
    max_points: int = 20_000,
    grace: float = 30.0,
    thread_timeout: float = 60.0,
    allow: Collection[type[BaseException]] = (),
) -> Exploration:
    """Cancel `scenario` at every point, one run each. Raises for the first run that fails.

    A run passes when the scenario raised nothing, left nothing behind, ended in time and swallowed no Cancelled.
    `async def scenario()` is cancelled as a whole: it must end by itself or by that cancel. It has no pairs, because a
    cancelled scope stays cancelled. `async def scenario(trial)` defines the cancel with `trial.part()` or
    `trial.aim(callback)`, and checks the result.

    Args:
      orders: number of task orders to try: oldest first, youngest first, then priorities and random orders in turn.
      pairs: maximum number of pairs of cancels in each order.
      triples: maximum number of triples of cancels in each order.
      budget: real seconds. One point for each line comes first, then the others, then pairs and triples.
      replay: run only this case, from the message of an earlier failure.
      max_points: a run with more steps fails.
      grace: virtual seconds that the scenario may need after the last cancel.
      thread_timeout: real seconds for a worker thread, and for what is outside of this process.
      allow: verdicts that are no failures, such as `CancelSwallowed`.

    Raises:
      ExplorationFailed: a run failed. Its cause is the failure; its message has the line that replays it.
      Diverged: a run did not repeat the recorded one.
      HooksMoved: this kit does not fit the installed trio.
    """
    __tracebackhide__ = True
    limits = RunLimits(max_points, grace, thread_timeout, tuple(allow))
    pairs, triples = (pairs, triples) if takes_trial(scenario) else (0, 0)
    explorer = Explorer("cancel_everywhere", scenario, limits)
    return _explored(explorer, replay, lambda: explorer.explore(orders, pairs, triples, budget=budget))


def fail_everywhere(
    scenario: Scenario,
    error: type[BaseException] | Callable[[], BaseException],
    *,
    orders: int = 1,
    budget: float | None = None,
    replay: str | None = None,
    max_points: int = 20_000,
    grace: float = 30.0,
    thread_timeout: float = 60.0,
    allow: Collection[type[BaseException]] = (),
) -> Exploration:
    """Raise `error()` at every await of something of trio, one run each, as if that had failed at once.

    A run passes when the scenario raised nothing, or this error or what was raised because of it, and left nothing
    behind. What closes, and what enters or leaves a block, does not fail. A `KeyboardInterrupt` is raised before every
    line of the project's own code instead, because Ctrl-C can come inside a step.

    The arguments, and what is raised for a failure, are those of `cancel_everywhere`.
    """
    __tracebackhide__ = True
    limits = RunLimits(max_points, grace, thread_timeout, tuple(allow))
    explorer = Explorer("fail_everywhere", scenario, limits, Raising(error))
    return _explored(explorer, replay, lambda: explorer.explore(orders, budget=budget))


def _explored(explorer: Explorer, replay: str | None, explore: Callable[[], object]) -> Exploration:
    __tracebackhide__ = True
    replay = requested_replay.get() if replay is None else replay
    try:
        with explorer.open():
            if replay is None:
                explore()
            else:
                explorer.replay(Case.parse(replay))
    except ExplorationFailed as failure:
        if failure.__cause__ is not None:
            trimmed(failure.__cause__)
        raise failure.with_traceback(None)  # noqa: B904 - it keeps the cause that it has
    return explorer.totals()
