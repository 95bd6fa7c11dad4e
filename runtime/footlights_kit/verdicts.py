"""Verdicts: the errors of a scenario or of its exploration.

    ExplorationFailed     a case failed; the message has the line that replays it
    └── Diverged          a run did not repeat the recorded one, so no result can be trusted

The `__cause__` of an ExplorationFailed is the exception of the scenario or one of

    Deadlocked            no task can ever run again
    Runaway               the scenario exceeded its number of steps
    ThreadStuck           a worker thread never returned
    GraceExceeded         the scenario went on for too long after the cancel
    CancelSwallowed       a Cancelled was delivered, and left no scope
    CleanupCut            a Cancelled interrupted the cleanup after a Cancelled
    TasksLeaked           tasks outlived the scenario that started them
    LocksHeld             locks, semaphores or tokens were not given back
    ResourcesLeaked       sockets, files, processes or async generators were left open

The last six can be allowed by name. HooksMoved concerns trio, not a scenario: a private part that this kit uses is
missing or changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator


class ExplorationFailed(AssertionError):
    """One case failed. Pass `replay` to the function that raised it, to run only that case again."""

    def __init__(self, message: str, replay: str) -> None:
        super().__init__(message)
        self.replay = replay


class Diverged(ExplorationFailed):
    """A run did not repeat the recorded one: the scenario depends on something that is not replayed."""


class Deadlocked(AssertionError):
    """No task is runnable, and nothing can make one runnable."""


class Runaway(AssertionError):
    """The scenario took more than `max_points` steps."""


class ThreadStuck(AssertionError):
    """A worker thread exceeded its real-time limit."""


class GraceExceeded(AssertionError):
    """The scenario would need more than `grace` virtual seconds after the last cancel."""


class CancelSwallowed(AssertionError):
    """A Cancelled was delivered inside the cancelled scope, but the scope ended as if nothing had happened."""


class CleanupCut(AssertionError):
    """A task that was dealing with its Cancelled awaited without a shield, and was cancelled again there."""


class TasksLeaked(AssertionError):
    """Tasks that the scenario started were still alive after it ended."""


class LocksHeld(AssertionError):
    """A lock, a semaphore or a token of a limiter was not given back, and its task has ended."""


class ResourcesLeaked(AssertionError):
    """A socket, a file, a process or an async generator was left open."""


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
