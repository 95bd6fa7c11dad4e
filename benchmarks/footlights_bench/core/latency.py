"""How long `begin_turn` and `cancel` take, and how soon a subscriber sees what they decided.

Every session has a turn that runs and a subscriber task that reads it. Probes go round the sessions: cancel the
turn, wait until it is settled, begin the next. Inside the call: from just before it to just after, when the event
is in every outbox. Until seen: from just before the call until the subscriber's task has the event in hand.
"""

from __future__ import annotations

from itertools import cycle, islice
from math import ceil
from random import Random
from time import perf_counter
from typing import TYPE_CHECKING

import trio
from attrs import Factory, define, frozen

from footlights import EventType, open_stage
from footlights_bench.lib.figures import Aim, Figure, percentile
from footlights_bench.lib.scripts import cast_of, flooding, paced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights import InteractionSession
    from footlights_actors import Script
    from footlights_bench.lib.scale import Scale

INSIDE_THE_CALL = Aim("below", 1_000)
_moments = Random(0)
_MAX_PROBES = 16  # at a time; one would leave most of a long flood unused, many would measure each other


@define
class Timings:
    """In seconds."""

    inside: list[float] = Factory(list[float])
    until_seen: list[float] = Factory(list[float])


@frozen
class CallTimings:
    begin_turn: Timings = Factory(Timings)
    cancel: Timings = Factory(Timings)


class _Seat:
    """One session with its subscriber task, which notes when it sees the event that is waited for."""

    def __init__(self, session: InteractionSession) -> None:
        self._session = session
        self._turn_id = ""
        self._awaited: EventType | None = None
        self._seen_at = 0.0
        self._seen = trio.Event()

    async def watch(self, task_status: trio.TaskStatus[None]) -> None:
        async with self._session.subscribe() as stream:
            task_status.started()
            async for event in stream:
                if event.event_type is self._awaited:
                    self._seen_at = perf_counter()
                    self._awaited = None
                    self._seen.set()

    def begin_untimed(self) -> None:
        self._turn_id = self._session.begin_turn("Go on.")

    async def begin_turn(self, timings: Timings) -> None:
        self._expect(EventType.TURN_ACCEPTED)
        called = perf_counter()
        self._turn_id = self._session.begin_turn("Go on.")
        returned = perf_counter()
        await self._note(timings, called, returned)

    async def wait_for_text(self) -> None:
        self._expect(EventType.TOKEN_DELTA)
        await self._seen.wait()

    async def cancel(self, timings: Timings) -> None:
        self._expect(EventType.TURN_INTERRUPTED)
        called = perf_counter()
        self._session.cancel(self._turn_id)
        returned = perf_counter()
        await self._note(timings, called, returned)

    async def settle(self) -> None:
        await self._session.finalize(self._turn_id).wait()

    def _expect(self, event_type: EventType) -> None:
        self._seen = trio.Event()
        self._awaited = event_type

    async def _note(self, timings: Timings, called: float, returned: float) -> None:
        await self._seen.wait()
        timings.inside.append(returned - called)
        timings.until_seen.append(self._seen_at - called)


async def measure_latency(scale: Scale) -> list[Figure]:
    alone = await time_calls(flooding, turns=1, samples=scale.samples)
    at_pace = await time_calls(paced, turns=scale.crowd, samples=scale.samples)
    flooded = await time_calls(flooding, turns=scale.crowd, samples=scale.samples // 2)
    return [
        *_figures("calls, 1 turn flooding", alone, None),
        *_figures(f"calls, {scale.crowd:,} turns paced", at_pace, INSIDE_THE_CALL),
        *_figures(f"calls, {scale.crowd:,} turns flooding", flooded, INSIDE_THE_CALL),
    ]


async def time_calls(script: Script, *, turns: int, samples: int) -> CallTimings:
    """At least `samples` calls of each kind, while `turns` turns run."""
    timings = CallTimings()
    async with open_stage(cast_of(script)) as stage, trio.open_nursery() as nursery:
        seats = [_Seat(stage.start()) for _ in range(turns)]
        for seat in seats:
            await nursery.start(seat.watch)
        for seat in seats:
            seat.begin_untimed()
        probes = min(_MAX_PROBES, turns)
        async with trio.open_nursery() as probing:
            for first in range(probes):
                probing.start_soon(_probe, seats[first::probes], ceil(samples / probes), timings)
        nursery.cancel_scope.cancel(reason="everything was measured")
    return timings


async def _probe(seats: Sequence[_Seat], samples: int, timings: CallTimings) -> None:
    for seat in islice(cycle(seats), samples):
        await seat.wait_for_text()
        await _some_time()
        await seat.cancel(timings.cancel)
        await seat.settle()
        await _some_time()
        await seat.begin_turn(timings.begin_turn)


async def _some_time() -> None:
    """Commands come when they come. Without this, the commits of many turns at once would set the beat for probes."""
    await trio.sleep(_moments.uniform(0, 0.002))


def _figures(subject: str, timings: CallTimings, aim: Aim | None) -> list[Figure]:
    return [
        _figure(subject, "inside begin_turn", timings.begin_turn.inside, aim),
        _figure(subject, "inside cancel", timings.cancel.inside, aim),
        _figure(subject, "turn_accepted seen", timings.begin_turn.until_seen),
        _figure(subject, "turn_interrupted seen", timings.cancel.until_seen),
    ]


def _figure(subject: str, name: str, seconds: Sequence[float], aim: Aim | None = None) -> Figure:
    micros = [second * 1e6 for second in seconds]
    spread = {"p50": percentile(micros, 50), "max": max(micros)}
    return Figure(subject, f"{name}, p99", percentile(micros, 99), "µs", aim, spread)
