"""Throughput: events per second over loopback, against bare servers that send the same events.

Over WebSocket the events go to one client, to many, and to one that follows many sessions; over SSE to one and to many.
Laps alternate, and the median of the ratios counts. The bare servers do not make the events, while ours run a whole
stage. Events accounted for were either received by a client, or joined into a later event that declares them.
"""

from __future__ import annotations

import gc
from contextlib import AsyncExitStack
from functools import partial
from statistics import median
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, TypeAlias

import trio
from attrs import frozen

from footlights_bench.lib.progress import say
from suites.lib.figures import Aim, Figure, median_figure
from suites.lib.scripts import EVENTS_PER_TURN, whole_turn_yielding
from suites.wire.senders import (
    Layout,
    open_bare,
    open_bare_hypercorn,
    open_clients,
    open_ours,
    open_ours_over_sse,
    open_staged,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from suites.wire.senders import Clients, Sender
    from suites.wire.suite import WireScale

    Open: TypeAlias = Callable[..., AbstractAsyncContextManager[Any]]

ONE_BY_ONE = Aim("at least", 0.8)
IN_BATCHES = Aim("at least", 3.0)

_OURS, _BATCHED, _STAGED, _BARE = "ours", "ours, in batches", "bare loop behind a stage", "bare loop"
_BARE_HYPERCORN = "bare Hypercorn"

WEBSOCKET: Mapping[str, Open] = {
    _OURS: open_ours,
    _BATCHED: partial(open_ours, batch=True),
    _STAGED: open_staged,
    _BARE: open_bare,
}
SSE: Mapping[str, Open] = {_OURS: open_ours_over_sse, _BARE_HYPERCORN: open_bare_hypercorn}


@frozen
class Lap:
    seconds: float
    cpu_seconds: float
    """Processor time of the process that sends."""
    turns: int
    given: int
    """Events that the clients received."""

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
        laps = await race(WEBSOCKET, layout, turns, scale.laps)
        pairs = zip(laps[_OURS], laps[_STAGED], strict=True)
        same_work = [ours.given_per_cpu_second / staged.given_per_cpu_second for ours, staged in pairs]
        figures += [
            *_figures(subject, laps, _BARE, ONE_BY_ONE),
            _ratio(subject, laps, _BATCHED, _BARE, IN_BATCHES),
            median_figure(subject, f"ours / {_STAGED}, given for the same CPU time", same_work, "x"),
        ]
    return figures


async def measure_sse(scale: WireScale) -> list[Figure]:
    figures: list[Figure] = []
    for clients, turns in ((1, scale.turns_alone), (scale.crowd, 1)):
        subject = f"events over SSE, {clients} client{'s' if clients > 1 else ''}"
        say(subject)
        laps = await race(SSE, Layout(clients, 1), turns, scale.laps)
        figures += _figures(subject, laps, _BARE_HYPERCORN, None)
    return figures


async def race(senders: Mapping[str, Open], layout: Layout, turns: int, laps: int) -> dict[str, list[Lap]]:
    """Run alternating laps; returns those of each sender by its name."""
    async with open_clients() as clients, AsyncExitStack() as stack:
        opened = {
            name: await stack.enter_async_context(open_sender(whole_turn_yielding, clients, name, layout))
            for name, open_sender in senders.items()
        }
        found: dict[str, list[Lap]] = {name: [] for name in opened}
        for _ in range(laps):
            for name, sender in opened.items():
                found[name].append(await _run_lap(sender, clients, name, turns, layout.sessions * turns))
    return found


async def _run_lap(sender: Sender, clients: Clients, crowd: str, turns: int, commits: int) -> Lap:
    """From the begin of the first turn until the clients have the last commit."""
    gc.collect()
    began, cpu_began = perf_counter(), process_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sender.play, turns)
        taken = await clients.ask(do="take", crowd=crowd, commits=commits)
        seconds, cpu_seconds = perf_counter() - began, process_time() - cpu_began
    return Lap(seconds, cpu_seconds, commits, taken["events"])


def _figures(subject: str, laps: Mapping[str, Sequence[Lap]], bare: str, aim: Aim | None) -> list[Figure]:
    return [
        Figure(subject, bare, median(lap.given_per_second for lap in laps[bare]), "events/s"),
        Figure(subject, "ours, given", median(lap.given_per_second for lap in laps[_OURS]), "events/s"),
        Figure(subject, "ours, accounted for", median(lap.accounted_per_second for lap in laps[_OURS]), "events/s"),
        _ratio(subject, laps, _OURS, bare, aim),
    ]


def _ratio(subject: str, laps: Mapping[str, Sequence[Lap]], ours: str, bare: str, aim: Aim | None) -> Figure:
    pairs = zip(laps[ours], laps[bare], strict=True)
    ratios = [one.accounted_per_second / other.given_per_second for one, other in pairs]
    return median_figure(subject, f"{ours} / {bare}", ratios, "x", aim)
