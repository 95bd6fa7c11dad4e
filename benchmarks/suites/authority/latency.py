"""Latency from `turn_final` to `commit_final`, with the durable ledger.

It covers the way to the committer, the wait for the batch before it, the judgement, the disk and the announcement. The
stage's wall clock is the measuring clock, so the times are those in the events, and a late subscriber does not add to
them.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

import trio

from footlights import EventType, TurnParams, open_stage
from footlights_actors import standard_cast
from suites.authority.work import genesis, payment, purses
from suites.lib.figures import Aim, latency_figure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from footlights import InteractionContext, InteractionSession
    from suites.authority.suite import AuthorityScale
    from suites.lib.figures import Figure

    Wait: TypeAlias = Callable[[], Awaitable[None]]

TOGETHER = Aim("below", 60_000)
_TURN = TurnParams(workload="pay")


class Paying:
    """A workload that waits, then moves a coin and ends."""

    def __init__(self, wait: Wait) -> None:
        self._wait = wait
        self._numbers = count(1)

    async def run(self, context: InteractionContext) -> None:
        await self._wait()
        context.request_commit(payment(next(self._numbers)))


class Together:
    """A barrier: tasks continue when `number` of them wait."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._waiting = 0
        self._go = trio.Event()

    async def wait(self) -> None:
        self._waiting += 1
        go = self._go
        if self._waiting == self._number:
            self._waiting = 0
            self._go = trio.Event()
            go.set()
        await go.wait()


def uneven(longest: float) -> Wait:
    """Wait for a random time of at most so many seconds."""
    lengths = Random(0)

    async def wait() -> None:
        await trio.sleep(lengths.uniform(0, longest))

    return wait


async def measure_waits(scale: AuthorityScale) -> list[Figure]:
    alone = await time_commits(trio.lowlevel.checkpoint, sessions=1, turns=scale.turns_alone)
    apart = await time_commits(uneven(scale.longest_turn), sessions=scale.crowd, turns=scale.turns_each)
    together = await time_commits(Together(scale.crowd).wait, sessions=scale.crowd, turns=scale.turns_each)
    waits = {
        "1 turn, p99": alone,
        f"{scale.crowd} turns, ending at uneven moments, p99": apart,
        f"{scale.crowd} turns, ending all at once, p99": together,
    }
    return [
        latency_figure("turn_final to commit_final", name, each, TOGETHER if each is together else None, also=(50, 95))
        for name, each in waits.items()
    ]


async def time_commits(wait: Wait, *, sessions: int, turns: int) -> list[float]:
    """The seconds of every turn, when each of `sessions` sessions plays `turns` turns one after the other."""
    seconds: list[float] = []
    cast = standard_cast(world=genesis(), rules={"purses": purses}, workloads={"pay": Paying(wait)})
    with TemporaryDirectory() as folder:
        path = Path(folder) / "waits.ledger"
        async with open_stage(cast, ledger=path, wall_clock=perf_counter) as stage, trio.open_nursery() as nursery:
            for _ in range(sessions):
                nursery.start_soon(_play, stage.start(), turns, seconds)
    return seconds


async def _play(session: InteractionSession, turns: int, seconds: list[float]) -> None:
    async with session.subscribe() as stream:
        for _ in range(turns):
            turn_id = session.begin_turn("Pay.", _TURN)
            at = {event.event_type: event.wall_ts or 0.0 async for event in stream.until_commit(turn_id)}
            seconds.append(at[EventType.COMMIT_FINAL] - at[EventType.TURN_FINAL])
