"""Throughput of durable commits, against raw SQLite that writes the same rows in the same groups.

Slices of ours and of the peer alternate, each on a file of its own on the same disk, and the median of the ratios of
neighbouring slices counts. Two of ours are measured: the ledger alone, with records that were judged and sealed
beforehand; and the committer, which judges, writes and announces turns that have ended.
"""

from __future__ import annotations

import gc
import time
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import trio
from attrs import frozen

from footlights import Limits, TurnParams
from footlights.authority import SqliteLedger, check_intent
from footlights.authority.intents import NOTHING_KNOWN
from footlights.turn.turn import Turn
from footlights_actors import standard_cast
from footlights_actors.committer import AuthorityCommitter
from footlights_bench.lib.progress import say
from suites.authority.raw import RawSqlite
from suites.authority.work import RULES, Judge, genesis, requests
from suites.lib.figures import Aim, Figure, median_figure

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from footlights.authority import Ledger
    from footlights.stream.outbox import Outbox
    from suites.authority.suite import AuthorityScale
    from suites.authority.work import Batch

LEDGER_ALONE = Aim("at least", 0.6)
WHOLE = {64: Aim("at least", 0.3), 256: Aim("at least", 0.2)}
"""By the number of commits in a batch."""


class Contender(Protocol):
    async def write(self, batches: Sequence[Batch]) -> float:
        """Make the batches durable one after the other; return the seconds it took."""
        ...


@frozen
class Slice:
    """Commits a second of two neighbouring slices."""

    ours: float
    raw: float

    @property
    def ratio(self) -> float:
        return self.ours / self.raw


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
        median_figure(subject, "raw SQLite, same rows", [each.raw for each in (*alone, *whole)], "commits/s"),
        median_figure(subject, "ledger alone", [each.ours for each in alone], "commits/s"),
        median_figure(subject, "ledger alone / raw", [each.ratio for each in alone], "x", LEDGER_ALONE),
        median_figure(subject, "judge and ledger", [each.ours for each in whole], "commits/s"),
        median_figure(subject, "judge and ledger / raw", [each.ratio for each in whole], "x", WHOLE.get(batch)),
    ]


async def race(
    kind: type[LedgerAlone | WholeCommitter], *, batch: int, batches: int, laps: int, folder: Path | None = None
) -> list[Slice]:
    """Run alternating slices of `batches` batches. If `folder` is given, the ledger files stay there."""
    if folder is None:
        with TemporaryDirectory() as temporary:
            return await race(kind, batch=batch, batches=batches, laps=laps, folder=Path(temporary))
    slices: list[Slice] = []
    judge = Judge()
    with RawSqlite(folder / "raw.ledger", genesis()) as raw:
        async with SqliteLedger(folder / "ours.ledger") as ledger, kind.opened(ledger) as ours:
            for lap in range(laps):
                work = [judge.batch(batch) for _ in range(batches)]
                # The second one finds the disk still busy with the first, so they go first in turn.
                first, second = (ours, raw) if lap % 2 else (raw, ours)
                seconds = {each: await each.write(work) for each in (first, second)}
                slices.append(Slice(batch * batches / seconds[ours], batch * batches / seconds[raw]))
    return slices


class LedgerAlone:
    """`append` of a ledger with its thread, for records that were judged and sealed before the clock starts."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    @classmethod
    @asynccontextmanager
    async def opened(cls, ledger: Ledger) -> AsyncGenerator[LedgerAlone, None]:
        await ledger.begin_epoch(genesis())
        yield cls(ledger)

    async def write(self, batches: Sequence[Batch]) -> float:
        gc.collect()
        began = perf_counter()
        for batch in batches:
            await self._ledger.append(batch.records, batch.world)
        return perf_counter() - began


class WholeCommitter:
    """The committer of a stage: from turns that have ended to turns that are settled."""

    def __init__(self, committer: AuthorityCommitter) -> None:
        self._committer = committer
        self._requests = requests()
        self._host = _Host()
        self._cast = standard_cast(rules=RULES)

    @classmethod
    @asynccontextmanager
    async def opened(cls, ledger: SqliteLedger) -> AsyncGenerator[WholeCommitter, None]:
        async with trio.open_nursery() as nursery:
            opening = await ledger.begin_epoch(genesis())
            committer = AuthorityCommitter(ledger, opening.world, Limits())
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
            turn = Turn(self._host, self._cast, request.session_id, request.turn_id, "", TurnParams())
            turn.accept(0)
            turn.run()
            for intent in request.intents:
                check_intent(intent)  # as staging does, while the turn runs
                turn.staged.append(intent)
            turn.finish()
            turns.append(turn)
        return turns


class _Host:
    """A session without subscribers that ignores what its turns report."""

    def __init__(self) -> None:
        self.outboxes: tuple[Outbox, ...] = ()
        self.limits = Limits()
        self.clock = trio.current_time
        self.wall_clock = time.time
        self.remote_models = False
        self.about = NOTHING_KNOWN

    def turn_stopping(self, turn: Turn) -> None: ...
    def turn_ended(self, turn: Turn) -> None: ...
    def turn_settled(self, turn: Turn) -> None: ...
