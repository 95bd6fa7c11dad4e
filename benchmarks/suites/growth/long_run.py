"""Long run: time and memory of a stage over very many turns.

Sessions with one permanent subscriber each play tiny turns, one after the other. After each tenth of the run the
processor time of a turn, the allocated memory blocks and the resident memory are recorded. The speed of a machine
changes during a long run, so a fresh stage plays some turns after every lap of the old one, and the ratio of the two
counts. The ledger is the in-memory one, which is bounded; `bench authority` measures the growth of a durable ledger.
"""

from __future__ import annotations

import gc
import sys
from contextlib import asynccontextmanager
from statistics import fmean, median
from time import process_time
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights import MemoryLedger, open_stage
from footlights_bench.lib.machine import resident_bytes
from footlights_bench.lib.progress import say
from suites.growth.crowd import tiny_turn
from suites.lib.figures import Aim, Figure
from suites.lib.scripts import cast_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from footlights import InteractionSession
    from suites.growth.suite import GrowthScale

AS_QUICK = Aim("at most", 1.2)
AS_SMALL = Aim("at most", 1.05)

_SESSIONS = 10
_TENTHS = 10
_LAPS = 20
"""Laps of the old stage and of a fresh one, in each tenth."""
_FRESH_SHARE = 10
"""The old stage plays so many times the turns of a fresh one."""
_RECORDS = 100
"""Records that the ledger keeps: it is full long before the first tenth is over."""


@frozen
class Tenth:
    """The cost of a turn in one tenth of the run, and the memory at its end."""

    seconds_per_turn: float
    times_fresh: float
    """The cost of a turn as a multiple of its cost in a fresh stage at the same time."""
    blocks: int
    resident: int | None
    """In bytes; None if the platform does not report it."""


async def measure_long_run(scale: GrowthScale) -> list[Figure]:
    return figures_of(scale.long_run, await run_long(scale.long_run))


async def run_long(turns: int) -> list[Tenth]:
    tenths: list[Tenth] = []
    async with _open_sessions() as sessions:
        in_a_tenth = turns // _TENTHS
        lap_count = min(_LAPS, in_a_tenth // _SESSIONS)
        blocks = sys.getallocatedblocks()
        for number in range(1, _TENTHS + 1):
            laps = [await _lap(sessions, in_a_tenth // lap_count) for _ in range(lap_count)]
            blocks += sum(lap.blocks for lap in laps)
            cost = fmean(lap.old for lap in laps)
            times_fresh = median(lap.old / lap.fresh for lap in laps)
            tenths.append(Tenth(cost, times_fresh, blocks, resident_bytes()))
            played, each = number * in_a_tenth, f"{cost * 1e6:,.0f} µs each, {times_fresh:.2f} times a fresh stage's"
            say(f"{played:,} of {turns:,} turns, {each}")
    return tenths


@asynccontextmanager
async def _open_sessions() -> AsyncGenerator[Sequence[InteractionSession]]:
    """Sessions of a new stage, each with a subscriber."""
    async with (
        open_stage(cast_of(tiny_turn), ledger=MemoryLedger(max_records=_RECORDS)) as stage,
        trio.open_nursery() as nursery,
    ):
        sessions = [stage.start() for _ in range(_SESSIONS)]
        for session in sessions:
            nursery.start_soon(_follow, session)
        yield sessions
        for session in sessions:
            await session.close()


@frozen
class _Lap:
    old: float
    """Processor time of a turn in the old stage, in seconds."""
    fresh: float
    """Processor time of a turn in a fresh stage, in seconds."""
    blocks: int
    """Blocks by which the turns of the old stage have grown the process; those of fresh stages are left out."""


async def _lap(sessions: Sequence[InteractionSession], turns: int) -> _Lap:
    few = max(turns // _FRESH_SHARE, _SESSIONS)
    await _play(sessions, few)  # refill the caches and free lists after the fresh stage
    blocks_before = _blocks()
    old = await _cost(sessions, turns)
    blocks = _blocks() - blocks_before
    async with _open_sessions() as fresh_sessions:
        await _play(fresh_sessions, few)
        return _Lap(old, await _cost(fresh_sessions, few), blocks)


def _blocks() -> int:
    gc.collect()
    return sys.getallocatedblocks()


async def _cost(sessions: Sequence[InteractionSession], turns: int) -> float:
    began = process_time()
    await _play(sessions, turns)
    return (process_time() - began) / turns


async def _play(sessions: Sequence[InteractionSession], turns: int) -> None:
    """Play so many turns, all sessions at once."""
    for _ in range(turns // len(sessions)):
        for commit in [session.finalize(session.begin_turn("Go on.")) for session in sessions]:
            await commit.wait()


async def _follow(session: InteractionSession) -> None:
    async with session.subscribe() as stream:
        async for _ in stream:
            pass


def figures_of(turns: int, tenths: Sequence[Tenth]) -> list[Figure]:
    subject = f"{turns:,} turns in one stage, the last tenth / the first"
    first, last = tenths[0], tenths[-1]
    micros = {"first, µs": first.seconds_per_turn * 1e6, "last, µs": last.seconds_per_turn * 1e6}
    blocks: dict[str, float] = {"first": first.blocks, "last": last.blocks}
    figures = [
        Figure(
            subject,
            "processor time of a turn, in turns of a fresh stage",
            last.times_fresh / first.times_fresh,
            "x",
            AS_QUICK,
            {"first": first.times_fresh, "last": last.times_fresh},
        ),
        Figure(subject, "processor time of a turn", last.seconds_per_turn / first.seconds_per_turn, "x", None, micros),
        Figure(subject, "allocated blocks", last.blocks / first.blocks, "x", AS_SMALL, blocks),
    ]
    if first.resident is None or last.resident is None:
        return figures
    mebibytes = {"first, MiB": first.resident / 2**20, "last, MiB": last.resident / 2**20}
    return [*figures, Figure(subject, "resident memory", last.resident / first.resident, "x", AS_SMALL, mebibytes)]
