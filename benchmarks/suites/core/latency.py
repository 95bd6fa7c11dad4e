"""Latency of `begin_turn` and `cancel`: inside the call, and until a subscriber has the event.

Every session has a running turn and a subscriber task that reads it. Probe tasks go round the sessions: each cancels
the turn, waits until it is settled and begins the next. Time inside the call ends when the call returns, with the
event in every outbox. Time until seen ends when the subscriber's task has received the event.
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
from suites.lib.figures import Aim, latency_figure
from suites.lib.scripts import cast_of, flooding, paced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights import InteractionSession
    from footlights_actors import Script
    from suites.core.suite import CoreScale
    from suites.lib.figures import Figure

INSIDE_THE_CALL = Aim("below", 1_000)
_moments = Random(0)
_MAX_PROBES = 16  # one would leave most of a long flood unused; many would measure each other


@define
class Timings:
    """In seconds."""

    inside: list[float] = Factory(list[float])
    until_seen: list[float] = Factory(list[float])


@frozen
class CallTimings:
    begin_turn: Timings = Factory(Timings)
    cancel: Timings = Factory(Timings)


class _Probed:
    """A session with a subscriber task, which records when it receives the expected event."""

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


async def measure_latency(scale: CoreScale) -> list[Figure]:
    alone = await time_calls(flooding, turns=1, samples=scale.samples)
    at_pace = await time_calls(paced, turns=scale.crowd, samples=scale.samples)
    flooded = await time_calls(flooding, turns=scale.crowd, samples=scale.samples // 2)
    return [
        *_figures("calls, 1 turn flooding", alone, None),
        *_figures(f"calls, {scale.crowd:,} turns paced", at_pace, INSIDE_THE_CALL),
        *_figures(f"calls, {scale.crowd:,} turns flooding", flooded, INSIDE_THE_CALL),
    ]


async def time_calls(script: Script, *, turns: int, samples: int) -> CallTimings:
    """Time at least `samples` calls of each kind while `turns` turns run."""
    timings = CallTimings()
    async with open_stage(cast_of(script)) as stage, trio.open_nursery() as nursery:
        probed = [_Probed(stage.start()) for _ in range(turns)]
        for each in probed:
            await nursery.start(each.watch)
        for each in probed:
            each.begin_untimed()
        probes = min(_MAX_PROBES, turns)
        async with trio.open_nursery() as probing:
            for first in range(probes):
                probing.start_soon(_probe, probed[first::probes], ceil(samples / probes), timings)
        nursery.cancel_scope.cancel(reason="everything was measured")
    return timings


async def _probe(probed: Sequence[_Probed], samples: int, timings: CallTimings) -> None:
    for each in islice(cycle(probed), samples):
        await each.wait_for_text()
        await _short_pause()
        await each.cancel(timings.cancel)
        await each.settle()
        await _short_pause()
        await each.begin_turn(timings.begin_turn)


async def _short_pause() -> None:
    """Spread the probes at random, so that commits of many turns at once do not synchronise them."""
    await trio.sleep(_moments.uniform(0, 0.002))


def _figures(subject: str, timings: CallTimings, aim: Aim | None) -> list[Figure]:
    return [
        latency_figure(subject, "inside begin_turn, p99", timings.begin_turn.inside, aim),
        latency_figure(subject, "inside cancel, p99", timings.cancel.inside, aim),
        latency_figure(subject, "turn_accepted seen, p99", timings.begin_turn.until_seen),
        latency_figure(subject, "turn_interrupted seen, p99", timings.cancel.until_seen),
    ]
