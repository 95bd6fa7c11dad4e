"""Counts what a stretch of a run costs in steps, calls and copies: numbers that no busy machine can change.

The runs that it counts are repeatable: tasks are stepped in one order, time is virtual, worker threads are stood in for
by plain calls, and no garbage is collected meanwhile. It counts what our own code and trio do, not what the harness or
the test kit does.
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
from footlights.testing.determinism import collected_between_runs, hooked_threads, send_from_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, MutableSequence
    from types import FrameType, ModuleType


_T = TypeVar("_T")


class Count(StrEnum):
    """What is counted."""

    STEPS = "task steps"
    """How often a task was given control: one more than it has checkpoints."""
    TASKS = "tasks started"
    HOPS = "thread hops"
    """Calls that went to a worker thread and back."""
    CALLS = "Python calls"
    """How often a function of ours was entered, or a coroutine or generator of ours resumed."""
    EVENTS = "event objects made"
    ENCODES = "JSON encodes"
    """Outside of the authority plane: those of events, frames and replies."""
    CANONICAL = "canonical encodes"
    """The same inside of it."""
    DIGESTS = "digests"
    STATEMENTS = "SQL statements"
    SENDS = "socket sends"
    FRAMES = "frames"
    BYTES = "bytes sent"
    BLOCKS = "blocks of memory"
    """Pieces of memory, of 512 bytes at most, that Python has taken and not given back."""
    ALLOCATIONS = "allocations"
    """Such pieces that our own code took, whether it gave them back or not."""


BY_PYTHON = frozenset({Count.CALLS, Count.BLOCKS, Count.ALLOCATIONS})
"""Those that depend on the version of Python: later ones inline more, and lay objects out otherwise."""
BY_RELEASE = frozenset({Count.ALLOCATIONS})
"""Of those, the ones that may differ between two releases of one version."""

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
"""Those that a meter finds by itself, in any run."""


def repeatable(run: Callable[[Meter], Awaitable[_T]]) -> _T:
    """What `run` finds with the meter that it is given, in a run of trio that is the same every time."""
    meter = Meter()
    _clear_caches()
    with _stepped_by_age(), hooked_threads(meter.run_in_place, send_from_thread), _only_new_garbage():
        return trio.run(run, meter, clock=meter.clock)


@contextmanager
def _only_new_garbage() -> Generator[None]:
    """Inside, garbage is collected when it is asked for, and only what was made inside: all of it would take long."""
    gc.freeze()
    try:
        with collected_between_runs():
            yield
    finally:
        gc.unfreeze()


def _clear_caches() -> None:
    """What an earlier run left in our modules would spare this one some calls."""
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
    """Inside, the oldest of the tasks that may run goes first.

    Any fixed seed would be as repeatable, but one step more anywhere would then draw other orders for all that follows,
    and the counts would change by more than that step.
    """
    with patch.multiple("trio._core._run", _r=_Unshuffled(), _ALLOW_DETERMINISTIC_SCHEDULING=True):
        yield


class Meter(trio.abc.Instrument):
    """Counts what happens while it is `running`. Virtual time stands still unless it says otherwise."""

    def __init__(self) -> None:
        self.clock = trio.testing.MockClock()
        self._counter: Counter[Count] = Counter()
        self._known_files: dict[str, bool] = {}

    @property
    def counts(self) -> dict[Count, int]:
        """What was counted when it ran last."""
        return {count: self._counter[count] for count in METERED}

    @contextmanager
    def time_goes_on(self) -> Generator[None]:
        """Inside, virtual time jumps to the next moment at which there is something to do."""
        self.clock.autojump_threshold = 0
        try:
            yield
        finally:
            self.clock.autojump_threshold = float("inf")

    @contextmanager
    def running(self) -> Generator[None]:
        """The same, and everything is counted."""
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
        """From now on virtual time is real time, for those who wait a moment while they close."""
        self.clock.rate = 1.0

    def run_in_place(
        self, fn: Callable[[], object], deliver: Callable[[outcome.Outcome[object]], object], _name: str | None
    ) -> None:
        """Stands in for starting a thread: when a thread is done is the one thing that nobody can repeat."""
        self._counter[Count.HOPS] += 1
        deliver(outcome.capture(fn))

    # -- what trio tells

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._counter[Count.STEPS] += 1

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        self._counter[Count.TASKS] += 1

    # -- what the interpreter tells

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
    """Whether the code of this file is part of what is measured; attrs and cattrs name what they make by its class."""
    if file.startswith("<"):
        return " footlights" in file and " footlights.testing" not in file
    return file.startswith(_OURS) and not file.startswith(_TEST_KIT)


def _is_send(builtin: Any, frame: FrameType) -> bool:
    """Whether it gives bytes to the network; trio wakes itself through a pair of sockets, and that is not."""
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
