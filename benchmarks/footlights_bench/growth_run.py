"""Whether a stage that has played very many turns is as quick and as small as it was.

Sessions that each have one subscriber all the time play tiny turns, one after the other. At each tenth of the run the
processor time of a turn, the blocks that Python has allocated and what the process has resident are noted. The ledger
is the one in memory, which is bounded: what a durable ledger does when it grows is a matter of `bench authority`.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

import trio
from attrs import frozen

from footlights import MemoryLedger, open_stage
from footlights_bench.figures import Aim, Figure
from footlights_bench.growth_play import tiny_turn
from footlights_bench.progress import say
from footlights_bench.scripts import cast_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights import InteractionSession
    from footlights_bench.growth_scale import GrowthScale

AS_QUICK = Aim("at most", 1.2)
AS_SMALL = Aim("at most", 1.05)

_SESSIONS = 10
_TENTHS = 10
_RECORDS = 100
"""That the ledger keeps: a bound that is reached long before the first tenth is over."""
_PAGES = Path("/proc/self/statm")


@frozen
class Tenth:
    """One tenth of the run, and what there was when it was over."""

    seconds_per_turn: float
    blocks: int
    resident: int | None
    """In bytes, where the system tells."""


async def measure_long_run(scale: GrowthScale) -> list[Figure]:
    return figures_of(scale.long_run, await run_long(scale.long_run))


async def run_long(turns: int) -> list[Tenth]:
    tenths: list[Tenth] = []
    async with (
        open_stage(cast_of(tiny_turn), ledger=MemoryLedger(max_records=_RECORDS)) as stage,
        trio.open_nursery() as nursery,
    ):
        sessions = [stage.start() for _ in range(_SESSIONS)]
        for session in sessions:
            nursery.start_soon(_follow, session)
        in_a_tenth = turns // _TENTHS
        for number in range(1, _TENTHS + 1):
            began = process_time()
            await _play(sessions, in_a_tenth)
            spent = process_time() - began
            gc.collect()
            tenths.append(Tenth(spent / in_a_tenth, sys.getallocatedblocks(), resident_bytes()))
            say(f"{number * in_a_tenth:,} of {turns:,} turns, {spent / in_a_tenth * 1e6:,.0f} µs each")
        for session in sessions:
            await session.close()
    return tenths


async def _play(sessions: Sequence[InteractionSession], turns: int) -> None:
    """So many turns, of all sessions at once."""
    for _ in range(turns // len(sessions)):
        for commit in [session.finalize(session.begin_turn("Go on.")) for session in sessions]:
            await commit.wait()


async def _follow(session: InteractionSession) -> None:
    async with session.subscribe() as stream:
        async for _ in stream:
            pass


def resident_bytes(pages: Path = _PAGES) -> int | None:
    """What the process has in memory, where the system tells."""
    if not pages.exists():
        return None
    return int(pages.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def figures_of(turns: int, tenths: Sequence[Tenth]) -> list[Figure]:
    subject = f"{turns:,} turns in one stage, the last tenth / the first"
    first, last = tenths[0], tenths[-1]
    micros = {"first, µs": first.seconds_per_turn * 1e6, "last, µs": last.seconds_per_turn * 1e6}
    blocks: dict[str, float] = {"first": first.blocks, "last": last.blocks}
    figures = [
        Figure(
            subject, "processor time of a turn", last.seconds_per_turn / first.seconds_per_turn, "x", AS_QUICK, micros
        ),
        Figure(subject, "allocated blocks", last.blocks / first.blocks, "x", AS_SMALL, blocks),
    ]
    if first.resident is None or last.resident is None:
        return figures
    mebibytes = {"first, MiB": first.resident / 2**20, "last, MiB": last.resident / 2**20}
    return [*figures, Figure(subject, "resident memory", last.resident / first.resident, "x", AS_SMALL, mebibytes)]
