"""Quiesced threads: worker threads in step with virtual time.

Under an autojumping `MockClock` a thread that needs 2 ms loses against any virtual timeout, because the clock jumps the
moment no task is runnable. Inside `quiesced_threads` it does not jump then. Whenever no task is runnable, the run waits
in real time until each thread of `trio.to_thread` has finished or waits for the loop itself, and then delivers their
results in the order in which the threads were started. So runs with threads are as repeatable as runs without. Runs on
another clock are unchanged.

Only threads that trio started are known. A thread that waits for a later action of the loop must wait at a `Gate`; one
that passes a token explicitly (`trio_token=`, `run_sync_soon`) works, but in real order.
"""

from __future__ import annotations

import math
import threading
from contextlib import contextmanager
from enum import Enum, auto
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import outcome
import trio
import trio.testing

from footlights_kit.trio_hooks import calling_through, hooked_threads, send_from_thread, start_thread
from footlights_kit.verdicts import ThreadStuck

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_SLICE = 0.001
"""Real seconds between two checks of the loop's own queue while threads are awaited."""


@contextmanager
def quiesced_threads(*, timeout: float = 60.0) -> Generator[list[ThreadStuck]]:
    """Inside, threads are quiesced in every run whose clock autojumps.

    It can be entered around `trio.run`, in a plain fixture, or inside a run. A thread without a result for `timeout`
    real seconds is abandoned: the call that waits for it raises ThreadStuck. The yielded list collects these errors,
    because code under test might swallow them.
    """
    stuck: list[ThreadStuck] = []

    def start(fn: Callable[[], object], deliver: Callable[[Any], object], name: str | None) -> None:
        if _autojumping():
            _current_crew(timeout, stuck).start(fn, deliver, name)
        else:
            start_thread(fn, deliver, name)

    with hooked_threads(start, _send):
        yield stuck


def at_rest() -> trio.lowlevel.RunStatistics | None:
    """The statistics of an idle run: no runnable task, no queued call, no expired deadline. None if it is not idle."""
    now = trio.lowlevel.current_statistics()
    if now.tasks_runnable or now.run_sync_soon_queue_size or now.seconds_to_next_deadline <= 0:
        return None
    return now


def is_idle() -> bool:
    """Whether the run is idle."""
    return at_rest() is not None


class Gate:
    """A place where a worker thread may wait while virtual time continues.

    For threads that hang on purpose: `await trio.to_thread.run_sync(gate.wait)` blocks until `gate.open()`.
    The clock does not wait for a thread that waits here. Without `quiesced_threads` it is a plain event.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opened = threading.Event()
        self._waiting: list[_Worker] = []

    def wait(self) -> None:
        """Block this thread until the gate is open."""
        with self._lock:
            worker = _worker_here()
            if worker is not None and not self._opened.is_set():
                worker.rest()
                self._waiting.append(worker)
        self._opened.wait()

    def open(self) -> None:
        """Release all threads that wait here, now and later."""
        with self._lock:
            # Before the threads really wake: from here on the clock must wait for them again.
            for worker in self._waiting:
                worker.resume()
            self._waiting.clear()
            self._opened.set()


class _State(Enum):
    RUNNING = auto()
    """Busy outside the loop; the clock must wait for it."""
    RESTING = auto()
    """Blocked until the loop does something."""
    ENDED = auto()
    """Its result is there, or it was abandoned. The run ignores what it does afterwards."""


class _Worker:
    """One call of `to_thread.run_sync`. Its result or request is `held` until the run is idle."""

    def __init__(self, crew: _Crew, deliver: Callable[[outcome.Outcome[Any]], object], name: str | None) -> None:
        self.name = name
        self.state = _State.RUNNING
        self.held: Callable[[], object] | None = None
        self.answer: _Answer | None = None
        self._crew = crew
        self._deliver = deliver

    def end(self, result: outcome.Outcome[Any]) -> None:
        self._move(_State.ENDED, held=lambda: self._deliver(result))

    def rest(self) -> None:
        self._move(_State.RESTING)

    def resume(self) -> None:
        self._move(_State.RUNNING)

    def ask(self, fn: Callable[[], object], answer: _Answer) -> None:
        if not self._move(_State.RESTING, held=lambda: self._crew.token.run_sync_soon(fn), answer=answer):
            answer.refuse()

    def _move(self, state: _State, held: Callable[[], object] | None = None, answer: _Answer | None = None) -> bool:
        with self._crew.changed:
            if self._crew.closed or self.state is _State.ENDED:
                return False
            self.state, self.held, self.answer = state, held, answer
            self._crew.changed.notify()
            return True


class _Answer:
    """The queue on which a thread awaits the loop's answer. The thread counts as running once the answer is put."""

    def __init__(self, worker: _Worker) -> None:
        self._worker = worker
        self._queue: SimpleQueue[outcome.Outcome[Any]] = SimpleQueue()

    def put_nowait(self, result: outcome.Outcome[Any]) -> None:
        self._worker.resume()
        self._queue.put(result)

    def refuse(self) -> None:
        self._queue.put(outcome.Error(trio.RunFinishedError("run() has exited")))

    def get(self) -> outcome.Outcome[Any]:
        return self._queue.get()


class _Crew(trio.abc.Instrument):
    """The worker threads of one run, in the order of their start."""

    def __init__(self, timeout: float, stuck: list[ThreadStuck]) -> None:
        self.token = trio.lowlevel.current_trio_token()
        self.changed = threading.Condition()
        self.closed = False
        self._slices = math.ceil(timeout / _SLICE)
        self._timeout = timeout
        self._stuck = stuck
        self._workers: list[_Worker] = []

    def start(self, fn: Callable[[], object], deliver: Callable[[Any], object], name: str | None) -> None:
        worker = _Worker(self, deliver, name)

        def work() -> object:
            _here.worker = worker
            try:
                return fn()
            finally:
                del _here.worker

        self._workers.append(worker)
        start_thread(work, worker.end, name)

    def before_io_wait(self, timeout: float) -> None:
        if self._workers and is_idle() and self._wait():
            self._hand_over()

    def after_run(self) -> None:
        with self.changed:
            self.closed = True
        for worker in self._workers:
            if worker.answer is not None:
                worker.answer.refuse()

    def _wait(self) -> bool:
        """Wait until no thread is running; False if the loop got other work meanwhile."""
        for _ in range(self._slices):
            with self.changed:
                if self.changed.wait_for(self._all_still, _SLICE):
                    return True
            if not is_idle():
                return False
        self._give_up()
        return True

    def _all_still(self) -> bool:
        return all(worker.state is not _State.RUNNING for worker in self._workers)

    def _give_up(self) -> None:
        for worker in self._workers:
            if worker.state is _State.RUNNING:
                error = ThreadStuck(
                    f"the thread {worker.name!r} did nothing for the run in {self._timeout:g} real seconds. "
                    "A thread that is meant to hang should wait at a Gate."
                )
                self._stuck.append(error)
                worker.end(outcome.Error(error))

    def _hand_over(self) -> None:
        with self.changed:
            ready = [worker.held for worker in self._workers if worker.held is not None]
            for worker in self._workers:
                worker.held = None
            self._workers = [worker for worker in self._workers if worker.state is not _State.ENDED]
        for hand_over in ready:
            hand_over()


class _HoldingToken:
    """Replaces the run's token in a worker thread: calls queued on it wait until the run is idle."""

    def __init__(self, worker: _Worker, answer: _Answer) -> None:
        self._worker = worker
        self._answer = answer

    def run_sync_soon(self, fn: Callable[[], object]) -> None:
        self._worker.ask(fn, self._answer)


_crew: trio.lowlevel.RunVar[_Crew | None] = trio.lowlevel.RunVar("crew")
_here = threading.local()


def _current_crew(timeout: float, stuck: list[ThreadStuck]) -> _Crew:
    crew = _crew.get(None)
    if crew is None:
        crew = _Crew(timeout, stuck)
        _crew.set(crew)
        trio.lowlevel.add_instrument(crew)
    return crew


def _worker_here() -> _Worker | None:
    return getattr(_here, "worker", None)


def _send(token: trio.lowlevel.TrioToken | None, message: Any) -> Any:
    worker = _worker_here()
    if worker is None or token is not None:
        return send_from_thread(token, message)
    answer = _Answer(worker)
    object.__setattr__(message, "queue", answer)  # the message is frozen
    with calling_through(_HoldingToken(worker, answer)):
        return send_from_thread(None, message)


def _autojumping() -> bool:
    clock = trio.lowlevel.current_clock()
    return isinstance(clock, trio.testing.MockClock) and clock.autojump_threshold < math.inf
