"""Report of a failed case: what was wrong, where each cancel struck, and the line that replays it.

Frames of trio and of this kit are taken out of the tracebacks: they are the same in every failure.
"""

from __future__ import annotations

from functools import partial
from traceback import walk_tb
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from footlights_kit.places import Place
from footlights_kit.verdicts import leaves

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from footlights_kit.places import Waiting
    from footlights_kit.points import Moment
    from footlights_kit.raising import Raising
    from footlights_kit.trial import Case, Run

_MOST_TASKS = 8
"""Number of tasks that are listed for one moment."""

_BEFORE = 3
"""Number of moments shown before a divergence."""


def verdict(run: Run, verb: str) -> str:
    """What was wrong with a run, and where its tasks were at each strike."""
    where = " and ".join(str(strike.point) for strike in run.strikes)
    when = f"{verb} at {where}" if where else "without a cancel"
    wrong = [leaf for error in run.errors for leaf in leaves(error)]
    said = "; ".join(f"{type(leaf).__name__}: {leaf}" for leaf in wrong)
    return "\n".join([f"{when}: {said}", *_struck(run), *filter(None, map(_raised, wrong))])


def _raised(error: BaseException) -> str | None:
    places = [Place.of(frame, line) for frame, line in walk_tb(error.__traceback__)]
    own = next((each for each in reversed(places) if not each.is_library), None)
    return None if own is None else f"  {type(error).__name__} at {own.spot}: {own.text}".rstrip(": ")


def _struck(run: Run) -> Iterator[str]:
    for strike in run.strikes:
        prefix = f"  point {strike.point.index}: " if len(run.strikes) > 1 else "  "
        if strike.reached is not None:
            yield from (prefix + each for each in _listed(strike.reached) or ["no task was reached"])
    was = {each.task: each.where for strike in run.strikes for each in strike.reached or ()}
    elsewhere = [each for each in run.delivered.values() if was.get(each.task) != each.where]
    yield from (f"  Cancelled in {each}" for each in _listed(elsewhere))


def divergence(run: Run, expected: Sequence[Moment]) -> str | None:
    """How a run differs from the recorded one, if it does."""
    if run.divergence is not None:
        at, waiting = run.divergence.index, run.divergence.waiting
        got = f"to {str(run.trace[at])!r}"
    elif len(run.trace) < len(expected) and not run.errors:
        at, waiting = len(run.trace), ()
        got = "to the end of the scenario"
    else:
        return None
    before = "".join(f"\n    {number}: {run.trace[number]}" for number in range(max(0, at - _BEFORE), at))
    lines = "".join(f"\n  {each}" for each in _listed(waiting))
    return (
        f"at point {at} an earlier run came to {str(expected[at])!r}, this one {got}. Something that is not "
        "replayed (randomness, real time, state kept between runs) decides what the scenario does."
        + (f"\n  Both had been at{before}" if before else "")
        + lines
    )


def _listed(waiting: Sequence[Waiting]) -> list[str]:
    more = len(waiting) - _MOST_TASKS
    return [str(each) for each in waiting[:_MOST_TASKS]] + ([f"and {more} more tasks"] if more > 0 else [])


def replay_line(function: str, scenario: object, raising: Raising | None, case: Case) -> str:
    """The call that runs this case alone, or the command, if the scenario is a test."""
    command = getattr(scenario, "replay_command", None)
    if command is not None:
        return f'{command}="{case}"'
    error = "" if raising is None else f", {raising.name}"
    return f'{function}({name_of(scenario)}{error}, replay="{case}")'


def name_of(scenario: object) -> str:
    """The expression for a scenario in the line that replays it."""
    if isinstance(scenario, partial):
        bound: partial[Any] = scenario  # pyright: ignore[reportUnknownVariableType] - of whatever it is
        given = [
            name_of(bound.func),
            *map(repr, bound.args),
            *(f"{key}={value!r}" for key, value in bound.keywords.items()),
        ]
        return f"partial({', '.join(given)})"
    return getattr(scenario, "__name__", "scenario")


def trimmed(error: BaseException) -> BaseException:
    """The error, with tracebacks that show the lines of the scenario, and none of trio and this kit."""
    for each in _family(error, set()):
        frames = [(frame, line) for frame, line in walk_tb(each.__traceback__) if not Place.of(frame, line).is_plumbing]
        traceback = None
        for frame, line in reversed(frames):
            traceback = TracebackType(traceback, frame, frame.f_lasti, line)
        each.__traceback__ = traceback
    return error


def _family(error: BaseException | None, seen: set[int]) -> Iterable[BaseException]:
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    yield error
    behind = [error.__cause__, error.__context__]
    if isinstance(error, BaseExceptionGroup):
        behind += cast("BaseExceptionGroup[BaseException]", error).exceptions
    for each in behind:
        yield from _family(each, seen)
