"""What can be wrong with a scenario, or with the way it was explored.

    ExplorationFailed     a case failed; says which, and the line that replays it
    └── Diverged          two runs of the same beginning were not the same, so no result can be trusted

and, as the `__cause__` of an ExplorationFailed, whatever the scenario raised or one of

    Deadlocked            nothing can ever happen again
    Runaway               more steps than a scenario may take
    TasksLeaked           tasks outlived the scenario that started them
    ThreadStuck           a worker thread never came back

HooksMoved is about trio, not about a scenario: a private part that this kit stands on is no longer there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator


class ExplorationFailed(AssertionError):
    """One case failed. `replay` is what to pass to `cancel_everywhere` to see only that case again."""

    def __init__(self, message: str, replay: str) -> None:
        super().__init__(message)
        self.replay = replay


class Diverged(ExplorationFailed):
    """A run did not repeat the run it began like: the scenario depends on something not replayed."""


class Deadlocked(AssertionError):
    """No task is runnable and nothing is left that could make one runnable."""


class Runaway(AssertionError):
    """The scenario went on for more steps than `max_points`."""


class TasksLeaked(AssertionError):
    """Tasks that the scenario started were still alive after it ended."""


class ThreadStuck(AssertionError):
    """A worker thread delivered nothing for longer than the real time it was given."""


class HooksMoved(RuntimeError):
    """The installed trio has no such private part, or it no longer does what this kit needs."""


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors that a group is made of, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from leaves(inner)
    else:
        yield error
