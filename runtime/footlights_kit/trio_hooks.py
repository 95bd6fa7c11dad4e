"""Hooks into private parts of trio. No other module of the test kit touches these parts.

Changed, always inside a `with` block that restores them: the order in which runnable tasks are stepped; the two
functions through which worker threads leave and re-enter a run; the end of a cancel scope; the real clock under a
`MockClock`. Read: the names of trio's own two tasks, the scopes around a task, what a task is about to be sent, and the
files that a run waits for. `selfcheck.check_hooks` proves that each works with the installed trio.
"""

from __future__ import annotations

import gc
import random
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import trio
import trio.testing

from footlights_kit.verdicts import HooksMoved

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, MutableSequence

PLUMBING = frozenset({"<init>", "<TrioToken.run_sync_soon task>"})
"""The names of trio's own two tasks, which are part of every run."""


@contextmanager
def scheduled_by(order: int) -> Generator[None]:
    """Inside, the order of the tasks in each batch of the scheduler depends only on the number `order`.

    Order 0 steps the oldest task first, and order 1 the youngest: together they try every two tasks both ways round,
    so a bug that needs one task before another, whenever both are runnable, is found. Of the others, an even one draws
    a priority for each task, which the task keeps: it finds a bug that needs a certain order of d tasks with a
    probability of 1/d!. An odd one shuffles each batch anew, for bugs that need a change of the order.

    In this mode trio sorts a batch by the age of its tasks before it shuffles. So the iteration order of trio's
    internal sets (waiters of an event, members of a cancel scope, scopes with the same deadline) has no effect.
    """
    run = import_module("trio._core._run")
    with swapped(run, _r=_Order(order), _ALLOW_DETERMINISTIC_SCHEDULING=True):
        yield


class _Order(random.Random):
    """The randomness of the scheduler, which asks it to shuffle each batch, and steps the last of the batch first."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._number = number
        self._priorities: dict[object, float] = {}

    def shuffle(self, x: MutableSequence[Any]) -> None:
        if self._number == 0:
            x.reverse()
        elif self._number > 1 and self._number % 2 == 0:
            priorities = {task: self._priorities.get(task) or self.random() for task in x}
            self._priorities |= priorities
            x[:] = sorted(x, key=priorities.__getitem__)
        elif self._number > 1:
            super().shuffle(x)


@contextmanager
def collected_between_runs() -> Generator[Callable[[], object]]:
    """Inside, garbage is collected only when the yielded function is called.

    A collection may finalize an async generator, which schedules a task at a moment that cannot be repeated.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        # The young generations suffice: a run that just ended has nothing in the old one.
        yield lambda: gc.collect(1)
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def hooked_threads(start: Callable[..., Any], send: Callable[..., Any]) -> Generator[None]:
    """Inside, `to_thread` starts its threads through `start`, and `from_thread` calls the loop through `send`."""
    threads = import_module("trio._threads")
    with swapped(threads, start_thread_soon=start, _send_message_to_trio=send):
        yield


def start_thread(fn: Callable[[], object], deliver: Callable[[Any], object], name: str | None) -> None:
    """Trio's original of `start`: run `fn` in a thread, and pass its outcome to `deliver` in that thread."""
    _ORIGINAL_START(fn, deliver, name)


def send_from_thread(token: trio.lowlevel.TrioToken | None, message: Any) -> Any:
    """Trio's original of `send`: queue `message` on the loop, and block until it is answered."""
    return _ORIGINAL_SEND(token, message)


@contextmanager
def calling_through(token: object) -> Generator[None]:
    """In a worker thread: inside, `send_from_thread(None, ...)` calls `token.run_sync_soon`."""
    parent = _part("trio._threads", "PARENT_TASK_DATA")
    saved = parent.token
    parent.token = token
    try:
        yield
    finally:
        parent.token = saved


def break_clock(clock: trio.testing.MockClock, error: BaseException) -> None:
    """Make `clock` raise `error`, which ends the run that uses it with a TrioInternalError."""

    def broken() -> NoReturn:
        raise error

    if "_real_clock" not in vars(clock):
        raise moved("MockClock has no _real_clock")
    vars(clock)["_real_clock"] = broken


def scopes_around(task: trio.lowlevel.Task) -> Iterator[trio.CancelScope]:
    """The scopes whose cancel reaches this task, innermost first: a shield ends them."""
    status: Any = _attribute(task, "_cancel_status")
    while status is not None:
        scope: trio.CancelScope = _attribute(status, "_scope")
        yield scope
        status = None if scope.shield else _attribute(status, "_parent")


def is_reached(task: trio.lowlevel.Task) -> bool:
    """Whether a cancelled scope reaches this task."""
    return bool(_attribute(_attribute(task, "_cancel_status"), "effectively_cancelled"))


def is_cancelled(scope: trio.CancelScope) -> bool:
    """`scope.cancel_called`, which looks at the clock and may cancel the scope itself."""
    return bool(_attribute(scope, "_cancel_called"))


def pending_cancel(task: trio.lowlevel.Task) -> trio.Cancelled | None:
    """Before a step of this task: the Cancelled with which the step begins, if it does."""
    error = getattr(_attribute(task, "_next_send"), "error", None)
    return error if isinstance(error, trio.Cancelled) else None


@contextmanager
def watched_scopes(ended: Callable[[trio.CancelScope, BaseException | None], object]) -> Generator[None]:
    """Inside, `ended` is called with each scope that ends, and what its block raised."""
    close = _attribute(trio.CancelScope, "_close")

    def watched_close(self: trio.CancelScope, error: BaseException | None) -> BaseException | None:
        ended(self, error)
        remaining: BaseException | None = close(self, error)
        return remaining

    with swapped(trio.CancelScope, _close=watched_close):
        yield


class AwaitedFile(NamedTuple):
    """A descriptor that tasks wait for."""

    fd: int
    to_read: bool
    to_write: bool


def awaited_files() -> list[AwaitedFile]:
    """In a run: the descriptors that its tasks wait for, where trio's loop keeps them by number (Linux), or none."""
    waiters = getattr(_part("trio._core._run", "GLOBAL_RUN_CONTEXT").runner.io_manager, "_registered", {})
    files = [
        AwaitedFile(fd, each.read_task is not None, each.write_task is not None)
        for fd, each in waiters.items()
        if isinstance(fd, int)
    ]
    return [each for each in files if each.to_read or each.to_write]


@contextmanager
def swapped(home: Any, **parts: object) -> Generator[None]:
    """Inside, these attributes of a module or a class have other values."""
    saved = {name: _attribute(home, name) for name in parts}
    inherited = {name for name in parts if name not in vars(home)}
    for name, part in parts.items():
        setattr(home, name, part)
    try:
        yield
    finally:
        for name, part in saved.items():
            if name in inherited:
                delattr(home, name)
            else:
                setattr(home, name, part)


def _part(module: str, name: str) -> Any:
    try:
        return _attribute(import_module(module), name)
    except ImportError:
        raise moved(f"{module} is gone") from None


def _attribute(home: Any, name: str) -> Any:
    try:
        return getattr(home, name)
    except AttributeError:
        raise moved(f"{getattr(home, '__name__', type(home).__name__)}.{name} is gone") from None


def moved(what: str) -> HooksMoved:
    """The error that names the installed version of trio."""
    return HooksMoved(f"this test kit does not fit trio {trio.__version__}: {what}")


# Saved at import: a nested use of the hooks must reach trio, not the outer hooks.
_ORIGINAL_START = _part("trio._threads", "start_thread_soon")
_ORIGINAL_SEND = _part("trio._threads", "_send_message_to_trio")
