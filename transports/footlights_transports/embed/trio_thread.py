"""TrioThread: a trio run on a thread of its own, which keeps a resource open and makes calls on it for other threads.

An error of a call is raised to its caller and does not harm the run. If the run itself fails, all waiting and later
calls raise `StageThreadDied`. It ends on request, or when no other thread is left that could request it. A run that
does not end then is abandoned after a time, so that it never keeps the interpreter from exiting.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from contextlib import contextmanager, suppress
from contextvars import copy_context
from inspect import isawaitable, iscoroutine
from queue import SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import trio
from attrs import frozen

from footlights.errors import Busy, FootlightsError, InvalidCommand, SessionClosed
from footlights.failures import contained
from footlights_transports.embed.ticket import StageThreadStuck, Ticket

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from contextlib import AbstractAsyncContextManager

R = TypeVar("R")
T = TypeVar("T")

log = logging.getLogger("footlights.embed")

MAX_WAITING = 1024
"""The limit of waiting calls. The thread makes all of them at once, so only a blocked one has so many."""
_CHECK_SECONDS = 0.25
"""Interval, in seconds, at which a guard checks whether the program has ended, and whether a call of the host's has."""


class StageThreadDied(FootlightsError):
    """The stage failed, and its thread has ended. The cause says why."""

    code = "stage_died"


@frozen
class Inside(Generic[R]):
    """What exists while the run is open."""

    resource: R
    tasks: trio.Nursery
    """Outlives the resource; its tasks must end by themselves when the resource is closed."""
    token: trio.lowlevel.TrioToken


class TrioThread(Generic[R]):
    """Ask it from any thread but its own; `open` it once."""

    def __init__(self, resource: AbstractAsyncContextManager[R], *, timeout: float, exit_timeout: float) -> None:
        self._resource = resource
        self._timeout = timeout
        self._exit_timeout = exit_timeout
        """Seconds in which the run may end after the program has."""
        self._jobs: deque[Ticket[Any]] = deque()
        self._begun: set[Ticket[Any]] = set()
        """The tickets of tasks that have begun, until they are answered."""
        self._gathering: set[int] = set()
        """The threads that are in `together`."""
        self._process = os.getpid()
        self._opened: SimpleQueue[None] = SimpleQueue()
        self.closing = trio.Event()
        """Set on the thread when the end was requested."""
        self._leaving = False
        self._failure: BaseException | None = None
        self._inside: Inside[R] | None = None
        self._thread = threading.Thread(target=self._run, name="footlights stage", daemon=True)
        self._calling: tuple[Callable[..., object], float] | None = None
        """The call of the host's that is being made on the thread, and since when."""
        self._reported: tuple[Callable[..., object], float] | None = None
        self.has_ended = False
        self.at_end: set[Callable[[], None]] = set()
        """Called on the thread when the run has ended. None may raise."""

    # -- for other threads

    def open(self) -> None:
        """Start the thread and wait until the resource is open. Raises the error if that fails."""
        if self._thread.ident is not None or self._leaving:
            raise InvalidCommand("A stage thread is opened once; make another.")
        try:
            self._thread.start()
            _Guard(target=self._guard, name="footlights guard", daemon=False).start()
            self._opened.get()
        except BaseException:
            self.leave()
            raise
        if self._inside is None and self._failure is not None:
            raise self._failure

    def leave(self) -> None:
        """Request the end of the run."""
        self.check_thread()
        self._leaving = True  # first: the run sets `_inside`, and then looks here
        if self._inside is not None:
            self.run_soon(self.closing.set)

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end of the thread. Raises `StageThreadDied` if the run failed.

        Raises `StageThreadStuck` after `timeout` seconds; the thread goes on to its end.
        """
        self.check_process()
        if self._thread.ident is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                raise StageThreadStuck(f"The stage did not close within {timeout:g} seconds; it goes on closing.")
        self.raise_failure()

    @property
    def is_forked(self) -> bool:
        """Whether this process was forked from that of the thread."""
        return os.getpid() != self._process

    def check_process(self) -> None:
        """Raises `InvalidCommand` in a process that was forked from that of the thread."""
        if self.is_forked:
            raise InvalidCommand("The stage runs in the process that this one was forked from. Open one here.")

    def note(self, work: Callable[[], object]) -> None:
        """Make a call soon, if the run is open. For finalizers: it raises nothing, on any thread and in a fork."""
        if self._inside is not None and not self.is_forked:
            with suppress(trio.RunFinishedError):
                self._inside.token.run_sync_soon(work)

    def run_soon(self, work: Callable[[], object]) -> None:
        """Make a call soon; once, if it is requested several times before. Not at all if the run has ended."""
        with suppress(trio.RunFinishedError):
            self._now_inside().token.run_sync_soon(work, idempotent=True)

    @overload
    def ask(self, work: Callable[[Inside[R]], Awaitable[T]], *, patient: bool = False) -> Ticket[T]: ...
    @overload
    def ask(self, work: Callable[[Inside[R]], T], *, patient: bool = False) -> Ticket[T]: ...
    def ask(self, work: Callable[[Inside[R]], Any], *, patient: bool = False) -> Ticket[Any]:
        """Request a call. If it returns something to await, a task awaits it.

        The `result` of a `patient` ticket waits without limit.
        """
        inside, context = self._now_inside(), copy_context()

        def call(ticket: Ticket[Any]) -> None:
            try:
                answer = context.run(work, inside)
            except BaseException as error:  # noqa: BLE001 - every error of the call is raised to its caller
                ticket.fail(error)
                return
            if not isawaitable(answer):
                ticket.succeed(answer)
                return
            self._begun.add(ticket)
            try:
                context.run(inside.tasks.start_soon, self._await, ticket, answer)
            except RuntimeError:  # the nursery is closed, and the run is about to end
                if iscoroutine(answer):
                    answer.close()

        send = self._send_jobs if threading.get_ident() in self._gathering else None
        return self._hand_over(Ticket(call, None if patient else self._timeout, send))

    @contextmanager
    def together(self) -> Generator[None]:
        """Requests of this thread inside the block cross to the other one together, when it is left."""
        this = threading.get_ident()
        if this in self._gathering:
            yield
            return
        self._gathering.add(this)
        try:
            yield
        finally:
            self._gathering.discard(this)
            self._send_jobs()

    def raise_failure(self) -> None:
        """Raise `StageThreadDied` if the run failed."""
        failure = self.failure()
        if failure is not None:
            raise failure

    def failure(self) -> StageThreadDied | None:
        """A new `StageThreadDied` if the run failed."""
        if self._failure is None:
            return None
        died = StageThreadDied("The stage failed, and its thread has ended.")
        died.__cause__ = self._failure
        return died

    def _gone(self) -> FootlightsError:
        return self.failure() or SessionClosed("The stage is closed.")

    @property
    def resource(self) -> R:
        """The resource, for what any thread may read of it, also when it is closed. Raises what ended it."""
        self.check_process()
        if (died := self.failure()) is not None:
            raise died
        return self._while_open().resource

    def _now_inside(self) -> Inside[R]:
        self.check_thread()
        return self._while_open()

    def _while_open(self) -> Inside[R]:
        if self._inside is None:
            raise SessionClosed("The stage is not open yet: enter it with `with`, or call `open`.")
        return self._inside

    def check_thread(self) -> None:
        """Raises `InvalidCommand` on the stage's own thread, and in a fork."""
        self.check_process()
        if threading.current_thread() is self._thread:
            raise InvalidCommand("This is the stage's own thread, which would wait for itself.")

    def call_host(self, call: Callable[..., T], *given: object) -> T:
        """Make a plain call of the host's on the thread. The guard reports one that does not return soon."""
        self._calling = call, monotonic()
        try:
            return call(*given)
        finally:
            self._calling = None

    def _guard(self) -> None:
        """Let a program that forgot to close its stage wait for the last commits, but not for more."""
        while self._thread.is_alive() and not _program_has_ended():
            self._thread.join(_CHECK_SECONDS)
            self._report_slow_call()
        self.leave()
        self._thread.join(self._exit_timeout)

    def _report_slow_call(self) -> None:
        calling = self._calling
        if calling is None or calling is self._reported or (took := monotonic() - calling[1]) < _CHECK_SECONDS:
            return
        self._reported, call = calling, calling[0]
        name = getattr(call, "__qualname__", type(call).__qualname__)
        log.error(
            "%s has held the thread of the stage for %.1f s: until it returns, the stage stands still", name, took
        )

    def _hand_over(self, ticket: Ticket[T]) -> Ticket[T]:
        if len(self._jobs) >= MAX_WAITING:
            ticket.refuse(Busy(f"The thread of the stage is blocked, and {MAX_WAITING} calls wait for it already."))
            return ticket
        try:
            self._jobs.append(ticket)
            if threading.get_ident() not in self._gathering or self.has_ended:
                self._send_jobs()
        except BaseException:
            ticket.cancel()  # a Ctrl-C: the caller never gets this ticket
            raise
        return ticket

    def _send_jobs(self) -> None:
        try:
            self._now_inside().token.run_sync_soon(self._do_jobs, idempotent=True)
        except trio.RunFinishedError:
            self._thread.join()
            self._refuse_jobs()

    def _refuse_jobs(self) -> None:
        with suppress(IndexError):  # several threads may be doing this
            while True:
                self._jobs.popleft().refuse(self._gone())

    # -- on the thread

    def _run(self) -> None:
        try:
            trio.run(self._main)
        except BaseExceptionGroup as errors:
            self._failure = errors.exceptions[0] if len(errors.exceptions) == 1 else errors
        except BaseException as error:  # noqa: BLE001 - kept for later calls
            self._failure = error
        self.has_ended = True
        for call in self.at_end:
            call()
        self._refuse_jobs()
        for ticket in self._begun:
            if not ticket.done():
                ticket.fail(self._gone())
        self._opened.put(None)

    async def _main(self) -> None:
        async with trio.open_nursery() as tasks, self._resource as resource:
            self._inside = Inside(resource, tasks, trio.lowlevel.current_trio_token())
            self._opened.put(None)
            if not self._leaving:
                await self.closing.wait()
            self.closing.set()

    async def _await(self, ticket: Ticket[T], work: Awaitable[T]) -> None:
        answers: list[T] = []
        with contained(ticket.fail):
            answers.append(await work)
        self._begun.remove(ticket)
        for answer in answers:  # outside of the boundary, which would fail a ticket that has its answer
            ticket.succeed(answer)

    def _do_jobs(self) -> None:
        while self._jobs:
            self._jobs.popleft().take()


class _Guard(threading.Thread):
    """Not a daemon, as the thread of the run is, which cannot become one when its time is over."""


def _program_has_ended() -> bool:
    """Whether only threads of this kind, and daemons, are left."""
    return not any(
        thread.is_alive() and not thread.daemon and not isinstance(thread, _Guard) for thread in threading.enumerate()
    )
