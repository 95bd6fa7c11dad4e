"""Ticket: a call on another thread, and its result when there is one.

It holds no lock that a Ctrl-C could leave locked: the queue is the interpreter's own, and a claim is never released.
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
    """The stage did not answer in time: something blocks its thread."""

    code = "stage_stuck"


class Ticket(Generic[T]):
    """A call on the thread of a stage. Its result, or its error, comes later."""

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
        """Wait for the result and return it, or raise the error of the call.

        Raises `StageThreadStuck` after `timeout` seconds, or after `answer_timeout` if `timeout` is None; without
        `timeout`, `finalize` and `close` wait without limit. A call that has not begun by then is never made.
        """
        try:
            self._wait(self._timeout if timeout is None else timeout)
        except BaseException:
            self.withdraw()  # the caller has given up
            raise
        if self._error is not None:
            raise self._error.with_traceback(self._traceback)  # a traceback would grow with each raise
        return cast("T", self._answer)

    def withdraw(self) -> bool:
        """Withdraw the call; False if it has begun."""
        # The claim is taken once, by the caller who withdraws or by the thread that makes the call.
        return self._claim.acquire(blocking=False)

    def _wait(self, timeout: float | None) -> None:
        try:
            self._answered.get(timeout=timeout)
        except Empty:
            fate = "nothing was done" if self.withdraw() else "it is being done"
            raise StageThreadStuck(f"The stage did not answer for {timeout:g} seconds; {fate}.") from None
        self._answered.put(None)  # for the next `result`

    # -- for the thread that makes the call

    def take(self) -> None:
        """Make the call, unless it was withdrawn."""
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
