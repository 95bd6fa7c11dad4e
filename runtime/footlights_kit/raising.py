"""Raising: an error that a scenario meets at an await, or before a line, instead of a cancel.

An await fails as if the function of trio that is awaited had raised at once, before it did anything: so no invariant of
trio is broken. What closes, and what enters or leaves a block, does not fail. A KeyboardInterrupt is raised before a
line of the project's own code, which is where Python delivers Ctrl-C to it.

Both are done with a trace function, because neither has another hook in every supported Python. A debugger or a
measurement of coverage does not see these runs.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import trio

from footlights_kit.places import Place, Waiting
from footlights_kit.verdicts import leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from types import FrameType

    from footlights_kit.points import Points

_NEVER_FAIL = frozenset({"aclose", "aclose_forcefully", "__aenter__", "__aexit__", "cancel_shielded_checkpoint"})


class Raising:
    """The error to raise at the points of a case, one for each run."""

    def __init__(self, make: Callable[[], BaseException]) -> None:
        self.name = getattr(make, "__name__", "the error")
        self._make = make
        self._is_interrupt = isinstance(make, type) and issubclass(make, KeyboardInterrupt)
        self._raised: BaseException | None = None

    @contextmanager
    def tracing(self, points: Points) -> Generator[None]:
        """Inside, a run counts awaits or lines as its points, and the error is raised at the chosen one."""
        self._raised = None
        reached: Counter[str] = Counter()

        def reach(frame: FrameType) -> None:
            place = Place.of(frame, frame.f_lineno)
            task = points.alive().get(trio.lowlevel.current_task())
            if task is None or not points.is_armed:
                return
            reached[task] += 1
            if points.reach_elsewhere(Waiting(task, (place,), is_started=True), reached[task]):
                self._raised = self._make()
                raise self._raised

        def called(frame: FrameType, event: str, _: object) -> Any:
            if not trio.lowlevel.in_trio_task():
                return None
            if self._is_interrupt:
                return None if Place.of(frame, 0).is_library else line
            if _is_first_await(frame) and (back := frame.f_back) is not None:
                reach(back)
            return None

        def line(frame: FrameType, event: str, _: object) -> Any:
            if event == "line":
                reach(frame)
            return line

        before = sys.gettrace()
        sys.settrace(called)
        try:
            yield
        finally:
            sys.settrace(before)

    def explains(self, error: BaseException) -> bool:
        """Whether this is the error that was raised, or was raised because of it. A failed assertion never is."""
        return self._raised is not None and all(self._is_behind(leaf) for leaf in leaves(error))

    def _is_behind(self, error: BaseException | None) -> bool:
        seen: list[BaseException] = []
        while error is not None and not isinstance(error, AssertionError) and all(error is not each for each in seen):
            if error is self._raised:
                return True
            seen.append(error)
            error = error.__cause__ or error.__context__
        return False


def _is_first_await(frame: FrameType) -> bool:
    """Whether code that is not trio's begins to await something of trio."""
    code, back = frame.f_code, frame.f_back
    return (
        bool(code.co_flags & inspect.CO_COROUTINE)
        and code.co_name not in _NEVER_FAIL
        and frame.f_lineno == code.co_firstlineno  # later it is the line at which the coroutine waits
        and back is not None
        and str(frame.f_globals.get("__name__")).startswith("trio.")
        and not Place.of(back, 0).is_plumbing
    )
