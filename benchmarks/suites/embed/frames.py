"""Frames of a game loop without a game: fixed work in each frame, then a wait until the next."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from attrs import Factory, define

if TYPE_CHECKING:
    from collections.abc import Callable

FRAME = 1 / 60
_STEPS = 40_000  # some milliseconds of plain Python, as in a small game


@define
class Frames:
    """Times of the frames, in seconds."""

    work: list[float] = Factory(list[float])
    """From the start of a frame to the end of its work."""
    between: list[float] = Factory(list[float])
    """From the start of a frame to the start of the next."""


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
