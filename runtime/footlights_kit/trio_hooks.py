"""Hooks into private parts of trio. No other module of the test kit touches these parts.

There are four: the order in which runnable tasks are stepped; the two functions through which worker threads leave
and re-enter a run; the real clock under a `MockClock`; and the names of trio's own two tasks. Each is changed only
inside a `with` block and always restored. `selfcheck.check_hooks` proves that each works with the installed trio.
"""

from __future__ import annotations

import gc
import random
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import trio
import trio.testing

from footlights_kit.verdicts import HooksMoved

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

PLUMBING = frozenset({"<init>", "<TrioToken.run_sync_soon task>"})
"""The names of trio's own two tasks, which are part of every run."""


@contextmanager
def scheduled_by(seed: int) -> Generator[None]:
    """Inside, the order of the tasks in each batch of the scheduler depends only on `seed`.

    In this mode trio sorts a batch by the age of its tasks before it shuffles. So the iteration order of trio's
    internal sets (waiters of an event, members of a cancel scope, scopes with the same deadline) has no effect.
    """
    with _swapped("trio._core._run", _r=random.Random(seed), _ALLOW_DETERMINISTIC_SCHEDULING=True):
        yield


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
    with _swapped("trio._threads", start_thread_soon=start, _send_message_to_trio=send):
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


@contextmanager
def _swapped(module: str, **parts: object) -> Generator[None]:
    saved = {name: _part(module, name) for name in parts}
    home = import_module(module)
    for name, part in parts.items():
        setattr(home, name, part)
    try:
        yield
    finally:
        for name, part in saved.items():
            setattr(home, name, part)


def _part(module: str, name: str) -> Any:
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError):
        raise moved(f"{module}.{name} is gone") from None


def moved(what: str) -> HooksMoved:
    """The error that names the installed version of trio."""
    return HooksMoved(f"this test kit does not fit trio {trio.__version__}: {what}")


# Saved at import: a nested use of the hooks must reach trio, not the outer hooks.
_ORIGINAL_START = _part("trio._threads", "start_thread_soon")
_ORIGINAL_SEND = _part("trio._threads", "_send_message_to_trio")
