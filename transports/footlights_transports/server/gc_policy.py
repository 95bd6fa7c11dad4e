"""Garbage collection policy of `footlights serve`: small collections while turns are open, full ones when none is.

A full collection of Python visits every live object, that is, every session and every kept turn. With 10,000 sessions
that takes half a second, during which no client gets an event. Turns leave no cyclic garbage, and connections little.
So objects that survived two collections are frozen, and so are objects whose collection would take too long. A full
collection happens only when no turn was open for some seconds and resident memory has grown; or, if there is no such
moment, when memory has grown a lot, because then a pause is better.

High thresholds and one `gc.freeze()` are not enough. Python counts allocations less deallocations, so a collection of
the youngest generation may visit any number of objects: with 1,000 sessions streaming, 16 to 87 ms instead of 5.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Literal, Protocol

import trio

if TYPE_CHECKING:
    from collections.abc import Mapping


_NEVER = 2**31 - 1
THRESHOLDS = (700, 4, _NEVER)
"""Generation 0 is collected after 700 net allocations, generation 1 with every fifth of those collections."""
_MOST = 4_000
"""Most objects that one automatic collection visits. If there are more, they are frozen instead."""
_OLDEST = 2
_GLANCE = 1.0
_GLANCES_UNTIL_QUIET = 3
_GROWN = 1.25
_GROWN_A_LOT = 1.5
_A_LOT = 128 * 1024 * 1024
_BYTES_OF_A_BLOCK = 64

log = logging.getLogger("footlights.serve")


class HasOpenTurns(Protocol):
    """A stage, or all worlds of a server."""

    @property
    def open_turns(self) -> int:
        """Turns that are not settled."""
        ...


class GentleCollector:
    """While it is entered, no collection that Python begins by itself visits more than 4,000 objects."""

    def __init__(self) -> None:
        self._thresholds = gc.get_threshold()
        self.memory_then = 0
        """`memory_in_use` after the last full collection, or when it was entered."""

    def __enter__(self) -> GentleCollector:
        self._thresholds = gc.get_threshold()
        gc.set_threshold(*THRESHOLDS)
        gc.freeze()
        self.memory_then = memory_in_use()
        gc.callbacks.append(_spare)
        return self

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(_spare)
        gc.unfreeze()
        gc.set_threshold(*self._thresholds)

    def collect_all(self) -> None:
        """Perform a full collection now."""
        began = perf_counter()
        gc.unfreeze()
        found = gc.collect()
        gc.freeze()
        self.memory_then = memory_in_use()
        log.info("full garbage collection: found %d objects in %.3f s", found, perf_counter() - began)

    def is_due(self, memory: int, *, quiet: bool) -> bool:
        """Whether a full collection is due with this much memory in use."""
        if quiet:
            return memory > self.memory_then * _GROWN
        return memory > self.memory_then * _GROWN_A_LOT + _A_LOT


async def collect_gently(worlds: HasOpenTurns) -> None:
    """Apply the policy until cancelled."""
    quiet_glances = 0
    with GentleCollector() as collector:
        while True:
            await trio.sleep(_GLANCE)
            quiet_glances = 0 if worlds.open_turns else quiet_glances + 1
            if collector.is_due(memory_in_use(), quiet=quiet_glances >= _GLANCES_UNTIL_QUIET):
                collector.collect_all()


def memory_in_use() -> int:
    """Resident bytes, because a small cycle may hold a large body. Without /proc, an estimate from allocated blocks."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return sys.getallocatedblocks() * _BYTES_OF_A_BLOCK
    return pages * os.sysconf("SC_PAGE_SIZE")


def _spare(phase: Literal["start", "stop"], info: Mapping[str, int]) -> None:
    generation = info["generation"]
    is_too_much = phase == "start" and generation < _OLDEST and _objects_up_to(generation) > _MOST
    has_been_looked_at = phase == "stop" and generation == 1
    if is_too_much or has_been_looked_at:
        gc.freeze()


def _objects_up_to(generation: int) -> int:
    return sum(len(gc.get_objects(each)) for each in range(generation + 1))
