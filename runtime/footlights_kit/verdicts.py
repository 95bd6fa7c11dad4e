"""Verdicts: the errors of a scenario or of its exploration.

    ExplorationFailed     a case failed; the message has the line that replays it
    └── Diverged          a run did not repeat the recorded one, so no result can be trusted

The `__cause__` of an ExplorationFailed is the exception of the scenario or one of

    Deadlocked            no task can ever run again
    Runaway               the scenario exceeded its number of steps
    TasksLeaked           tasks outlived the scenario that started them
    ThreadStuck           a worker thread never returned

HooksMoved concerns trio, not a scenario: a private part that this kit uses is missing or changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator


class ExplorationFailed(AssertionError):
    """One case failed. Pass `replay` to `cancel_everywhere` to run only that case again."""

    def __init__(self, message: str, replay: str) -> None:
        super().__init__(message)
        self.replay = replay


class Diverged(ExplorationFailed):
    """A run did not repeat the recorded one: the scenario depends on something that is not replayed."""


class Deadlocked(AssertionError):
    """No task is runnable, and nothing can make one runnable."""


class Runaway(AssertionError):
    """The scenario took more than `max_points` steps."""


class TasksLeaked(AssertionError):
    """Tasks that the scenario started were still alive after it ended."""


class ThreadStuck(AssertionError):
    """A worker thread exceeded its real-time limit."""


class HooksMoved(RuntimeError):
    """The installed trio lacks a private part that this kit needs, or the part has changed."""


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions inside nested groups, or the exception itself."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        for member in group.exceptions:
            yield from leaves(member)
    else:
        yield error
