"""Lateness of the event loop while turns are judged: that of a task that sleeps a millisecond, over and over.

Slices on one stage alternate: idle, and with hosts that commit as fast as they are answered, so that every batch is
full. The second stage has a rule that computes for 20 ms, which no game should have. Threads switch as often as in
`footlights serve`.
"""

from __future__ import annotations

import sys
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights import open_stage
from footlights.authority import Ruling, accept
from footlights_actors import standard_cast
from footlights_bench.lib.percentiles import percentile
from footlights_bench.lib.progress import say
from footlights_transports.server.serve import SWITCH_INTERVAL
from suites.authority.work import genesis, payment, purses
from suites.lib.figures import Aim, Figure, latency_figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from footlights import Intent, Stage
    from footlights.authority import Rule
    from suites.authority.suite import AuthorityScale
    from suites.authority.work import Purses

ABOVE_IDLE = Aim("at most", 5_000)
_NAP = 0.001


@frozen
class Load:
    rules: Mapping[str, Rule]
    writers: int


def count_coins(world: Purses, _intents: tuple[Intent, ...]) -> Ruling:
    assert sum(world.values())
    return accept()


def compute(_world: Purses, _intents: tuple[Intent, ...]) -> Ruling:
    ends = perf_counter() + 0.02
    while perf_counter() < ends:
        pass
    return accept()


LOADS = {
    "256 writers, 5 rules": Load({"purses": purses, **{f"count_{n}": count_coins for n in range(4)}}, 256),
    "16 writers, a rule of 20 ms": Load({"purses": purses, "compute": compute}, 16),
}


async def measure_lateness(scale: AuthorityScale) -> list[Figure]:
    figures: list[Figure] = []
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        for name, load in LOADS.items():
            say(name)
            figures += _figures(name, *await race(load, laps=scale.laps, seconds=scale.longest_turn / 4))
    finally:
        sys.setswitchinterval(before)
    return figures


def _figures(name: str, idle: list[float], busy: list[float]) -> list[Figure]:
    subject = f"lateness of a 1 ms sleeper, {name}"
    above = (percentile(busy, 99) - percentile(idle, 99)) * 1e6
    return [
        latency_figure(subject, "idle stage, p99", idle),
        latency_figure(subject, "while turns are judged, p99", busy),
        Figure(subject, "above the idle one, p99", above, "µs", ABOVE_IDLE),
    ]


async def race(load: Load, *, laps: int, seconds: float) -> tuple[list[float], list[float]]:
    """The lateness of each nap, in alternating slices of so many seconds: idle, and with the load."""
    idle, busy = list[float](), list[float]()
    with TemporaryDirectory() as folder:
        cast = standard_cast(world=genesis(), rules=load.rules)
        async with open_stage(cast, ledger=Path(folder) / "late.ledger") as stage:
            numbers = count()
            for _ in range(laps):
                await _nap(seconds, idle)
                async with trio.open_nursery() as nursery:
                    for _ in range(load.writers):
                        nursery.start_soon(partial(_write, stage, numbers))
                    await trio.sleep(_NAP)
                    await _nap(seconds, busy)
                    nursery.cancel_scope.cancel()
                while stage.statistics().commits_waiting:  # noqa: ASYNC110 - a stage has no event for that
                    await trio.sleep(_NAP)
    return idle, busy


async def _write(stage: Stage, numbers: Iterator[int]) -> None:
    while True:
        await stage.commit([payment(next(numbers))], "A coin moves.")


async def _nap(seconds: float, late: list[float]) -> None:
    ends = perf_counter() + seconds
    while perf_counter() < ends:
        due = perf_counter() + _NAP
        await trio.sleep(_NAP)
        late.append(max(0.0, perf_counter() - due))
