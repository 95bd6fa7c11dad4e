"""Leaks: what a run must give back, watched without an assert.

- Locks, semaphores and tokens of limiters that were acquired: after the run no task is left to release them. What a run
  without a cancel does not give back either, apart from locks, is no such resource, and is not judged.
- Whatever says with a ResourceWarning that it was not closed: sockets, files, processes.
- Async generators that were begun, and neither exhausted nor closed.
- Descriptors that are still open because something keeps them. What only one run opens, as a cache does, is no leak:
  the caller runs the case again, and judges that run.

It costs one line of Python for each acquisition, and one listing of descriptors for each run.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import trio
from attrs import Factory, define

from footlights_kit.places import Place, caller
from footlights_kit.trio_hooks import swapped
from footlights_kit.verdicts import LocksHeld, ResourcesLeaked

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

_FOLDER = "/dev/fd"

_ACQUIRE = (
    (trio.Lock, "acquire_nowait"),
    (trio.StrictFIFOLock, "acquire_nowait"),
    (trio.Semaphore, "acquire_nowait"),
    (trio.CapacityLimiter, "acquire_on_behalf_of_nowait"),
)


@define(eq=False)
class _Acquired:
    """A lock, a semaphore or a limiter, and where each task, or other borrower, acquired it."""

    what: trio.Lock | trio.StrictFIFOLock | trio.Semaphore | trio.CapacityLimiter
    value: int
    places: dict[object, Place] = Factory(dict[object, Place])

    def held_at(self) -> list[Place]:
        match self.what:
            case trio.Semaphore():
                return list(self.places.values())[-1:] if self.what.value < self.value else []
            case trio.CapacityLimiter():
                return [self.places[each] for each in self.what.statistics().borrowers if each in self.places]
            case _:
                owner = self.what.statistics().owner
                return [self.places[owner]] if owner in self.places else []


class Leaks:
    """The watch over the runs of one exploration. `begin` before each run, `found` after it."""

    def __init__(self, log: list[warnings.WarningMessage]) -> None:
        self._log = log
        self.others: list[warnings.WarningMessage] = []
        self._acquired: dict[int, _Acquired] = {}
        self._generators: WeakSet[Any] = WeakSet()
        self._unfinished: list[str] = []
        self._files: set[int] = set()
        self._tolerated: set[Place] = set()

    def begin(self) -> None:
        """A run begins."""
        self._forget()
        self._files = _open_files()

    def watch_generators(self) -> None:
        """In the run, before anything else: watch the async generators that it begins."""
        theirs = sys.get_asyncgen_hooks().firstiter

        def begun(generator: Any) -> None:
            self._generators.add(generator)
            if theirs is not None:
                theirs(generator)

        sys.set_asyncgen_hooks(firstiter=begun)

    def judge_generators(self) -> None:
        """In the run, when the scenario has ended: trio closes what is left of them."""
        for each in self._generators:
            if each.ag_frame is not None:
                place = Place.of(each.ag_frame, each.ag_frame.f_lineno)
                self._unfinished.append(f"the async generator {each.__qualname__} was left at {place.spot}")

    def found(self, *, tolerate: bool) -> Iterator[AssertionError]:
        """After the run and its garbage: what it left behind. A run without a cancel can `tolerate` what it keeps."""
        held = [(each.what, place) for each in self._acquired.values() for place in each.held_at()]
        if tolerate:
            self._tolerated.update(
                place for what, place in held if isinstance(what, trio.Semaphore | trio.CapacityLimiter)
            )
        held = [(what, place) for what, place in held if place not in self._tolerated]
        if held:
            kept = "; ".join(f"the {type(what).__name__} acquired at {place.spot}" for what, place in held)
            yield LocksHeld(f"still held after the scenario: {kept}")
        warned = [str(each.message) for each in self._unclosed()]
        if self._unfinished or warned:
            yield ResourcesLeaked("; ".join([*self._unfinished, *warned]))
        elif files := _open_files() - self._files:
            yield ResourcesLeaked(f"left open: {', '.join(map(_described, sorted(files)))}")
        self._forget()

    def _unclosed(self) -> list[warnings.WarningMessage]:
        unclosed = [each for each in self._log if issubclass(each.category, ResourceWarning)]
        self.others += [each for each in self._log if not issubclass(each.category, ResourceWarning)]
        # Of a generator that the run has finished with, trio says so too.
        return [each for each in unclosed if not self._unfinished or "sync generator" not in str(each.message)]

    def _forget(self) -> None:
        self._log.clear()
        self._acquired.clear()
        self._generators.clear()
        self._unfinished.clear()

    def acquiring(self, what: Any, borrower: object) -> None:
        """A lock, a semaphore or a token is acquired, or is about to be waited for."""
        acquired = self._acquired.get(id(what))
        if acquired is None:
            acquired = self._acquired[id(what)] = _Acquired(what, getattr(what, "value", 0))
        acquired.places[borrower] = caller()


@contextmanager
def watched_leaks() -> Generator[Leaks]:
    """Inside, what the runs of an exploration leave behind is watched."""
    with ExitStack() as hooks:
        with warnings.catch_warnings(record=True) as log:
            warnings.simplefilter("always", ResourceWarning)
            leaks = Leaks(log)
            for kind, name in _ACQUIRE:
                hooks.enter_context(swapped(kind, **{name: _noting(leaks, getattr(kind, name))}))
            yield leaks
        for each in leaks.others:
            warnings.showwarning(each.message, each.category, each.filename, each.lineno, each.file, each.line)


def _noting(leaks: Leaks, acquire: Callable[..., None]) -> Callable[..., None]:
    def noted(self: object, *borrower: object) -> None:
        holder = borrower[0] if borrower else trio.lowlevel.current_task()
        # A thread that was abandoned keeps its token until it ends.
        if isinstance(holder, trio.lowlevel.Task) or not type(holder).__module__.startswith("trio._"):
            leaks.acquiring(self, holder)
        acquire(self, *borrower)

    return noted


def _open_files() -> set[int]:
    """The descriptors that are open, where the system lists them."""
    with suppress(OSError):
        return {fd for fd in map(int, os.listdir(_FOLDER)) if _is_open(fd)}  # noqa: PTH208 - after every run
    return set()


def _is_open(fd: int) -> bool:
    # The listing itself was one of them.
    with suppress(OSError):
        os.fstat(fd)
        return True
    return False


def _described(fd: int) -> str:
    with suppress(OSError):
        return os.readlink(f"{_FOLDER}/{fd}")  # noqa: PTH115 - the path of a descriptor
    return f"descriptor {fd}"
