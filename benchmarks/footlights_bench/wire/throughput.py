"""Events a second over loopback, to one client, to many, and to one that follows many sessions.

Laps alternate in one run, and what counts is the median of the ratios. The bare loop sends the events of such a turn
one by one; nothing makes them, so ours carries a whole stage besides. A second bare loop has a stage behind it, too.
Events are accounted for when a client got them, or got them joined into a later one that says so.
"""

from __future__ import annotations

import gc
from contextlib import AsyncExitStack
from statistics import median
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights_bench.lib.figures import Aim, Figure
from footlights_bench.lib.progress import say
from footlights_bench.lib.scripts import EVENTS_PER_TURN, whole_turn_yielding
from footlights_bench.wire.sides import Layout, open_bare, open_ours, open_sink, open_staged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from footlights_bench.lib.scale import WireScale
    from footlights_bench.wire.sides import Side, Sink

ONE_BY_ONE = Aim("at least", 0.8)
IN_BATCHES = Aim("at least", 3.0)

_OURS, _BATCHED, _STAGED, _BARE = "ours", "ours, in batches", "bare loop behind a stage", "bare loop"


@frozen
class Lap:
    seconds: float
    cpu_seconds: float
    """Of the process that sends."""
    turns: int
    given: int
    """Events that the clients got."""

    @property
    def given_per_second(self) -> float:
        return self.given / self.seconds

    @property
    def given_per_cpu_second(self) -> float:
        return self.given / self.cpu_seconds

    @property
    def accounted_per_second(self) -> float:
        return self.turns * EVENTS_PER_TURN / self.seconds


async def measure_throughput(scale: WireScale) -> list[Figure]:
    layouts = {
        "events, 1 client": (Layout(1, 1), scale.turns_alone),
        f"events, {scale.crowd} clients": (Layout(scale.crowd, 1), 1),
        f"events, 1 client of {scale.crowd} sessions": (Layout(1, scale.crowd), 1),
    }
    figures: list[Figure] = []
    for subject, (layout, turns) in layouts.items():
        say(subject)
        figures += _figures(subject, await race(layout, turns, scale.laps))
    return figures


async def race(layout: Layout, turns: int, laps: int) -> dict[str, list[Lap]]:
    """Laps that alternated, by who ran them."""
    script = whole_turn_yielding
    async with open_sink() as sink, AsyncExitStack() as stack:
        sides: dict[str, Side] = {
            _OURS: await stack.enter_async_context(open_ours(script, sink, _OURS, layout)),
            _BATCHED: await stack.enter_async_context(open_ours(script, sink, _BATCHED, layout, batch=True)),
            _STAGED: await stack.enter_async_context(open_staged(script, sink, _STAGED, layout)),
            _BARE: await stack.enter_async_context(open_bare(script, sink, _BARE, layout)),
        }
        found: dict[str, list[Lap]] = {name: [] for name in sides}
        for _ in range(laps):
            for name, side in sides.items():
                found[name].append(await run_lap(side, sink, name, turns, layout.sessions * turns))
    return found


async def run_lap(side: Side, sink: Sink, crowd: str, turns: int, commits: int) -> Lap:
    """From the first turn's beginning until the clients have got the last commit."""
    gc.collect()
    began, cpu_began = perf_counter(), process_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(side.play, turns)
        taken = await sink.ask(do="take", crowd=crowd, commits=commits)
        seconds, cpu_seconds = perf_counter() - began, process_time() - cpu_began
    return Lap(seconds, cpu_seconds, commits, taken["events"])


def _figures(subject: str, laps: Mapping[str, Sequence[Lap]]) -> list[Figure]:
    def rate(name: str) -> float:
        return median(lap.given_per_second for lap in laps[name])

    def to_bare(name: str, aim: Aim) -> Figure:
        pairs = zip(laps[name], laps[_BARE], strict=True)
        ratios = [ours.accounted_per_second / bare.given_per_second for ours, bare in pairs]
        return ratio_figure(subject, f"{name} / {_BARE}", ratios, aim)

    pairs = zip(laps[_OURS], laps[_STAGED], strict=True)
    for_the_same_work = [ours.given_per_cpu_second / staged.given_per_cpu_second for ours, staged in pairs]
    return [
        Figure(subject, _BARE, rate(_BARE), "events/s"),
        Figure(subject, "ours, given", rate(_OURS), "events/s"),
        Figure(subject, "ours, accounted for", median(lap.accounted_per_second for lap in laps[_OURS]), "events/s"),
        to_bare(_OURS, ONE_BY_ONE),
        to_bare(_BATCHED, IN_BATCHES),
        ratio_figure(subject, f"ours / {_STAGED}, given for the same CPU time", for_the_same_work, None),
    ]


def ratio_figure(subject: str, name: str, ratios: Sequence[float], aim: Aim | None) -> Figure:
    return Figure(subject, name, median(ratios), "x", aim, {"min": min(ratios), "max": max(ratios)})
