"""Growth of a ledger: write throughput at several sizes, then audit and replay of the largest.

The ledger and raw SQLite grow side by side with the same rows. At each size some batches of both are timed in turn;
the rows between the sizes are not timed. An audit that finds a flaw, or a replay that ends in another world, is an
error.
"""

from __future__ import annotations

from pathlib import Path
from statistics import harmonic_mean, median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

from attrs import Factory, frozen

from footlights.authority import SqliteLedger
from footlights.authority.audit.audit import audit
from footlights.authority.audit.rebuild import replay
from footlights.authority.ledger.sqlite.reader import SqliteReader
from footlights_bench.lib.progress import say
from suites.authority.commits import LedgerAlone
from suites.authority.raw import RawSqlite
from suites.authority.work import Judge, genesis
from suites.lib.figures import Aim, Figure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from suites.authority.suite import AuthorityScale

FLAT = Aim("at least", 0.8)

_BATCH = 256
_AT_A_TIME = 16


@frozen
class Timed:
    """Commits a second of each batch that was timed at this size."""

    size: int
    ours: list[float] = Factory(list[float])
    raw: list[float] = Factory(list[float])


async def measure_growth(scale: AuthorityScale) -> list[Figure]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ours.ledger"
        timed = await grow(path, scale.sizes, scale.batches_at_each_size)
        say("auditing and replaying")
        return [*_growth_figures(timed), *examine(path)]


async def grow(path: Path, sizes: Sequence[int], batches: int) -> list[Timed]:
    """Make a ledger at `path` and a raw one beside it, a little larger than the last of `sizes`."""
    results: list[Timed] = []
    judge, written = Judge(), 0
    with RawSqlite(path.with_suffix(".raw"), genesis()) as raw:
        async with SqliteLedger(path) as ledger, LedgerAlone.opened(ledger) as ours:
            for size in sizes:
                say(f"growing to {size:,} commits")
                for filling in _fillings(size - written):
                    work = [judge.batch(number) for number in filling]
                    await raw.write(work)
                    await ours.write(work)
                results.append(await _timed(Timed(size), ours, raw, judge, batches))
                written = size + _BATCH * batches
    return results


def _fillings(commits: int) -> Iterator[list[int]]:
    """The sizes of batches that make so many commits, several batches at a time."""
    whole, rest = divmod(max(0, commits), _BATCH)
    sizes = [_BATCH] * whole + [rest] * bool(rest)
    for first in range(0, len(sizes), _AT_A_TIME):
        yield sizes[first : first + _AT_A_TIME]


async def _timed(timed: Timed, ours: LedgerAlone, raw: RawSqlite, judge: Judge, batches: int) -> Timed:
    for lap in range(batches):
        work = [judge.batch(_BATCH)]
        for who, rates in ((ours, timed.ours), (raw, timed.raw))[:: 1 if lap % 2 else -1]:
            rates.append(_BATCH / await who.write(work))
    return timed


def examine(path: Path) -> list[Figure]:
    with SqliteReader(path) as reader:
        began = perf_counter()
        report = audit(reader)
        audited = perf_counter()
        replayed = replay(reader)
        ended = perf_counter()
    if not report.ok or not replayed.identical or replayed.world.digest() != report.world_digest:
        raise AssertionError("The ledger that was measured does not hold the commits that were written.")
    subject = f"examining {report.commits:,} commits"
    return [
        Figure(subject, "audit", report.commits / (audited - began), "commits/s"),
        Figure(subject, "replay, same world digest", replayed.commits / (ended - audited), "commits/s"),
    ]


def _growth_figures(timed: Sequence[Timed]) -> list[Figure]:
    subject = f"growth, {_BATCH} to a batch"
    figures: list[Figure] = []
    for each in timed:
        # Every few batches SQLite moves its log into the file; only the mean includes that.
        spread = {"mean": harmonic_mean(each.ours), "raw": median(each.raw), "raw mean": harmonic_mean(each.raw)}
        name = f"ledger alone, at {each.size:,}"
        figures.append(Figure(subject, name, median(each.ours), "commits/s", spread=spread))
    first, last = timed[0], timed[-1]
    raw = {"raw": median(last.raw) / median(first.raw)}
    flat = median(last.ours) / median(first.ours)
    return [*figures, Figure(subject, f"at {last.size:,} / at {first.size:,}", flat, "x", FLAT, raw)]
