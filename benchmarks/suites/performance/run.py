"""Runs of the suites, one after the other, each in a process of its own. A failure of one does not stop the others."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from footlights_bench.lib.progress import say
from suites.performance.results import Taken
from suites.performance.suites import BENCHMARKS, why_not_here

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suites.performance.results import Results
    from suites.performance.suites import Suite

_PATIENCE = 5
_LEAST_PATIENCE = 300.0
_STATISTICS = Path("/proc/stat")


@frozen
class Commit:
    """The commit that is measured."""

    name: str | None
    changed: bool


def measure(suites: Sequence[Suite], results: Results, *, quick: bool) -> Sequence[str]:
    """Run the suites and keep each result at once; return the suites that failed, without the skipped ones."""
    failed: list[str] = []
    commit = this_commit()
    guesses = _guesses(suites, results, quick=quick)
    for place, suite in enumerate(suites):
        guess, left = _duration(guesses[place]), _duration(sum(guesses[place:]))
        say(f"[{place + 1}/{len(suites)}] {suite.name}, about {guess}; {left} left in all")
        reason = why_not_here(suite)
        if reason is not None:
            print(f"*** SKIPPED: {suite.name}: {reason} ***", file=sys.stderr)
            results.note_trouble(suite, _new_run(commit, trouble=reason))
        elif not measure_one(suite, results, commit, quick=quick, patience=_patience(guesses[place])):
            failed.append(suite.name)
    return failed


def measure_one(suite: Suite, results: Results, commit: Commit, *, quick: bool, patience: float) -> bool:
    """Whether the suite wrote a result. A result with missed aims is one too."""
    with TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        taken, before, began = _new_run(commit), worked(), perf_counter()
        trouble = _play(suite.command(result, quick=quick), patience)
        others = share_of_others(before, worked())
        taken = evolve(taken, seconds=round(perf_counter() - began, 1), others=_rounded(others))
        if result.exists():
            results.keep(suite, result, taken)
            return True
    print(f"*** FAILED: {suite.name}: {trouble} ***", file=sys.stderr)
    results.note_trouble(suite, evolve(taken, trouble=trouble))
    return False


def this_commit(checkout: Path = BENCHMARKS.parent) -> Commit:
    """The commit of the checkout. Changes of the results and of their page do not count."""
    name = _git(checkout, "rev-parse", "--short", "HEAD")
    status = _git(checkout, "status", "--porcelain", "--", ".", ":!docs/performance", ":!docs/performance.md")
    return Commit(name, bool(status))


def _git(checkout: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=checkout, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _play(command: Sequence[str], patience: float) -> str:
    """Run a command; return how it ended, for the case that there is no result."""
    # The suites and the peers are not installed packages.
    places = [str(BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])]
    try:
        done = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": os.pathsep.join(places)}, timeout=patience, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {_duration(patience)}"
    return f"it ended with exit code {done.returncode} and without a result"


def _guesses(suites: Sequence[Suite], results: Results, *, quick: bool) -> Sequence[float]:
    """The expected seconds of each suite: those of its last run, if that was of the same kind."""
    runs = results.runs()

    def guess(suite: Suite) -> float:
        last = results.measured(suite)
        if suite.name in runs and last is not None and last.quick == quick:
            return runs[suite.name].seconds
        return suite.quick_seconds if quick else suite.seconds

    return [guess(suite) for suite in suites]


def _patience(guess: float) -> float:
    return max(_LEAST_PATIENCE, _PATIENCE * guess)


def _new_run(commit: Commit, trouble: str | None = None) -> Taken:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return Taken(at=at, commit=commit.name, changed=commit.changed, seconds=0.0, others=None, trouble=trouble)


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 3)


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


@frozen
class Worked:
    """Processor time of the machine since its start, in seconds."""

    at: float
    machine: float
    children: float


def worked(statistics: Path = _STATISTICS) -> Worked | None:
    """None if the platform does not report it."""
    if not statistics.exists():
        return None
    _, user, nice, system, *_ = statistics.read_text(encoding="ascii").split("\n", 1)[0].split()
    machine = (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")
    times = os.times()
    return Worked(perf_counter(), machine, times.children_user + times.children_system)


def share_of_others(before: Worked | None, after: Worked | None) -> float | None:
    """The share of the machine that other processes used, from 0 to 1.

    A load average would include what is measured. This is the processor time of the whole machine without that of the
    processes that this one started and that have ended.
    """
    if before is None or after is None:
        return None
    by_others = (after.machine - before.machine) - (after.children - before.children)
    return max(0.0, by_others) / ((after.at - before.at) * (os.cpu_count() or 1))
