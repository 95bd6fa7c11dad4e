"""Meter: counts task steps, calls, encodes and sends of a part of a run. Machine load cannot change the counts.

The runs are repeatable: tasks are stepped in a fixed order, time is virtual, plain calls replace worker threads, and
garbage is not collected meanwhile. The meter counts the work of our code and of trio, not that of the harness or the
test kit.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from random import Random
from socket import AF_INET, socket
from typing import TYPE_CHECKING, Any, TypeVar
from unittest.mock import patch

import orjson
import outcome
import rfc8785
import trio
import trio.testing
from blake3 import blake3

import footlights
import footlights.authority
import footlights.testing
import footlights_actors
import footlights_transports
from footlights.events import StreamEvent
from footlights_kit.trio_hooks import collected_between_runs, hooked_threads, send_from_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, MutableSequence
    from types import FrameType, ModuleType


_T = TypeVar("_T")


class Count(StrEnum):
    """The kinds of counts."""

    STEPS = "task steps"
    """Times that trio resumed a task: one more than the checkpoints of the task."""
    TASKS = "tasks started"
    HOPS = "thread hops"
    """Calls in a worker thread."""
    CALLS = "Python calls"
    """Times that a function of ours was entered, or a coroutine or generator of ours resumed."""
    EVENTS = "event objects made"
    ENCODES = "JSON encodes"
    """Outside the authority plane: those of events, frames and replies."""
    CANONICAL = "canonical encodes"
    """JSON encodes inside the authority plane."""
    DIGESTS = "digests"
    STATEMENTS = "SQL statements"
    SENDS = "socket sends"
    FRAMES = "frames"
    BYTES = "bytes sent"
    BLOCKS = "blocks of memory"
    """Memory blocks of at most 512 bytes that Python has allocated and not freed."""


BY_PYTHON = frozenset({Count.CALLS, Count.BLOCKS})
"""Counts that depend on the version of Python: later ones inline more and lay out objects differently."""

METERED = (
    Count.STEPS,
    Count.TASKS,
    Count.HOPS,
    Count.CALLS,
    Count.EVENTS,
    Count.ENCODES,
    Count.CANONICAL,
    Count.DIGESTS,
    Count.SENDS,
)
"""Counts that the meter takes in every run."""


def repeatable(run: Callable[[Meter], Awaitable[_T]]) -> _T:
    """Call `run` with a meter, in a trio run that is the same every time, and return its result."""
    meter = Meter()
    _clear_caches()
    with _stepped_by_age(), hooked_threads(meter.run_in_place, send_from_thread), _only_new_garbage():
        return trio.run(run, meter, clock=meter.clock)


@contextmanager
def _only_new_garbage() -> Generator[None]:
    """Collect garbage only on request, and only among objects made in the block: collecting all would take long."""
    gc.freeze()
    try:
        with collected_between_runs():
            yield
    finally:
        gc.unfreeze()


def _clear_caches() -> None:
    """Clear the caches of our modules, so that an earlier run does not save this one calls."""
    for module in list(sys.modules.values()):
        if is_ours(getattr(module, "__file__", None) or ""):
            for value in list(vars(module).values()):
                clear: Callable[[], None] | None = getattr(value, "cache_clear", None)
                if clear is not None:
                    clear()


class _Unshuffled(Random):
    def shuffle(self, x: MutableSequence[Any]) -> None: ...


@contextmanager
def _stepped_by_age() -> Generator[None]:
    """Step the runnable tasks in the order of their age.

    A fixed seed would be as repeatable. But with a seed, one more step anywhere would change the order of all later
    steps, and the counts would change by more than that step.
    """
    with patch.multiple("trio._core._run", _r=_Unshuffled(), _ALLOW_DETERMINISTIC_SCHEDULING=True):
        yield


class Meter(trio.abc.Instrument):
    """Counts while it is `running`. Virtual time stands still, except where a method says otherwise."""

    def __init__(self) -> None:
        self.clock = trio.testing.MockClock()
        self._counter: Counter[Count] = Counter()
        self._known_files: dict[str, bool] = {}

    @property
    def counts(self) -> dict[Count, int]:
        """The counts of the last run."""
        return {count: self._counter[count] for count in METERED}

    @contextmanager
    def time_goes_on(self) -> Generator[None]:
        """In the block, virtual time jumps to the next deadline when all tasks wait."""
        self.clock.autojump_threshold = 0
        try:
            yield
        finally:
            self.clock.autojump_threshold = float("inf")

    @contextmanager
    def running(self) -> Generator[None]:
        """Count in the block. Virtual time goes on as in `time_goes_on`."""
        self._counter.clear()
        gc.collect()
        before = sys.getprofile()
        trio.lowlevel.add_instrument(self)
        with self.time_goes_on():
            sys.setprofile(self._note)
            try:
                yield
            finally:
                sys.setprofile(before)
                trio.lowlevel.remove_instrument(self)

    def let_time_pass(self) -> None:
        """From now on virtual time runs at the speed of real time, for servers that wait while they close."""
        self.clock.rate = 1.0

    def run_in_place(
        self, fn: Callable[[], object], deliver: Callable[[outcome.Outcome[object]], object], _name: str | None
    ) -> None:
        """Replace a worker thread by a call: when a thread ends is not repeatable."""
        self._counter[Count.HOPS] += 1
        deliver(outcome.capture(fn))

    # -- trio's instrument hooks

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._counter[Count.STEPS] += 1

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        self._counter[Count.TASKS] += 1

    # -- profile function

    def _note(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            self._note_call(frame)
        elif event == "c_call":
            self._note_builtin(frame, arg)

    def _note_call(self, frame: FrameType) -> None:
        code = frame.f_code
        if code is _MAKE_EVENT:
            self._counter[Count.EVENTS] += 1
        elif code is _WRITE_WITH_CARE:
            self._counter[Count.CANONICAL] += 1
        if self._is_ours(code.co_filename):
            self._counter[Count.CALLS] += 1

    def _note_builtin(self, frame: FrameType, builtin: Any) -> None:
        name = builtin.__name__
        if builtin is orjson.dumps:
            is_authority = frame.f_code.co_filename.startswith(_AUTHORITY)
            self._counter[Count.CANONICAL if is_authority else Count.ENCODES] += 1
        elif name in _DIGESTING and isinstance(builtin.__self__, blake3):
            self._counter[Count.DIGESTS] += 1
        elif name in _SENDING and _is_send(builtin, frame):
            self._counter[Count.SENDS] += 1

    def _is_ours(self, file: str) -> bool:
        known = self._known_files.get(file)
        if known is None:
            known = self._known_files[file] = is_ours(file)
        return known


def is_ours(file: str) -> bool:
    """Whether the code of this file is measured. attrs and cattrs name generated code by its class."""
    if file.startswith("<"):
        return " footlights" in file and not any(kit in file for kit in (" footlights.testing", " footlights_kit"))
    return file.startswith(_OURS) and not file.startswith(_TEST_KIT)


def _is_send(builtin: Any, frame: FrameType) -> bool:
    """Whether the call sends bytes to the network. Trio also writes to a socket pair to wake itself."""
    if builtin in (os.write, getattr(os, "writev", None)):
        return is_ours(frame.f_code.co_filename)
    return isinstance(builtin.__self__, socket) and builtin.__self__.family == AF_INET


def _folder(package: ModuleType) -> str:
    assert package.__file__ is not None
    return str(Path(package.__file__).parent) + os.sep


_OURS = tuple(map(_folder, (footlights, footlights_actors, footlights_transports)))
_AUTHORITY = _folder(footlights.authority)
_TEST_KIT = _folder(footlights.testing)
_MAKE_EVENT = StreamEvent.__init__.__code__
_WRITE_WITH_CARE = rfc8785.dumps.__code__
_DIGESTING = frozenset({"digest", "hexdigest"})
_SENDING = frozenset({"send", "sendmsg", "sendall", "write", "writev"})
