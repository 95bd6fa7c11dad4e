"""Places: where a task waits, as `file:line in function: what is awaited there`.

A place is captured as code objects and line numbers, which is cheap, and becomes text only when a failure is reported.
The place of a task is the innermost line of the project's own code; a line of an installed library follows in brackets.
"""

from __future__ import annotations

import inspect
import linecache
import os
import sys
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from types import CodeType, FrameType

    import trio

_PLUMBING = frozenset({"trio", "footlights_kit", "outcome"})


@frozen
class Place:
    """A line of code that was being executed."""

    code: CodeType
    line: int
    module: str

    @classmethod
    def of(cls, frame: FrameType, line: int) -> Place:
        return cls(frame.f_code, line, str(frame.f_globals.get("__name__")))

    @property
    def is_plumbing(self) -> bool:
        """Whether the line is one of trio or of this kit."""
        return self.module.partition(".")[0] in _PLUMBING

    @property
    def is_library(self) -> bool:
        """Whether the line is one of Python, trio, this kit or an installed package."""
        package = self.module.partition(".")[0]
        return self.is_plumbing or package in sys.stdlib_module_names or "site-packages" in self.code.co_filename

    @property
    def spot(self) -> str:
        """`file:line in function`, relative to the current folder if the file is in it."""
        path = self.code.co_filename
        here = os.getcwd() + os.sep  # noqa: PTH109 - a string to compare with, for every strike
        return f"{path.removeprefix(here)}:{self.line} in {self.code.co_name}"

    @property
    def text(self) -> str:
        """The line of source, if there is one."""
        return linecache.getline(self.code.co_filename, self.line).strip()


@frozen
class Waiting:
    """Where one task was: the frames of its await chain, outermost first."""

    task: str
    frames: tuple[Place, ...]
    is_started: bool
    nursery: Place | None = None
    """Where its nursery is, if the task has no line of its own, because it is a function of trio."""

    @classmethod
    def of(cls, task: trio.lowlevel.Task, label: str) -> Waiting:
        frames = _frames(task)
        nursery = None if any(not each.is_plumbing for each in frames) else _nursery(task)
        return cls(label, frames, inspect.getcoroutinestate(task.coro) != inspect.CORO_CREATED, nursery)

    @property
    def own(self) -> Place | None:
        """The innermost line that is not a library's, or else the innermost that is not trio's."""
        return next((each for each in reversed(self.frames) if not each.is_library), self.inner)

    @property
    def inner(self) -> Place | None:
        """The innermost line that is not trio's, or else the outermost of all."""
        outermost = next(iter(self.frames), None)
        return next((each for each in reversed(self.frames) if not each.is_plumbing), outermost)

    def __str__(self) -> str:
        return f"{self.task} {self.where}"

    @property
    def where(self) -> str:
        """The place, and what is awaited there."""
        own, inner = self.own, self.inner
        if own is None or inner is None or own.module.startswith("footlights_kit"):
            return "before the scenario's first line"
        if not self.is_started:
            return f"before the first line of {own.code.co_name}"
        if self.nursery is not None:
            return f"in a nursery at {self.nursery.spot}: {self.nursery.text}"
        awaited = own.text or (f"awaits {self.awaited.code.co_name}" if self.awaited is not None else "")
        detour = "" if own is inner else f" ({inner.spot})"
        return f"at {own.spot}" + (f": {awaited}" if awaited else "") + detour

    @property
    def awaited(self) -> Place | None:
        """The frame that the innermost own line awaits."""
        inside = iter(self.frames)
        return next(inside, None) if any(each is self.own for each in inside) else None


def _frames(task: trio.lowlevel.Task) -> tuple[Place, ...]:
    return tuple(Place.of(frame, line) for frame, line in task.iter_await_frames())


def _nursery(task: trio.lowlevel.Task) -> Place | None:
    """The innermost line that is no library's of the nearest task above that has one."""
    while (nursery := task.parent_nursery) is not None:
        task = nursery.parent_task
        place = next((each for each in reversed(_frames(task)) if not each.is_library), None)
        if place is not None:
            return place
    return None


def caller() -> Place:
    """The innermost running line that is not trio's or this kit's."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    place = Place.of(sys._getframe(1), 0)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        place = Place.of(frame, frame.f_lineno)
        if not place.is_plumbing:
            break
        frame = frame.f_back
    return place
