"""How late the loop is for a task that wants to run every millisecond."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from footlights_bench.lib.figures import Aim, Figure, percentile

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

_BEAT = 0.001


@asynccontextmanager
async def heartbeat() -> AsyncGenerator[list[float]]:
    """How many seconds each beat was late, for as long as the block takes."""
    late: list[float] = []
    over = False

    async def beat() -> None:
        while True:
            due = trio.current_time() + _BEAT
            await trio.sleep_until(due)
            late.append(trio.current_time() - due)
            if over:  # not a cancel: the beat that is overdue at the end counts too
                return

    async with trio.open_nursery() as nursery:
        nursery.start_soon(beat)
        yield late
        over = True


def lateness(name: str, late: Sequence[float], aim: Aim | None = None) -> Figure:
    """The 99th percentile, with others beside it."""
    micros = [each * 1e6 for each in late]
    spread = {"p50": percentile(micros, 50), "max": max(micros)}
    return Figure("how late the loop is", f"{name}, p99", percentile(micros, 99), "µs", aim, spread)
