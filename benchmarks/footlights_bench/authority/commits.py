"""Durable commits a second, against raw SQLite that writes the same rows in the same groups.

Slices of ours and of the rival alternate within one run, each writing its own file on the same disk, and what counts
is the median of the ratios of neighbours. Two of ours race in turn: the ledger alone, given records that were judged
and sealed beforehand; and the committer, given turns that have ended, which judges, writes and announces them.
"""

from __future__ import annotations

import gc
import time
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import trio
from attrs import frozen

from footlights import Limits, TurnParams
from footlights.authority import SqliteLedger
from footlights.turn.turn import Turn
from footlights_actors.committer import AuthorityCommitter
from footlights_bench.authority.raw import RawLedger, RowMaker
from footlights_bench.authority.work import RULES, Judge, genesis, requests
from footlights_bench.lib.figures import Aim, Figure
from footlights_bench.lib.progress import say

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from footlights.stream.outbox import Outbox
    from footlights_bench.authority.work import Batch
    from footlights_bench.lib.scale import AuthorityScale

LEDGER_ALONE = Aim("at least", 0.6)


class Contender(Protocol):
    async def write(self, batches: Sequence[Batch]) -> float:
        """Make these commits durable, one batch after the other; the seconds that took."""
        ...


@frozen
class Slice:
    """Commits a second of two neighbours."""

    ours: float
    raw: float


async def measure_commits(scale: AuthorityScale) -> list[Figure]:
    figures: list[Figure] = []
    for batch, batches in scale.batches_per_slice.items():
        say(f"{batch} to a batch")
        alone, whole = [
            await race(kind, batch=batch, batches=batches, laps=scale.laps) for kind in (LedgerAlone, WholeCommitter)
        ]
        figures += _figures(batch, alone, whole)
    return figures


def _figures(batch: int, alone: Sequence[Slice], whole: Sequence[Slice]) -> list[Figure]:
    subject = f"commits, {batch} to a batch"
    return [
        _rate(subject, "raw SQLite, same rows", [each.raw for each in (*alone, *whole)]),
        _rate(subject, "ledger alone", [each.ours for each in alone]),
        _ratio(subject, "ledger alone / raw", alone, LEDGER_ALONE),
        _rate(subject, "judge and ledger", [each.ours for each in whole]),
        _ratio(subject, "judge and ledger / raw", whole, None),
    ]


def _rate(subject: str, name: str, rates: Sequence[float]) -> Figure:
    return Figure(subject, name, median(rates), "commits/s", spread={"min": min(rates), "max": max(rates)})


def _ratio(subject: str, name: str, slices: Sequence[Slice], aim: Aim | None) -> Figure:
    ratios = [each.ours / each.raw for each in slices]
    return Figure(subject, name, median(ratios), "x", aim, {"min": min(ratios), "max": max(ratios)})


async def race(
    kind: type[LedgerAlone | WholeCommitter], *, batch: int, batches: int, laps: int, folder: Path | None = None
) -> list[Slice]:
    """Alternate slices of so many batches; the ledgers are left in `folder`, if it is given."""
    if folder is None:
        with TemporaryDirectory() as temporary:
            return await race(kind, batch=batch, batches=batches, laps=laps, folder=Path(temporary))
    slices: list[Slice] = []
    judge, rows = Judge(), RowMaker(genesis())
    with RawLedger(folder / "raw.ledger", genesis(), rows.first_link) as raw:
        rival = RawSqlite(raw, rows)
        async with kind.opened(folder / "ours.ledger") as ours:
            for lap in range(laps):
                work = [judge.batch(batch) for _ in range(batches)]
                # The one that goes second finds the disk still busy with the first, so they take turns at it.
                first, second = (ours, rival) if lap % 2 else (rival, ours)
                seconds = {each: await each.write(work) for each in (first, second)}
                slices.append(Slice(batch * batches / seconds[ours], batch * batches / seconds[rival]))
    return slices


class RawSqlite:
    """The rival; its rows are made before the clock starts."""

    def __init__(self, raw: RawLedger, rows: RowMaker) -> None:
        self._raw = raw
        self._rows = rows

    async def write(self, batches: Sequence[Batch]) -> float:
        await trio.lowlevel.checkpoint()
        made = [self._rows.batch(batch) for batch in batches]
        gc.collect()
        began = perf_counter()
        for each in made:
            self._raw.append(each)
        return perf_counter() - began


class LedgerAlone:
    """`SqliteLedger.append`, with its thread: records that were judged and sealed before the clock starts."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger

    @classmethod
    @asynccontextmanager
    async def opened(cls, path: Path) -> AsyncGenerator[LedgerAlone, None]:
        async with SqliteLedger(path) as ledger:
            await ledger.begin_epoch(genesis())
            yield cls(ledger)

    async def write(self, batches: Sequence[Batch]) -> float:
        gc.collect()
        began = perf_counter()
        for batch in batches:
            await self._ledger.append(batch.records, batch.world)
        return perf_counter() - began


class WholeCommitter:
    """The stage's committer: from turns that have ended to turns that are settled."""

    def __init__(self, committer: AuthorityCommitter) -> None:
        self._committer = committer
        self._requests = requests()
        self._host = _Host()

    @classmethod
    @asynccontextmanager
    async def opened(cls, path: Path) -> AsyncGenerator[WholeCommitter, None]:
        async with SqliteLedger(path) as ledger, trio.open_nursery() as nursery:
            opening = await ledger.begin_epoch(genesis())
            committer = AuthorityCommitter(ledger, opening.world, RULES, Limits())
            nursery.start_soon(committer.run)
            yield cls(committer)
            committer.close()

    async def write(self, batches: Sequence[Batch]) -> float:
        ended = [self._ended_turns(len(batch.records)) for batch in batches]
        gc.collect()
        began = perf_counter()
        for turns in ended:
            for turn in turns:
                self._committer.submit_nowait(turn)
            await turns[-1].settled.wait()
        return perf_counter() - began

    def _ended_turns(self, number: int) -> list[Turn]:
        turns: list[Turn] = []
        for request in islice(self._requests, number):
            turn = Turn(self._host, request.session_id, request.turn_id, "", TurnParams())
            turn.accept(0)
            turn.run()
            turn.staged.extend(request.intents)
            turn.finish()
            turns.append(turn)
        return turns


class _Host:
    """A session without subscribers, that hands nothing on."""

    def __init__(self) -> None:
        self.outboxes: tuple[Outbox, ...] = ()
        self.limits = Limits()
        self.clock = trio.current_time
        self.wall_clock = time.time
        self.remote_models = False

    def turn_stopping(self, turn: Turn) -> None: ...
    def turn_ended(self, turn: Turn) -> None: ...
    def turn_settled(self, turn: Turn) -> None: ...
