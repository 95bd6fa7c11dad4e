"""Processor time of a turn, by the number of open sessions.

One process holds a stage for each number of sessions. Each session keeps its last turns and waits; ten at a time play
on, one after the other. Laps of all stages alternate, and the ratio is the median of the ratios within a lap, so other
load on the machine slows both. All processor time of the process counts, including that of the ledger's thread.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time
from typing import TYPE_CHECKING

from attrs import field, frozen

from footlights import Limits, open_stage
from footlights_bench.lib.progress import say
from suites.growth.crowd import AT_A_TIME, SHORT, TURNS_KEPT, Crowd, short_turn
from suites.lib.figures import Aim, Figure
from suites.lib.scripts import cast_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from suites.growth.suite import GrowthScale

FLAT = Aim("at most", 1.2)
KEPT = ("in memory", "in SQLite")


@frozen
class Cost:
    """Processor seconds of a turn in each lap, with so many open sessions."""

    sessions: int
    seconds: list[float] = field(factory=list[float])


async def measure_cost(scale: GrowthScale) -> list[Figure]:
    figures: list[Figure] = []
    for kept in KEPT:
        say(f"opening {sum(scale.sessions):,} sessions, commits {kept}")
        costs = await time_turns(scale.sessions, scale.laps, scale.turns_per_lap, durable=kept == KEPT[1])
        figures += _figures(f"processor time of a turn, {SHORT} tokens, {AT_A_TIME} at a time, commits {kept}", costs)
    return figures


async def time_turns(sizes: Sequence[int], laps: int, turns: int, *, durable: bool) -> list[Cost]:
    costs = [Cost(size) for size in sizes]
    async with AsyncExitStack() as leaving:
        folder = Path(leaving.enter_context(TemporaryDirectory()))
        crowds = [
            await leaving.enter_async_context(_open_crowd(size, folder / f"{size}.ledger" if durable else None))
            for size in sizes
        ]
        for lap in range(laps):
            for cost, crowd in list(zip(costs, crowds, strict=True))[:: 1 if lap % 2 else -1]:
                began = process_time()
                await crowd.play(turns)
                cost.seconds.append((process_time() - began) / turns)
    return costs


@asynccontextmanager
async def _open_crowd(size: int, ledger: Path | None) -> AsyncGenerator[Crowd, None]:
    limits = Limits(replay_turns=TURNS_KEPT)
    async with open_stage(cast_of(short_turn), ledger=ledger, limits=limits) as stage:
        crowd = Crowd([stage.start() for _ in range(size)])
        await crowd.fill(limits)
        yield crowd


def _figures(subject: str, costs: Sequence[Cost]) -> list[Figure]:
    first, last = costs[0], costs[-1]
    ratio = median(many / few for few, many in zip(first.seconds, last.seconds, strict=True))
    return [
        *(
            Figure(subject, f"{cost.sessions:,} sessions open", median(cost.seconds) * 1e6, "µs", None, _spread(cost))
            for cost in costs
        ),
        Figure(subject, f"{last.sessions:,} / {first.sessions:,}", ratio, "x", FLAT),
    ]


def _spread(cost: Cost) -> dict[str, float]:
    return {"least": min(cost.seconds) * 1e6, "most": max(cost.seconds) * 1e6}
