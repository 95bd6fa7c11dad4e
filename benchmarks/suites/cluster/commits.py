"""Durable commits a second of the ledger in PostgreSQL, against the ledger in a file that writes the same batches.

Slices of both alternate on the same disk, and the median of the ratios of neighbouring slices counts. The server is one
of its own, on this machine, which makes every commit durable.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from footlights.authority import SqliteLedger
from footlights.authority.ledger.postgres.ledger import PostgresLedger
from footlights_bench.lib.progress import say
from suites.authority.commits import LedgerAlone
from suites.authority.work import Judge
from suites.lib.figures import Aim, Figure, median_figure
from tests.kit.postgres import Server

if TYPE_CHECKING:
    from suites.cluster.suite import ClusterScale

AIMS = {64: Aim("at least", 0.4), 256: Aim("at least", 0.4)}
"""By the number of commits in a batch."""


async def measure_commits(scale: ClusterScale) -> list[Figure]:
    with closing(_Database()) as database:
        return [
            figure
            for batch, batches in scale.batches_per_slice.items()
            for figure in await _race(database, batch, batches, scale.laps)
        ]


class _Database:
    """A server for this run, which is removed with it."""

    def __init__(self) -> None:
        self._server = Server.made("fsync=on")
        self._name = self._server.new_database()

    def url(self, world: str) -> str:
        return self._server.url(self._name, world)

    def close(self) -> None:
        self._server.remove()


async def _race(database: _Database, batch: int, batches: int, laps: int) -> list[Figure]:
    say(f"{batch} to a batch")
    judge = Judge()
    theirs: list[float] = []
    ours: list[float] = []
    with TemporaryDirectory() as folder:
        async with (
            SqliteLedger(Path(folder) / "file.ledger") as file,
            PostgresLedger(database.url(f"bench-{batch}")) as postgres,
            LedgerAlone.opened(file) as in_file,
            LedgerAlone.opened(postgres) as in_database,
        ):
            for lap in range(laps):
                work = [judge.batch(batch) for _ in range(batches)]
                # The second one finds the disk still busy with the first, so they go first in turn.
                first, second = (in_file, in_database) if lap % 2 else (in_database, in_file)
                seconds = {each: await each.write(work) for each in (first, second)}
                theirs.append(batch * batches / seconds[in_file])
                ours.append(batch * batches / seconds[in_database])
    subject = f"commits, {batch} to a batch"
    ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
    return [
        median_figure(subject, "ledger in a file", theirs, "commits/s"),
        median_figure(subject, "ledger in PostgreSQL", ours, "commits/s"),
        median_figure(subject, "PostgreSQL / file", ratios, "x", AIMS.get(batch)),
    ]
