"""A game loop without a game: so much work a frame, and the rest of the frame is time to wait in."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from attrs import Factory, define

if TYPE_CHECKING:
    from collections.abc import Callable

FRAME = 1 / 60
_STEPS = 40_000  # some milliseconds of plain Python, as a small game has


@define
class Frames:
    """In seconds."""

    work: list[float] = Factory(list[float])
    """From the beginning of a frame to the end of its work."""
    between: list[float] = Factory(list[float])
    """From the beginning of a frame to that of the next."""


def play_frames(count: int, take_events: Callable[[], object], wait_until: Callable[[float], object]) -> Frames:
    frames = Frames()
    began = perf_counter()
    for _ in range(count):
        _simulate()
        take_events()
        frames.work.append(perf_counter() - began)
        wait_until(began + FRAME)
        began, before = perf_counter(), began
        frames.between.append(began - before)
    return frames


def _simulate() -> int:
    position = 0
    for step in range(_STEPS):
        position = (position * 31 + step) % 65_521
    return position
