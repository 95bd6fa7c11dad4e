"""Measures suites one after the other, each in a process of its own. One that fails is named and costs no other."""

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
from footlights_bench.performance.others import share_of_others, worked
from footlights_bench.performance.results import Taken
from footlights_bench.performance.suites import BENCHMARKS, why_not_here

if TYPE_CHECKING:
    from collections.abc import Sequence

    from footlights_bench.performance.results import Results
    from footlights_bench.performance.suites import Suite

_PATIENCE = 5
_LEAST_PATIENCE = 300.0


@frozen
class Commit:
    """What is measured."""

    name: str | None
    changed: bool


def measure(suites: Sequence[Suite], results: Results, *, quick: bool) -> Sequence[str]:
    """Keep each result as soon as it is there; return the suites that failed. Skipped is not failed."""
    failed: list[str] = []
    commit = this_commit()
    guesses = _guesses(suites, results, quick=quick)
    for place, suite in enumerate(suites):
        left = sum(guesses[place:])
        say(f"[{place + 1}/{len(suites)}] {suite.name}, about {_told(guesses[place])}; {_told(left)} left in all")
        reason = why_not_here(suite)
        if reason is not None:
            print(f"*** SKIPPED: {suite.name}: {reason} ***", file=sys.stderr)
            results.note_trouble(suite, _taken(commit, trouble=reason))
        elif not measure_one(suite, results, commit, quick=quick, patience=_patience(guesses[place])):
            failed.append(suite.name)
    return failed


def measure_one(suite: Suite, results: Results, commit: Commit, *, quick: bool, patience: float) -> bool:
    """Whether there is a result. A missed aim is one: what counts is that it was written."""
    with TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        taken, before, began = _taken(commit), worked(), perf_counter()
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
    """Results and their page are no change: they are what comes of measuring."""
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
    """How it ended, which matters if there is no result."""
    # The peers are no package that is installed.
    places = [str(BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])]
    try:
        done = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": os.pathsep.join(places)}, timeout=patience, check=False
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {_told(patience)}"
    return f"it ended with exit code {done.returncode} and without a result"


def _guesses(suites: Sequence[Suite], results: Results, *, quick: bool) -> Sequence[float]:
    """How long each will take: as long as last time, if that was as thorough."""
    runs = results.runs()

    def guess(suite: Suite) -> float:
        last = results.measured(suite)
        if suite.name in runs and last is not None and last.quick == quick:
            return runs[suite.name].seconds
        return suite.quick_seconds if quick else suite.seconds

    return [guess(suite) for suite in suites]


def _patience(guess: float) -> float:
    return max(_LEAST_PATIENCE, _PATIENCE * guess)


def _taken(commit: Commit, trouble: str | None = None) -> Taken:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return Taken(at=at, commit=commit.name, changed=commit.changed, seconds=0.0, others=None, trouble=trouble)


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 3)


def _told(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
