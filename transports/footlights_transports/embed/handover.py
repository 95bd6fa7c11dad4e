"""A call handed over to another thread, and the ticket by which its answer comes back.

Nothing here is a lock that a Ctrl-C could leave locked: the queue is the interpreter's own, and a claim is for good.
"""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from footlights.errors import FootlightsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

T = TypeVar("T")


class StageThreadStuck(FootlightsError):
    """The stage did not answer in time: something that runs there does not let go."""

    code = "stage_stuck"


class Ticket(Generic[T]):
    """What was asked of a stage on another thread, and the answer as soon as there is one."""

    __slots__ = ("_answer", "_answered", "_claim", "_error", "_is_done", "_timeout", "_traceback", "_work")

    def __init__(self, work: Callable[[Ticket[T]], None], timeout: float | None) -> None:
        self._work = work
        self._timeout = timeout
        self._claim = threading.Lock()
        self._answered: SimpleQueue[None] = SimpleQueue()
        self._answer: T | None = None
        self._error: BaseException | None = None
        self._traceback: TracebackType | None = None
        self._is_done = False

    @property
    def is_done(self) -> bool:
        """Whether `result` would return, or raise, at once."""
        return self._is_done

    def result(self, timeout: float | None = None) -> T:
        """Wait for the answer and return it; if it is an error, raise it.

        Raises `StageThreadStuck` after `timeout` seconds, or else after `answer_timeout`, except that `finalize` and
        `close` take what time they need. A call that was not begun until then will not be made.
        """
        try:
            self._wait(self._timeout if timeout is None else timeout)
        except BaseException:
            self.withdraw()  # nobody will look at the answer
            raise
        if self._error is not None:
            raise self._error.with_traceback(self._traceback)  # which would grow each time
        return cast("T", self._answer)

    def withdraw(self) -> bool:
        """Take it back; False if that comes too late."""
        # Whoever is first has it for good: the one who asked, or the one who does it.
        return self._claim.acquire(blocking=False)

    def _wait(self, timeout: float | None) -> None:
        try:
            self._answered.get(timeout=timeout)
        except Empty:
            fate = "nothing was done" if self.withdraw() else "it is being done"
            raise StageThreadStuck(f"The stage did not answer for {timeout:g} seconds; {fate}.") from None
        self._answered.put(None)  # for whoever asks again

    # -- for the one who does it

    def take(self) -> None:
        """Do it, unless it was taken back."""
        if self.withdraw():
            self._work(self)

    def succeed(self, answer: T) -> None:
        self._answer = answer
        self._finish()

    def fail(self, error: BaseException) -> None:
        self._error = error
        self._traceback = error.__traceback__
        self._finish()

    def _finish(self) -> None:
        self._is_done = True
        self._answered.put(None)
