"""Ticket: a call on the thread of a stage, as a `concurrent.futures.Future`.

So `asyncio.wrap_future(ticket)`, `add_done_callback` and `concurrent.futures.wait` work with it. A callback runs on the
thread of the stage: it must be short, and must not call the stage.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from footlights.errors import FootlightsError
from footlights.failures import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import TracebackType

T = TypeVar("T")

log = logging.getLogger("footlights.embed")


class StageThreadStuck(FootlightsError):
    """The stage did not answer in time: something blocks its thread."""

    code = "stage_stuck"


class Ticket(Future[T]):
    """A call on the thread of a stage. Its result, or its error, comes later.

    `cancel` withdraws it, which is possible until it begins.
    """

    def __init__(
        self, work: Callable[[Ticket[T]], None], timeout: float | None, send: Callable[[], None] | None = None
    ) -> None:
        super().__init__()
        self._work = work
        self._timeout = timeout
        self._send = send
        """Sends the call, if it waits to be sent with others."""
        self._traceback: TracebackType | None = None

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result and return it, or raise the error of the call.

        Raises `TimeoutError` after `timeout` seconds, as any future: the call is made all the same, and its result may
        be asked for again. Without `timeout`, raises `StageThreadStuck` after `answer_timeout`, and a call that has not
        begun by then is never made; `finalize`, `commit_soon` and `close` wait without limit.
        """
        error = self.exception(timeout)
        if error is not None:
            raise error.with_traceback(self._traceback)  # a traceback would grow with each raise
        return super().result()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error of the call, or None, when it is done. Raises as `result` does if that takes too long."""
        patience = self._timeout if timeout is None else timeout
        try:
            if self._send is not None and not self.done():
                self._send()
            return super().exception(patience)
        except NotYet:
            if timeout is not None:
                raise
            fate = "nothing was done" if self.cancel() else "it is being done"
            raise StageThreadStuck(f"The stage did not answer for {patience:g} seconds; {fate}.") from None
        except BaseException:
            self.cancel()  # the caller has given up
            raise

    # -- for the thread that makes the call

    def take(self) -> None:
        """Make the call, unless it was withdrawn."""
        if self.set_running_or_notify_cancel():
            self._work(self)

    def refuse(self, error: BaseException) -> None:
        """Fail instead of making the call, unless it was withdrawn."""
        if self.set_running_or_notify_cancel():
            self.fail(error)

    def succeed(self, answer: T) -> None:
        with _surviving_callbacks():
            self.set_result(answer)

    def fail(self, error: BaseException) -> None:
        self._traceback = error.__traceback__
        with _surviving_callbacks():
            self.set_exception(error)


@contextmanager
def _surviving_callbacks() -> Generator[None]:
    """A boundary: a callback of the host must not end the stage. Futures themselves log what else callbacks raise."""
    try:
        yield
    except InvalidStateError:
        raise
    except BaseException as error:  # noqa: BLE001 - see above
        log.error("a callback of a ticket failed: %s", describe(error))
